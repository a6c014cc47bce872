//! Describes limits in a few words.

use tollgate::model::algo::Anchor;
use tollgate::model::{Algorithm, Limit};

/// Describes what a limit allows: `60 per 1h`, `10 per 1s, burst 20`, `100 at a time`.
pub(super) fn describe(limit: &Limit) -> String {
    match limit.algorithm() {
        Algorithm::FixedWindow(limit) => match limit.anchor() {
            Anchor::FirstRequest | Anchor::Calendar => {
                format!("{} per {}", limit.quota(), limit.window())
            }
            Anchor::Scheduled(schedule) => {
                format!("{} per calendar {}", limit.quota(), schedule.name())
            }
        },
        Algorithm::SlidingWindow(limit) => {
            format!("{} per {}, precision {}", limit.quota(), limit.window(), limit.precision())
        }
        Algorithm::TwoBucket(limit) => {
            format!("{} per {}, sliding (estimate)", limit.quota(), limit.window())
        }
        Algorithm::SlidingLog(limit) => {
            format!("{} per {}, sliding (exact)", limit.quota(), limit.window())
        }
        Algorithm::TokenBucket(limit) => {
            format!("{} per {}, burst {}", limit.quota(), limit.window(), limit.burst())
        }
        Algorithm::Concurrency(limit) => format!("{} at a time", limit.quota()),
    }
}
