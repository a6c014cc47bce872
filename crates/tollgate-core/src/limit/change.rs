//! A limit whose definition changes: which counters it goes on with, and what it makes of them.

use alloc::vec::Vec;
use core::fmt;

use super::{Algorithm, Limit, fnv_1a, fnv_1a_from};
use crate::algo::Anchor;
use crate::time::Millis;

/// What becomes of the counters of a limit whose definition changes.
///
/// Whoever decides by a definition finds its counters by it alone: nodes that were told of a change
/// agree without asking each other, and those that were not told yet go on with the old counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnChange {
    /// What was used stays used, and what runs ends when it was to end, as far as the new
    /// definition can read what the old one wrote:
    ///
    /// - a fixed window and a sliding log whatever their numbers become;
    /// - a sliding window with the same precision; a two-bucket estimate with the same window;
    /// - a concurrency limit with the same lease;
    /// - a token bucket with the same window: the tokens that are left stay, at most the new burst.
    ///
    /// Anything else starts afresh, another algorithm as well.
    #[default]
    Keep,
    /// Nobody has used anything yet. A definition that comes back within its window finds what was
    /// counted under it before.
    Restart,
    /// The same part of the capacity stays used, whatever becomes of its numbers or its algorithm:
    /// of half of the old quota, half of the new one. Requests in flight start afresh. Where a store
    /// does not take it over ([`Limit::predecessor`]) this is [`Restart`](Self::Restart).
    Scale,
}

/// A number for the definitions that share counters, the same on every node. Shown as eight
/// hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Generation(u32);

impl Limit {
    /// Sets what becomes of its counters when the definition changes that it has now.
    ///
    /// Where it is not set the name alone finds the counters: for limits that never change.
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
            // No name has such a byte: two limits never meet.
            Some(Generation(number)) => {
                fnv_1a_from(fnv_1a_from(self.name_digest, b"~"), &number.to_be_bytes())
            }
        };
        self
    }

    /// This limit in the place of `old`, whose fixed windows may still run and be longer: they end
    /// when they were to end, and are not taken for state from an impossible future.
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
    /// That of `algorithm`; none where the limit's name alone finds its counters.
    pub(super) fn of(algorithm: &Algorithm, on_change: OnChange) -> Option<Self> {
        let definition = match on_change {
            OnChange::Keep => grain(algorithm)?,
            OnChange::Restart | OnChange::Scale => definition(algorithm),
        };
        Some(Self::of_definition(definition))
    }

    /// That of `algorithm` as a candidate: another one than any limit's, whatever its numbers.
    pub(super) fn of_candidate(algorithm: &Algorithm) -> Self {
        let [kind, quota, window, third, _] = definition(algorithm);
        Self::of_definition([kind, quota, window, third, 2])
    }

    fn of_definition(definition: [u64; 5]) -> Self {
        let bytes: Vec<u8> = definition.into_iter().flat_map(u64::to_be_bytes).collect();
        let hash = fnv_1a(&bytes);
        Self((hash ^ hash >> 32 ^ hash >> 64 ^ hash >> 96) as u32)
    }

    /// The number.
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

/// What the numbers of a cell are counted in. A fixed window, the common case, has plain units and
/// moments, and needs no mark.
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

/// All that decides, with a last number that no [`grain`] has.
fn definition(algorithm: &Algorithm) -> [u64; 5] {
    let (quota, window, third) = match algorithm {
        Algorithm::FixedWindow(limit) => {
            let anchor = match limit.anchor() {
                Anchor::FirstRequest => 0,
                Anchor::Calendar => 1,
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

/// A number for each algorithm that never changes.
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
