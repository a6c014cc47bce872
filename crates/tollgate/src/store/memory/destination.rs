//! Finds where a charge is counted: in the subject's own entry, in an overflow counter, or nowhere.

use tollgate_core::decide::{charge_admitted, charge_refused, decide};
use tollgate_core::{Admission, Charge, ChargePosition, Cost, Operation, Reading, Timestamp};

use super::cells::{self, FRESH_HEAP, FRESH_RESERVATION_HEAP, growth_of_cell};
use super::fingerprint::Fingerprint;
use super::overflow::{Counter, no_room, tagged, untagged};
use super::pool::LARGE;
use super::room::Room;
use super::shard::Shard;
use super::shares::OTHERS;
use super::target::{CallOutcome, Destination, Target, counts, is_concurrency};

impl Shard {
    /// Finds where to count the charge `target`, and reserves the room that the charge needs there.
    pub(super) fn destination(
        &mut self,
        now: Timestamp,
        target: &Target<'_>,
        outcome: CallOutcome,
        pinned: &impl Fn(Fingerprint) -> bool,
    ) -> Destination {
        let Charge { limit, operation, .. } = target.charge;
        let is_redeemed_there = untagged(operation).is_some();
        let room = self.room_for(now, target, outcome);
        if room == Room::NONE {
            return if is_redeemed_there { Destination::Overflow } else { Destination::Entry };
        }
        let share = self.shares.enter(limit.state_digest());
        let has_room = self.reserve_room(now, share, room, pinned);
        if has_room {
            return if is_redeemed_there { Destination::Overflow } else { Destination::Entry };
        }
        let is_new = self.table.find(target.key).is_none() && operation.as_charge().is_some();
        if is_new && self.promise_overflow(share, target) {
            return Destination::Overflow;
        }
        self.counts.full += 1;
        Destination::None
    }

    /// Reserves the bytes by which the overflow counter of `target` grows when it counts the charge.
    /// `share` is the index of the limit's share of the store. Returns `false`, and reserves
    /// nothing, if too few bytes are free.
    fn promise_overflow(&mut self, share: u8, target: &Target<'_>) -> bool {
        let Charge { limit, operation, .. } = target.charge;
        if share == OTHERS {
            return false;
        }
        let counter = self.shares.counter(limit.state_digest(), target.key);
        let growth = match counter.and_then(|counter| counter.cell.as_ref()) {
            Some(cell) => growth_of_cell(cell),
            None if cells::is_list(limit) => FRESH_HEAP,
            None => 0,
        };
        let reservation = match operation {
            Operation::Reserve { .. } if !is_concurrency(limit) => FRESH_RESERVATION_HEAP,
            _ => 0,
        };
        growth + reservation == 0 || self.promise_pool(share, growth + reservation)
    }

    /// Returns the reading of `target` for a subject without an entry. If the subject has an
    /// overflow counter, the reading is from this counter.
    pub(super) fn judge_newcomer(&self, now: Timestamp, target: &Target<'_>) -> Reading {
        let Charge { limit, operation, .. } = target.charge;
        match self.shares.counter(limit.state_digest(), target.key) {
            Some(counter) => counter.evaluate(limit, operation, now),
            None => tollgate_core::decide::assess_operation(None, limit, operation, now),
        }
    }

    /// Counts a charge in the overflow counter of its subject.
    pub(super) fn charge_overflow(
        &mut self,
        now: Timestamp,
        target: &Target<'_>,
        cost: Cost,
        outcome: CallOutcome,
    ) -> Reading {
        let Charge { limit, operation, .. } = target.charge;
        self.overflowed = true;
        if !counts(limit, cost, outcome) {
            return self.judge_newcomer(now, target);
        }
        let before = self.judge_newcomer(now, target);
        let share = self.shares.enter(limit.state_digest());
        let Some(counter) = self.shares.open_counter(share, target.key) else {
            return no_room(limit, cost, before, now);
        };
        let cell = counter.cell.take();
        let heap = cell.as_ref().map_or(0, cells::heap_of);
        let cell = cell.map(cells::grown).or_else(|| cells::seed(limit));
        let (reading, cell) = match outcome {
            CallOutcome::Admitted => charge_admitted(cell, limit, operation, now),
            CallOutcome::Refused => charge_refused(cell, limit, operation, now),
        };
        counter.keep(cell, limit);
        let after = counter.evaluate(limit, operation, now);
        self.account_counter(share, target.key, heap);
        let is_admitted = outcome == CallOutcome::Admitted || before.admission == Admission::Now;
        let admission = if is_admitted { Admission::Now } else { after.admission };
        Reading {
            admission,
            fits_again: after.admission,
            position: tagged(reading.position),
            found: before.found,
            ..after
        }
    }

