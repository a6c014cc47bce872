//! Counts and logs requests that are refused because they can be read in more than one way.

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::Timestamp;
use tollgate_core::policy::Ambiguity;

use super::Observer;
use super::degraded::Line;
use crate::decision::Decision;

const REASONS: usize = Ambiguity::ALL.len();

/// Counts ambiguous requests by reason, and logs at most one line per reason every
/// [`LOG_INTERVAL`](super::LOG_INTERVAL), with the number of requests since the last line.
#[derive(Debug, Default)]
pub struct AmbiguousRequests {
    counts: [AtomicU64; REASONS],
    lines: [Line; REASONS],
}

impl AmbiguousRequests {
    /// Returns the number of refused requests for each reason.
    #[must_use]
    pub fn counts(&self) -> [(Ambiguity, u64); REASONS] {
        std::array::from_fn(|index| {
            (Ambiguity::ALL[index], self.counts[index].load(Ordering::Relaxed))
        })
    }
}

impl Observer for AmbiguousRequests {
    fn on_decision(&self, _decision: &Decision) {}

    #[cold]
    fn on_ambiguous_request(&self, now: Timestamp, ambiguity: Ambiguity) {
        let Some(index) = Ambiguity::ALL.iter().position(|known| *known == ambiguity) else {
            return;
        };
        self.counts[index].fetch_add(1, Ordering::Relaxed);
        if let Some(suppressed) = self.lines[index].is_due(now) {
            let reason = ambiguity.name();
            tracing::warn!(
                reason,
                suppressed,
                "refused a request that can be read in more than one way"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_own_count() {
        let requests = AmbiguousRequests::default();
        for (index, ambiguity) in Ambiguity::ALL.into_iter().enumerate() {
            for _ in 0..=index {
                requests.on_ambiguous_request(Timestamp::from_millis(1), ambiguity);
            }
        }
        let counts = requests.counts().map(|(_, count)| count);
        assert!(counts.iter().zip(1..).all(|(count, expected)| *count == expected), "{counts:?}");
    }
}
