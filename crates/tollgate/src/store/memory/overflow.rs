//! Overflow counters: shared counters for subjects that have no entry of their own.
//!
//! A counter is an upper bound of the usage of each of its subjects. [`Counter::bound`] is a sum:
//! the ceiling (the highest usage of any subject with a dropped entry) plus the cell (everything
//! that this counter charged, for all of its subjects together). Therefore the counter never admits
//! a subject beyond the quota. When the subject gets an entry later, the entry starts with that sum
//! as its usage.

use std::borrow::Cow;
use std::ops::Range;

use tollgate_core::algo::two_bucket;
use tollgate_core::decide::{assess_operation, charge_admitted, expires_at};
use tollgate_core::time::DEFAULT_SKEW_MAX;
use tollgate_core::{
    Admission, Algorithm, Cell, ChargeId, ChargePosition, Cost, Limit, MAX_EXACT, Operation,
    Reading, StoredState, Timestamp, assess,
};

use super::cells::units_of;

/// An upper bound of the usage of one subject, valid until the time at which all of that usage has
/// expired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ceiling {
    /// Used units. For a token bucket this field is 0, because `until` alone determines the usage.
    pub(super) used: u64,
    /// The time from which no unit is used any more.
    pub(super) until: Timestamp,
}

impl Ceiling {
    /// Raises this ceiling to an upper bound of the usage in both ceilings, `self` and `other`. If
    /// the usage in this ceiling has expired at `now`, `other` replaces it.
    pub(super) fn raise(&mut self, other: Self, now: Timestamp) {
        if self.until <= now {
            *self = other;
            return;
        }
        self.used = self.used.max(other.used);
        self.until = self.until.max(other.until);
    }

    /// Returns an upper bound of the units that are still used at `now`.
    fn used_at(self, limit: &Limit, now: Timestamp) -> u64 {
        if self.until <= now {
            return 0;
        }
        let Algorithm::TokenBucket(bucket) = limit.algorithm() else { return self.used };
        let missing = u128::from(self.until.since(now).get()) * u128::from(bucket.quota());
        let units = missing.div_ceil(u128::from(bucket.window().get().max(1)));
        u64::try_from(units).unwrap_or(MAX_EXACT).min(MAX_EXACT)
    }
}

/// One overflow counter of one limit.
#[derive(Clone, Debug, Default)]
pub(super) struct Counter {
    /// The highest usage of any subject whose entry was dropped.
    pub(super) ceiling: Ceiling,
    /// The state of everything that this counter charged, for all of its subjects together.
    pub(super) cell: Option<Cell>,
    /// The time at which the cell expires.
    pub(super) cell_over_at: Timestamp,
}