    /// Refunds, settles or extends a charge that was counted in an overflow counter.
    pub(super) fn redeem_by_overflow(
        &mut self,
        now: Timestamp,
        target: &Target<'_>,
        operation: Operation,
    ) -> Reading {
        let limit = target.charge.limit;
        let counter = self.shares.counter_mut(limit.state_digest(), target.key);
        let Some((heap, reading)) = counter.map(|counter| redeem(counter, target, operation, now))
        else {
            return decide(None, limit, operation, now).0;
        };
        self.overflowed = true;
        let share = self.shares.enter(limit.state_digest());
        self.account_counter(share, target.key, heap);
        reading
    }

    /// Renews a permit in an overflow counter. Returns `None` if the overflow counter has no permit
    /// with the id of the charge.
    pub(super) fn renew_by_overflow(
        &mut self,
        now: Timestamp,
        target: &Target<'_>,
    ) -> Option<Reading> {
        let Charge { limit, operation, .. } = target.charge;
        if !is_concurrency(limit) {
            return None;
        }
        self.shares.counter(limit.state_digest(), target.key)?.cell.as_ref()?;
        let reading = self.redeem_by_overflow(now, target, operation);
        (reading.admission == Admission::Now).then_some(reading)
    }

    /// Updates the bytes that the cell of an overflow counter charges to the pool. The cell used
    /// `before` bytes before its change.
    fn account_counter(&mut self, share: u8, key: Fingerprint, before: usize) {
        let counter = self.shares.open_counter(share, key);
        let cell = counter.and_then(|counter| counter.cell.as_ref());
        let after = cell.map_or(0, cells::heap_of);
        let bucket = self.shares.bucket(share);
        self.pool.release(bucket, before);
        self.pool.allocate(bucket, after);
        self.shares.pooled = self.shares.pooled - before + after;
    }

    /// Returns the room that a new entry needs if the entry starts from the state of its overflow
    /// counter, which is an upper bound of the subject's usage.
    pub(super) fn room_of_bound(&self, target: &Target<'_>) -> Room {
        let limit = target.charge.limit;
        if !is_concurrency(limit) {
            return Room::NONE;
        }
        let counter = self.shares.counter(limit.state_digest(), target.key);
        let Some(cell) = counter.and_then(|counter| counter.cell.as_ref()) else {
            return Room::NONE;
        };
        // The entry's copy has the size of the cell, and its list then grows by a half.
        let heap = cells::heap_of(cell) / 2 * 3 + FRESH_HEAP;
        if heap > LARGE { Room { pool: heap, ..Room::NONE } } else { Room { heap, ..Room::NONE } }
    }
}

/// Applies `operation` to the cell of `counter`. Returns the bytes that the cell had allocated
/// before the operation, and the reading after it.
fn redeem(
    counter: &mut Counter,
    target: &Target<'_>,
    operation: Operation,
    now: Timestamp,
) -> (usize, Reading) {
    let limit = target.charge.limit;
    let heap = counter.cell.as_ref().map_or(0, cells::heap_of);
    let (reading, cell) = decide(counter.cell.take(), limit, operation, now);
    counter.keep(cell.map(cells::fitted), limit);
    let after = counter.evaluate(limit, Operation::Peek { cost: Cost::PEEK }, now);
    let Reading { admission, refunded, added, found, .. } = reading;
    let position = if reading.position == ChargePosition::default() {
        reading.position
    } else {
        tagged(reading.position)
    };
    (heap, Reading { admission, refunded, added, found, position, ..after })
}
