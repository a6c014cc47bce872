//! The algorithms, one in each file. Each algorithm is a pure function of its own small state.

pub mod concurrency;
pub mod fixed_window;
mod schedule;
pub mod sliding_log;
pub mod sliding_window;
pub mod token_bucket;
pub mod two_bucket;

pub use concurrency::Concurrency;
pub use fixed_window::{Anchor, FixedWindow};
pub use schedule::{Schedule, ScheduledWindow, WindowSchedule};
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

/// The time of a decision, and the allowed clock skew. The allowed clock skew is the largest
/// accepted difference between the clock of this decision and the clock that wrote the stored
/// state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepTime {
    pub(crate) now: Timestamp,
    pub(crate) skew_max: Millis,
}

impl StepTime {
    /// Returns whether `stored_at` is further in the future than the allowed clock skew.
    pub(crate) fn is_from_future(self, stored_at: Timestamp) -> bool {
        stored_at > self.now.after(self.skew_max)
    }
}

/// The operations of one algorithm. A charge reads the limit, counts the cost, and reads the limit
/// again. If the state of an algorithm is a few numbers, its methods are always inlined: the state
/// then stays in registers during all three steps, and a value that both readings need is computed
/// once.
///
/// No method reads a clock, fails, or accesses anything but its arguments.
pub(crate) trait CellStep {
    /// The state that is stored between two charges.
    type State;

    /// Returns the reading of the limit, which states whether `cost` fits. The method does not
    /// change `state` and allocates no memory.
    fn read(&self, state: Option<&Self::State>, cost: Cost, at: StepTime) -> Reading;

    /// Returns the next state, in which the admitted units `cost` are counted. All of them count,
    /// even if they exceed the quota: a settlement may use an overdraft.
    fn charge(
        &self,
        state: Option<Self::State>,
        cost: Cost,
        id: ChargeId,
        at: StepTime,
    ) -> Self::State;

    /// Returns the next state after a refused charge of `cost`, for a limit that counts refusals.
    ///
    /// Charges with different quotas can share the state, so no refused charge may lower the usage
    /// that another quota has counted.
    #[inline(always)]
    fn charge_refused(
        &self,
        state: Option<Self::State>,
        cost: Cost,
        id: ChargeId,
        at: StepTime,
    ) -> Self::State {
        self.charge(state, cost, id, at)
    }

    /// Returns the reading after [`charge`](CellStep::charge) counted `cost`. `before` is the
    /// reading from before the charge, and `state` is the state after the charge. The returned
    /// reading equals that of [`read`](CellStep::read) for the same `state`.
    #[inline(always)]
    fn read_after(
        &self,
        _before: &Reading,
        state: &Self::State,
        cost: Cost,
        at: StepTime,
    ) -> Reading {
        self.read(Some(state), cost, at)
    }

    /// Returns up to `cost` units to the window, block or bucket at `position`. A concurrency limit
    /// ignores `cost` and `position`: it removes the permit of the charge `id`, with all of its
    /// units. Returns the number of refunded units.
    fn refund(
        &self,
        state: &mut Self::State,
        cost: Cost,
        position: ChargePosition,
        id: ChargeId,
        at: StepTime,
    ) -> u64;

    /// Merges two valid states into the smallest state that contains the usage of each. If one
    /// state already contains the usage of the other, the result is that state.
    fn join(&self, one: Self::State, other: Self::State) -> Self::State;

    /// Returns the time at which the state expires: from this time on, it equals a missing state.
    fn expires_at(&self, state: &Self::State) -> Timestamp;

    /// Returns the time from which a refund of units that were charged at `position` returns
    /// nothing.
    fn refundable_until(&self, position: ChargePosition) -> Timestamp;
}

/// An algorithm whose state is a few numbers.
pub(crate) trait PlainStep: CellStep<State: Copy> {
    /// Counts `cost` if it fits, and returns the next state and the reading after the charge. Both
    /// equal the results of [`read`](CellStep::read), [`charge`](CellStep::charge) and a second
    /// [`read`](CellStep::read). This method is faster, because it advances the state to the
    /// present time only once.
    ///
    /// # Errors
    /// If `cost` does not fit, returns the reading, and counts nothing.
    fn charge_if_fits(
        &self,
        state: &Self::State,
        cost: Cost,
        at: StepTime,
    ) -> Result<(Self::State, Reading), Reading>;
}

/// Merges two lists into one list that is sorted by key. The function `position` returns the key of
/// an entry, and both lists must be sorted by it. Two entries with the same key become one entry,
/// which the function `join` returns.
pub(crate) fn merge_series<T: Copy, P: Ord>(
    one: &[T],
    other: &[T],
    position: impl Fn(&T) -> P,
    join: impl Fn(T, T) -> T,
) -> Vec<T> {
    let mut joined = [one, other].concat();
    joined.sort_by_key(&position);
    joined.dedup_by(|next, kept| {
        let is_same = position(next) == position(kept);
        if is_same {
            *kept = join(*kept, *next);
        }
        is_same
    });
    joined
}

/// Removes the first entries of a list, so that at most the last `most` entries are left. If `most`
/// is the largest allowed quota, the removed entries affect no decision until units are refunded:
/// each entry counts at least one unit, so the remaining entries alone fill every quota.
///
/// The entries are removed and not merged, because a join must have the same result if it is
/// repeated.
pub(crate) fn keep_last<T>(list: &mut Vec<T>, most: u64) {
    let superfluous = list.len().saturating_sub(usize::try_from(most).unwrap_or(usize::MAX));
    list.drain(..superfluous);
}

/// Returns whether `needed` units fit into `quota` in addition to the `used` units. If they do not
/// fit now, returns the time at which enough of the used units will have expired.
///
/// Each element of `leaving` is a number of used units and the time at which these units expire.
/// The elements are sorted by time, the earliest first.
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
    // Unreachable: `used` is the sum of the expiring units, and `needed` fits when nothing is used.
    Admission::Never
}