impl Counter {
    /// Returns whether the counter has expired for every caller, even for a caller with a clock
    /// that is behind by the largest allowed difference.
    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        self.ceiling.until.max(self.cell_over_at).after(DEFAULT_SKEW_MAX) <= now
    }

    /// Returns a state of `limit` that has used at least as much as any subject of this counter.
    ///
    /// For a concurrency limit, the state is the cell. Permits are distinguished by their ids, so
    /// the permits of all subjects together are an upper bound for each subject.
    pub(super) fn bound(&self, limit: &Limit, now: Timestamp) -> Option<Cow<'_, Cell>> {
        if matches!(limit.algorithm(), Algorithm::Concurrency(_)) {
            return self.cell.as_ref().map(Cow::Borrowed);
        }
        let dropped = self.ceiling.used_at(limit, now);
        if let Some(cell @ Cell::TwoBucket(charged)) = &self.cell
            && assess(Some(cell), limit, Cost::PEEK, now).found == StoredState::Present
        {
            let ceiling = (dropped > 0).then_some(self.ceiling.until);
            let dropped = ceiling.and_then(|until| charged_until(limit, dropped, until, now));
            return Some(match dropped {
                Some(Cell::TwoBucket(dropped)) => {
                    let window = limit.window().get();
                    Cow::Owned(sum_of(charged, &dropped, now.as_millis() / window))
                }
                _ => Cow::Borrowed(cell),
            });
        }
        let charged = self.cell.as_ref().map_or(0, |cell| {
            // A `two_bucket` state is an estimate that decays over time. If it has reservations, all
            // of its units count until the state expires, so they remain an upper bound.
            if matches!(limit.algorithm(), Algorithm::TwoBucket(_)) {
                return if now < self.cell_over_at { units_of(cell) } else { 0 };
            }
            let reading = assess(Some(cell), limit, Cost::PEEK, now);
            if reading.found == StoredState::Present { reading.used } else { 0 }
        });
        let used = dropped.saturating_add(charged);
        if used == 0 {
            return None;
        }
        let mut until = Timestamp::EPOCH;
        if dropped > 0 {
            until = self.ceiling.until;
        }
        if charged > 0 {
            until = until.max(self.cell_over_at);
        }
        charged_until(limit, used, until, now).map(Cow::Owned)
    }

    /// Returns the reading that a subject of this counter receives for `operation`. Changes
    /// nothing.
    pub(super) fn evaluate(&self, limit: &Limit, operation: Operation, now: Timestamp) -> Reading {
        let bound = self.bound(limit, now);
        let reading = assess_operation(bound.as_deref(), limit, operation, now);
        match &self.cell {
            // The reservations are only in the cell, so the operation must fit in the cell as well.
            Some(cell @ Cell::Reserved(_)) => {
                let own = assess_operation(Some(cell), limit, operation, now);
                let (admission, fits_again) =
                    (reading.admission.max(own.admission), reading.fits_again.max(own.fits_again));
                Reading {
                    admission,
                    fits_again,
                    reserved: own.reserved,
                    found: StoredState::Present,
                    ..reading
                }
            }
            _ => reading,
        }
    }

    /// Stores `cell`, the state after a decision, and the time at which this state expires.
    pub(super) fn keep(&mut self, cell: Option<Cell>, limit: &Limit) {
        self.cell_over_at = cell.as_ref().map_or(Timestamp::EPOCH, |cell| expires_at(cell, limit));
        self.cell = cell.filter(|_| self.cell_over_at > Timestamp::EPOCH);
    }
}

/// Returns the state with the units of both states. `at` is the number of the bucket of the caller's
/// time. The estimate of this state is the sum of their estimates at any time from then on. If that
/// bucket is before the newest bucket of the states, the estimate may be higher: older units that
/// still count are added to the previous bucket.
fn sum_of(one: &two_bucket::State, other: &two_bucket::State, at: u64) -> Cell {
    let bucket = one.bucket.max(other.bucket);
    let oldest = at.min(bucket).saturating_sub(1);
    let used_in = |state: &two_bucket::State, numbers: Range<u64>| {
        let is_previous = state.bucket.checked_sub(1).is_some_and(|it| numbers.contains(&it));
        let previous = if is_previous { state.previous } else { 0 };
        let current = if numbers.contains(&state.bucket) { state.current } else { 0 };
        current.saturating_add(previous)
    };
    let units =
        |numbers: Range<u64>| used_in(one, numbers.clone()).saturating_add(used_in(other, numbers));
    let (previous, current) = (units(oldest..bucket), units(bucket..bucket.saturating_add(1)));
    Cell::TwoBucket(two_bucket::State { bucket, previous, current })
}

/// Returns a new state of `limit` that has used `units`. All of these units expire at `until`, and
/// none expires earlier.
fn charged_until(limit: &Limit, units: u64, until: Timestamp, now: Timestamp) -> Option<Cell> {
    let operation = Operation::Charge { cost: Cost::up_to(units), id: ChargeId::default() };
    let charged_at = |at| charge_admitted(None, limit, operation, at).1;
    if matches!(limit.algorithm(), Algorithm::TokenBucket(_)) {
        return charged_at(now);
    }
    let span = expires_at(&charged_at(until)?, limit).since(until);
    let at = Timestamp::from_millis(until.as_millis().saturating_sub(span.get()));
    // The store ignores a state that is too far in the future, so the time of the charge is capped.
    charged_at(at.min(now.after(limit.skew_tolerance())))
}

