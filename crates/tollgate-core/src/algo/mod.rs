//! The algorithms, one a file, each a pure step over its own small state.

pub mod concurrency;
pub mod fixed_window;
pub mod sliding_log;
pub mod sliding_window;
pub mod token_bucket;
pub mod two_bucket;

pub use concurrency::Concurrency;
pub use fixed_window::{Anchor, FixedWindow};
pub use sliding_log::SlidingLog;
pub use sliding_window::SlidingWindow;
pub use token_bucket::TokenBucket;
pub use two_bucket::TwoBucket;

use alloc::vec::Vec;

use crate::charge_id::ChargeId;
use crate::charge_position::ChargePosition;
use crate::cost::Cost;
use crate::reading::{Admission, Reading};
use crate::time::{Millis, Timestamp};

/// When a step is taken, and how far from it stored state may lie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepTime {
    pub(crate) now: Timestamp,
    pub(crate) skew_max: Millis,
}

impl StepTime {
    /// Whether state of `stored_at` comes from an impossible future.
    pub(crate) fn is_from_future(self, stored_at: Timestamp) -> bool {
        stored_at > self.now.after(self.skew_max)
    }
}

/// What one algorithm does. Where the state is a few numbers, the methods are always inlined: read,
/// counted and read again, the state then stays in registers, and what both readings need is
/// computed once.
///
/// Nothing here reads a clock, fails, or touches what it is not given.
pub(crate) trait CellStep {
    /// What is stored between two charges.
    type State;

    /// How the limit stands and whether `cost` fits. Changes nothing, allocates nothing.
    fn read(&self, state: Option<&Self::State>, cost: Cost, at: StepTime) -> Reading;

    /// Counts `cost`, which fits, or was refused and counts all the same.
    fn take(
        &self,
        state: Option<Self::State>,
        cost: Cost,
        id: ChargeId,
        at: StepTime,
    ) -> Self::State;

    /// Gives `cost` back to where `position` or `id` says; answers the units that were given back.
    fn refund(
        &self,
        state: &mut Self::State,
        cost: Cost,
        position: ChargePosition,
        id: ChargeId,
        at: StepTime,
    ) -> u64;

    /// The least that has used what either of two states in force has: one by itself where it holds
    /// all that the other does.
    fn join(&self, one: Self::State, other: Self::State) -> Self::State;

    /// The moment from which the state says nothing any more.
    fn expires_at(&self, state: &Self::State) -> Timestamp;

    /// The moment from which nothing taken at `position` can be given back.
    fn refundable_until(&self, position: ChargePosition) -> Timestamp;
}

/// Two series that rise by `place` as one; what stands at one place in both is made one by `join`.
pub(crate) fn merge_series<T: Copy, P: Ord>(
    one: &[T],
    other: &[T],
    place: impl Fn(&T) -> P,
    join: impl Fn(T, T) -> T,
) -> Vec<T> {
    let mut joined = [one, other].concat();
    joined.sort_by_key(&place);
    joined.dedup_by(|next, kept| {
        let is_same = place(next) == place(kept);
        if is_same {
            *kept = join(*kept, *next);
        }
        is_same
    });
    joined
}

/// Leaves the last `most` of a list: as many of one unit each fill any quota that is kept as a list.
pub(crate) fn keep_last<T>(list: &mut Vec<T>, most: u64) {
    let superfluous = list.len().saturating_sub(usize::try_from(most).unwrap_or(usize::MAX));
    list.drain(..superfluous);
}

/// Whether `needed` fits beside `used`, or when so much of it has left that it does.
///
/// `leaving` are the units that leave and the moments at which they do, the first to leave first.
pub(crate) fn admission_after_expiry(
    quota: u64,
    mut used: u64,
    needed: u64,
    leaving: impl Iterator<Item = (u64, Timestamp)>,
) -> Admission {
    let Some(free) = quota.checked_sub(needed) else { return Admission::Never };
    if used <= free {
        return Admission::Now;
    }
    for (units, leaves_at) in leaving {
        used = used.saturating_sub(units);
        if used <= free {
            return Admission::At(leaves_at);
        }
    }
    // Not reached: what is used is the sum of what leaves, and nothing used fits.
    Admission::Never
}
