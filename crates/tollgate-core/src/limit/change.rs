//! Changes of a limit's definition. This module determines which counters the new definition uses.

use alloc::vec::Vec;
use core::fmt;

use super::{Algorithm, Limit, fnv_1a, fnv_1a_from};
use crate::algo::Anchor;
use crate::time::Millis;

/// What happens to a limit's counters when the definition of the limit changes.
///
/// The definition alone determines which counters are used. Nodes that received a change agree
/// without communication, and nodes that have not received it yet continue with the old counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnChange {
    /// Used units stay used and running windows end at the same time, as far as the new definition
    /// can read the old state:
    ///
    /// - a fixed window and a sliding log with any new numbers;
    /// - a sliding window with the same precision; a two-bucket estimate with the same window;
    /// - a concurrency limit with the same `permit_ttl`;
    /// - a token bucket with the same window: the remaining tokens stay, at most the new burst.
    ///
    /// Any other change, such as another algorithm, starts with empty counters.
    #[default]
    Keep,
    /// The new definition starts with empty counters. If an earlier definition is restored within
    /// its window, it continues with its earlier counters.
    Restart,
    /// The same share of the capacity stays used, whatever the new numbers or algorithm. If half of
    /// the old quota is used, half of the new quota is used. Requests in flight are not carried
    /// over. In a store that does not support scaling ([`Limit::predecessor`]), the effect is that
    /// of [`Restart`](Self::Restart).
    Scale,
}

/// A number that identifies the definitions of a limit that share counters. The number is the same
/// on every node, and is displayed as eight hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Generation(u32);

impl Limit {
    /// Sets what happens to the counters when the current definition changes.
    ///
    /// If this method is not called, the name alone identifies the counters, which suits limits
    /// that never change.
    #[must_use]
    pub fn with_on_change(mut self, on_change: OnChange) -> Self {
        self.on_change = on_change;
        let generation = Generation::of(&self.algorithm, on_change);
        self.in_generation(generation)
    }

    pub(super) fn in_generation(mut self, generation: Option<Generation>) -> Self {
        self.generation = generation;
        self.state_digest = match generation {
            None => self.name_digest,
            // No name contains this byte, so the digest of a name and a generation is never the
            // digest of a name.
            Some(Generation(number)) => {
                fnv_1a_from(fnv_1a_from(self.name_digest, b"~"), &number.to_be_bytes())
            }
        };
        self
    }

    /// Returns this limit as the replacement of `old`. Fixed windows of `old` that are still open
    /// can be longer than the windows of this limit. Such a window keeps its end, and is not
    /// discarded as state from too far in the future.
    #[must_use]
    pub fn replacing(mut self, old: &Self) -> Self {
        let is_fixed = |limit: &Self| matches!(limit.algorithm, Algorithm::FixedWindow(_));
        if self.state_digest == old.state_digest && is_fixed(&self) && is_fixed(old) {
            let longest = old.skew_tolerance().get().saturating_add(old.window().get());
            let explained = self.skew_max.get().saturating_add(self.window().get());
            self.shortened_by = Millis::new(longest.saturating_sub(explained));
        }
        self
    }
}

impl Generation {
    /// Returns the generation of a limit with `algorithm` and `on_change`. Returns `None` if the
    /// name of the limit is enough to identify its counters.
    pub(super) fn of(algorithm: &Algorithm, on_change: OnChange) -> Option<Self> {
        let definition = match on_change {
            OnChange::Keep => grain(algorithm)?,
            OnChange::Restart | OnChange::Scale => definition(algorithm),
        };
        Some(Self::of_definition(definition))
    }

    /// Returns the generation of a candidate with `algorithm`. It differs from the generation of
    /// any limit.
    pub(super) fn of_candidate(algorithm: &Algorithm) -> Self {
        let [kind, quota, window, third, _] = definition(algorithm);
        Self::of_definition([kind, quota, window, third, 2])
    }

    fn of_definition(definition: [u64; 5]) -> Self {
        let bytes: Vec<u8> = definition.into_iter().flat_map(u64::to_be_bytes).collect();
        let hash = fnv_1a(&bytes);
        Self((hash ^ hash >> 32 ^ hash >> 64 ^ hash >> 96) as u32)
    }

    /// Returns the generation as a number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// Returns the numbers of a definition without which the stored numbers cannot be interpreted, such
/// as the length of a block. Returns `None` for a fixed window, the common case: its state contains
/// plain units and times, and needs no generation.
fn grain(algorithm: &Algorithm) -> Option<[u64; 5]> {
    let grain = match algorithm {
        Algorithm::FixedWindow(_) => return None,
        Algorithm::SlidingWindow(limit) => limit.precision().get(),
        Algorithm::TwoBucket(limit) => limit.window().get(),
        Algorithm::TokenBucket(limit) => limit.window().get(),
        Algorithm::Concurrency(limit) => limit.permit_ttl().get(),
        Algorithm::SlidingLog(_) => 0,
    };
    Some([kind(algorithm), grain, 0, 0, 0])
}

/// Returns all numbers of the definition that affect decisions. The last number is always 1, so the
/// result differs from every result of [`grain`].
fn definition(algorithm: &Algorithm) -> [u64; 5] {
    let (quota, window, third) = match algorithm {
        Algorithm::FixedWindow(limit) => {
            let anchor = match limit.anchor() {
                Anchor::FirstRequest => 0,
                Anchor::Calendar => 1,
                Anchor::Scheduled(schedule) => fnv_1a(schedule.name().as_bytes()) as u64,
            };
            (limit.quota(), limit.window(), anchor)
        }
        Algorithm::SlidingWindow(limit) => (limit.quota(), limit.window(), limit.precision().get()),
        Algorithm::TwoBucket(limit) => (limit.quota(), limit.window(), 0),
        Algorithm::SlidingLog(limit) => (limit.quota(), limit.window(), 0),
        Algorithm::TokenBucket(limit) => (limit.quota(), limit.window(), limit.burst()),
        Algorithm::Concurrency(limit) => (limit.quota(), limit.permit_ttl(), 0),
    };
    [kind(algorithm), quota, window.get(), third, 1]
}

/// Returns a number that identifies the algorithm and never changes.
const fn kind(algorithm: &Algorithm) -> u64 {
    match algorithm {
        Algorithm::FixedWindow(_) => 1,
        Algorithm::SlidingWindow(_) => 2,
        Algorithm::TwoBucket(_) => 3,
        Algorithm::SlidingLog(_) => 4,
        Algorithm::TokenBucket(_) => 5,
        Algorithm::Concurrency(_) => 6,
    }
}