/// Returns the reading of a charge that is refused because neither an entry nor an overflow counter
/// has room for it. `reading` is the reading that the charge would have without this refusal.
pub(super) fn no_room(limit: &Limit, cost: Cost, reading: Reading, now: Timestamp) -> Reading {
    let ready_at = now.after(super::RETRY_WITHOUT_ROOM).max(match reading.admission {
        Admission::At(moment) => moment,
        Admission::Now | Admission::Never => now,
    });
    let admission = if reading.admission == Admission::Never {
        Admission::Never
    } else {
        Admission::At(ready_at)
    };
    // A refusal never reports enough remaining units for its cost.
    let used = reading.used.max((limit.capacity() + 1).saturating_sub(cost.needed()));
    Reading {
        admission,
        fits_again: admission,
        used,
        full_reset_at: reading.full_reset_at.max(ready_at),
        ..reading
    }
}

/// The bit that marks a [`ChargePosition`] as the position of a charge in an overflow counter: the
/// lowest bit above the bits that algorithms use. The fallback wraps this store, and uses the bits
/// above `TAG` to mark which of its stores made the charge.
const TAG: u64 = MAX_EXACT + 1;

/// Returns `position`, marked as the position of a charge in an overflow counter.
pub(super) const fn tagged(position: ChargePosition) -> ChargePosition {
    ChargePosition(position.0 | TAG)
}

/// Returns the position that the algorithm created, without the marks that stores added.
pub(super) const fn untagged_position(position: ChargePosition) -> ChargePosition {
    ChargePosition(position.0 & MAX_EXACT)
}

/// If `operation` refers to a charge in an overflow counter, returns the operation with an unmarked
/// position, as the algorithm created it. Otherwise returns `None`.
pub(super) fn untagged(mut operation: Operation) -> Option<Operation> {
    match &mut operation {
        Operation::Refund { position, .. }
        | Operation::Settle { position, .. }
        | Operation::Extend { position, .. }
            if position.0 & TAG != 0 =>
        {
            position.0 &= !TAG;
            Some(operation)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use tollgate_core::Millis;
    use tollgate_core::algo::TwoBucket;

    use super::*;

    /// The bug: the clock of a caller was behind that of an earlier caller. The sum of the ceiling and
    /// the cell lacked the units of the oldest bucket, although the bucket still counted.
    #[test]
    fn the_oldest_bucket_did_not_count_after_the_clock_was_set_back() {
        let window = 10_000;
        let limit = TwoBucket::new(20, Millis::new(window)).unwrap();
        let limit = Limit::new("limit", Algorithm::TwoBucket(limit)).unwrap();
        let now = Timestamp::from_millis(5 * window + 8_000);
        for (of_cell, of_ceiling) in [(5, 6), (6, 4), (6, 5)] {
            let cell = two_bucket::State { bucket: of_cell, previous: 10, current: 3 };
            let dropped = two_bucket::State { bucket: of_ceiling, previous: 0, current: 5 };
            let mut counter = Counter::default();
            counter.keep(Some(Cell::TwoBucket(cell)), &limit);
            let until = expires_at(&Cell::TwoBucket(dropped), &limit);
            counter.ceiling = Ceiling { used: 5, until };
            let used = |cell: &Cell| assess(Some(cell), &limit, Cost::PEEK, now).used;
            let bound = used(&counter.bound(&limit, now).unwrap());
            let both = [cell, dropped].map(|state| used(&Cell::TwoBucket(state)));
            assert!(bound >= both[0] + both[1], "{bound} for {both:?}");
        }
    }
}
