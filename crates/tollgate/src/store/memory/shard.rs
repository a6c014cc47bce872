//! A shard: one part of the store, with its own lock, and the operations on its entries.

use std::borrow::Cow;
use std::sync::Arc;

use smallvec::SmallVec;
use tollgate_core::decide::{Plain, assess_operation, charge_admitted, charge_refused, expires_at};
use tollgate_core::{
    Admission, Cell, Charge, Cost, Limit, Operation, Reading, StoredState, Timestamp, assess,
};

use super::bounds::Part;
use super::cells::{self, CELL_BYTES, Cells};
use super::overflow::{no_room, untagged, untagged_position};
use super::packed::{Content, Packed, Retention};
use super::pool::{LARGE, Pool};
use super::room::Room;
use super::shares::{Shares, Weight};
use super::table::Table;
use super::target::{
    CallOutcome, Destination, Growth, Target, counts, is_concurrency, remembered_until,
};

/// A part of the entries of the store, with bounds on their number and bytes.
///
/// The order of the fields puts the fields that every charge uses next to the lock, in one cache
/// line.
#[repr(C)]
pub(super) struct Shard {
    pub(super) table: Table<Packed>,
    /// The number of calls since the last run of the sweep.
    pub(super) unswept_calls: u32,
    pub(super) cells: Cells,
    pub(super) bounds: Part,
    pub(super) shares: Shares,
    /// The pool of the whole store.
    pub(super) pool: Arc<Pool>,
    /// The room that is reserved for the call in progress and is not used yet.
    pub(super) reserved_room: Room,
    /// The bytes of the pool that are reserved for the call in progress. Each element is the bucket
    /// of a limit and the bytes that are reserved for this limit.
    pub(super) promised_pool: SmallVec<[(u8, usize); 4]>,
    /// A time before which no entry expires.
    pub(super) first_end: Timestamp,
    /// Whether an overflow counter was used by the call in progress.
    pub(super) overflowed: bool,
    /// The slot at which the sweep continues.
    pub(super) cursor: usize,
    pub(super) counts: Counts,
}

/// Counts of a shard since it was created, and the number of refunds that it remembers now.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) evicted: u64,
    pub(super) swept: u64,
    pub(super) discarded: u64,
    pub(super) overflow: u64,
    pub(super) full: u64,
    pub(super) refunds: usize,
}

impl Shard {
    /// Creates an empty shard.
    pub(super) fn new(bounds: Part, pool: Arc<Pool>) -> Self {
        Self {
            table: Table::new(),
            cells: Cells::new(Arc::clone(&pool)),
            bounds,
            shares: Shares::new(bounds.share_limits),
            pool,
            reserved_room: Room::default(),
            promised_pool: SmallVec::new(),
            first_end: Timestamp::EPOCH,
            overflowed: false,
            cursor: 0,
            unswept_calls: 0,
            counts: Counts::default(),
        }
    }

    /// Returns whether `target` does not prevent the admission of its call: `target` is a charge
    /// that fits, or an operation other than a charge.
    pub(super) fn admits(&self, now: Timestamp, target: &Target<'_>) -> bool {
        target.charge.operation.as_charge().is_none()
            || self.peek(now, target).admission == Admission::Now
    }

    /// Returns the room that [`Self::execute`] will need for `target`.
    pub(super) fn room_for(
        &self,
        now: Timestamp,
        target: &Target<'_>,
        outcome: CallOutcome,
    ) -> Room {
        let slot = self.table.find(target.key);
        let limit = target.charge.limit;
        let packed = slot.and_then(|slot| self.table.get(slot)).map(|(_, packed)| packed);
        let is_pinned = packed.is_some_and(|packed| packed.retention() == Retention::Pinned);
        let content = packed.map(Packed::content);
        let room = match target.charge.operation {
            Operation::Charge { cost, .. } | Operation::Reserve { cost, .. }
                if !counts(limit, cost, outcome) =>
            {
                Room::NONE
            }
            Operation::Charge { .. } => match content {
                None => Room::for_entry(limit) + self.room_of_bound(target),
                Some(Content::Large(index)) => self.room_to_grow(index),
                Some(_) => Room::for_change(limit),
            },
            Operation::Reserve { .. } => match content {
                None => Room::ENTRY + Room::for_reservation() + self.room_of_bound(target),
                Some(Content::Large(index)) => {
                    self.room_to_grow(index) + Room::for_first_reservation()
                }
                Some(_) => Room::for_reservation(),
            },
            Operation::Refund { position, .. } => match target.refund {
                Some(refund)
                    if self.has_charged(target)
                        && now < remembered_until(limit, untagged_position(position), now)
                        && self.table.find(refund).is_none() =>
                {
                    return Room::ENTRY.pinning(false);
                }
                _ => Room::NONE,
            },
            Operation::Settle { .. }
            | Operation::Peek { .. }
            | Operation::Renew { .. }
            | Operation::Extend { .. } => Room::NONE,
            Operation::Reset => Room::NONE,
        };
        let pins =
            matches!(target.charge.operation, Operation::Reserve { .. }) || is_concurrency(limit);
        if room != Room::NONE && (pins || is_pinned) { room.pinning(is_pinned) } else { room }
    }

    /// Returns whether the entry or the overflow counter that counted the charge of `target`
    /// exists.
    fn has_charged(&self, target: &Target<'_>) -> bool {
        let Charge { limit, operation, .. } = target.charge;
        match untagged(operation) {
            Some(_) => self.shares.counter(limit.state_digest(), target.key).is_some(),
            None => self.table.find(target.key).is_some(),
        }
    }

    fn room_to_grow(&self, index: usize) -> Room {
        Room::for_growth(self.cells.heap(index), self.cells.growth(index))
    }

    /// Executes the operation of `target`. The room for everything that the operation adds must
    /// have been reserved.
    pub(super) fn execute(
        &mut self,
        now: Timestamp,
        target: &Target<'_>,
        outcome: CallOutcome,
        destination: Destination,
    ) -> Reading {
        let Charge { limit, operation, .. } = target.charge;
        let reading = match (operation, destination) {
            (
                Operation::Charge { cost, .. } | Operation::Reserve { cost, .. },
                Destination::Entry,
            ) => self.charge(now, target, cost, outcome),
            (
                Operation::Charge { cost, .. } | Operation::Reserve { cost, .. },
                Destination::Overflow,
            ) => self.charge_overflow(now, target, cost, outcome),
            (
                Operation::Charge { cost, .. } | Operation::Reserve { cost, .. },
                Destination::None,
            ) => no_room(limit, cost, self.leave(now, target), now),
            (Operation::Peek { .. }, _) | (Operation::Refund { .. }, Destination::None) => {
                self.peek(now, target)
            }
            (Operation::Refund { position, .. }, _) => self.refund(now, target, position),
            (Operation::Settle { .. } | Operation::Extend { .. }, _) => self.redeem(now, target),
            (Operation::Renew { .. }, _) => self.renew(now, target),
            (Operation::Reset, _) => self.change(now, target),
        };
        if reading.found == StoredState::Discarded {
            self.counts.discarded += 1;
        }
        reading
    }

    fn charge(
        &mut self,
        now: Timestamp,
        target: &Target<'_>,
        cost: Cost,
        outcome: CallOutcome,
    ) -> Reading {
        let Charge { limit, operation, .. } = target.charge;
        if !counts(limit, cost, outcome) {
            return self.leave(now, target);
        }
        let (bound, seed) = match self.table.find(target.key) {
            Some(_) => (None, None),
            None => {
                let counter = self.shares.counter(limit.state_digest(), target.key);
                let bound = counter.and_then(|counter| counter.bound(limit, now));
                match bound.map(Cow::into_owned) {
                    Some(bound) => (Some(bound), None),
                    None => (None, self.cells.seed(limit)),
                }
            }
        };
        self.step(target, Growth::ByHalf, |cell| {
            let bound = bound.map(cells::grown);
            let cell = cell.or(bound).or(seed).or_else(|| cells::seed(limit));
            let (reading, cell) = match outcome {
                CallOutcome::Admitted => charge_admitted(cell, limit, operation, now),
                CallOutcome::Refused => charge_refused(cell, limit, operation, now),
            };
            let retention = match reading.admission {
                Admission::Now => retention(cell.as_ref(), limit, cost, reading.fits_again, now),
                Admission::At(_) | Admission::Never => tenure_at_limit(cell.as_ref()),
            };
            (reading, cell, retention)
        })
    }

    /// Returns the reading of `target`. Changes nothing.
    pub(super) fn peek(&self, now: Timestamp, target: &Target<'_>) -> Reading {
        let Some(slot) = self.table.find(target.key) else {
            return self.judge_newcomer(now, target);
        };
        assess_operation(
            self.cell(slot).as_deref(),
            target.charge.limit,
            target.charge.operation,
            now,
        )
    }

    /// Returns the reading of a charge that the call does not count. If the limit itself refused
    /// this charge, marks the subject's entry as [`Retention::AtLimit`].
    pub(super) fn leave(&mut self, now: Timestamp, target: &Target<'_>) -> Reading {
        let reading = self.peek(now, target);
        let refused = reading.admission != Admission::Now && reading.found == StoredState::Present;
        let Some(slot) = self.table.find(target.key) else {
            self.overflowed |= refused;
            return reading;
        };
        if refused && let Some((_, packed)) = self.table.get(slot) {
            let before = self.weigh(packed);
            self.shares.remove(before);
            self.table.set(slot, packed.protected());
            self.shares.add(self.weigh(packed.protected()));
        }
        reading
    }

    /// Passes the state of `target` to `decide`, and stores the state that `decide` returns.
    /// `growth` states how the memory of a list changes.
    pub(super) fn step(
        &mut self,
        target: &Target<'_>,
        growth: Growth,
        decide: impl FnOnce(Option<Cell>) -> (Reading, Option<Cell>, Retention),
    ) -> Reading {
        let slot = self.table.find(target.key);
        let packed = slot.and_then(|slot| self.table.get(slot)).map(|(_, packed)| packed);
        let before = packed.map(|packed| self.weigh(packed));
        let cell = match packed.map(Packed::content) {
            Some(Content::Plain(state)) => Some(state.into()),
            Some(Content::Large(index)) => {
                let bucket = before.map_or(0, |weight| self.shares.bucket(weight.share));
                self.cells.lend(bucket, index)
            }
            Some(Content::Refunded) | None => None,
        };
        let cell = if growth == Growth::ByHalf { cell.map(cells::grown) } else { cell };
        let (reading, cell, retention) = decide(cell);
        let cell = if growth == Growth::None { cell.map(cells::fitted) } else { cell };
        self.keep(target, (slot, before), cell, retention);
        reading
    }

    /// Stores `cell` in a new slot, or in the existing slot of `target`. `before` is the weight of
    /// the entry in the existing slot.
    pub(super) fn keep(
        &mut self,
        target: &Target<'_>,
        (slot, before): (Option<usize>, Option<Weight>),
        cell: Option<Cell>,
        retention: Retention,
    ) {
        let limit = target.charge.limit;
        let expires_at = cell.as_ref().map(|cell| expires_at(cell, limit));
        let index = match slot.and_then(|slot| self.content(slot)) {
            Some(Content::Large(index)) => Some(index),
            _ => None,
        };
        if let Some(before) = before {
            self.shares.remove(before);
        }
        let share = match before {
            Some(before) => before.share,
            None => self.shares.enter(limit.state_digest()),
        };
        let expires_at = expires_at.filter(|end| *end > Timestamp::EPOCH);
        let (cell, expires_at) = match (cell, expires_at) {
            (Some(cell), Some(expires_at)) => (cell, expires_at),
            (over, _) => {
                if let Some(slot) = slot {
                    self.table.remove(slot);
                    self.forget_large(share, index);
                }
                if let Some(cell) = over {
                    self.cells.recycle(cell);
                }
                return;
            }
        };
        let bucket = self.shares.bucket(share);
        let packed = match (Plain::try_from(cell), index) {
            (Err(cell), Some(index)) => {
                self.cells.put_back(bucket, index, cell);
                Packed::large(index, expires_at, retention)
            }
            (Err(cell), None) => {
                Packed::large(self.cells.push(bucket, target.key, cell), expires_at, retention)
            }
            (Ok(state), index) => {
                self.forget_large(share, index);
                Packed::plain(state, expires_at, retention)
            }
        };
        let packed = packed.in_share(share);
        self.first_end = self.first_end.min(expires_at);
        self.shares.add(self.weigh(packed));
        match self.table.find(target.key) {
            Some(slot) => self.table.set(slot, packed),
            None => self.table.insert(target.key, packed),
        }
    }

    /// Removes the entry in `slot`.
    pub(super) fn forget(&mut self, slot: usize) {
        let Some((_, packed)) = self.table.get(slot) else { return };
        self.shares.remove(self.weigh(packed));
        self.table.remove(slot);
        match packed.content() {
            Content::Large(index) => self.forget_large(packed.share(), Some(index)),
            Content::Refunded => self.counts.refunds -= 1,
            Content::Plain(_) => {}
        }
    }

    /// Removes the large state at `index`. If another state moves to `index`, updates the index in
    /// the entry of that state.
    fn forget_large(&mut self, share: u8, index: Option<usize>) {
        let Some(index) = index else { return };
        let bucket = self.shares.bucket(share);
        let Some(slot) = self.cells.remove(bucket, index).and_then(|owner| self.table.find(owner))
        else {
            return;
        };
        if let Some((_, packed)) = self.table.get(slot) {
            self.table.set(slot, packed.moved_to(index));
        }
    }

    /// Returns the entry count and the bytes that an entry adds to its share. Excludes the bytes of
    /// the pool.
    pub(super) fn weigh(&self, packed: Packed) -> Weight {
        let bytes = match packed.content() {
            Content::Large(index) => {
                let heap = self.cells.heap(index);
                CELL_BYTES + if heap > LARGE { 0 } else { heap }
            }
            Content::Plain(_) | Content::Refunded => 0,
        };
        Weight { share: packed.share(), retention: packed.retention(), bytes }
    }

    fn content(&self, slot: usize) -> Option<Content> {
        self.table.get(slot).map(|(_, packed)| packed.content())
    }

    pub(super) fn cell(&self, slot: usize) -> Option<Cow<'_, Cell>> {
        match self.content(slot)? {
            Content::Plain(state) => Some(Cow::Owned(state.into())),
            Content::Large(index) => self.cells.get(index).map(Cow::Borrowed),
            Content::Refunded => None,
        }
    }
}

/// Returns the retention of a state after an operation of `cost`. The state is pinned while it has
/// units in flight or reserved units. Otherwise the retention depends on whether one more unit
/// fits. `fits_again` is used only if `cost` is one unit.
pub(super) fn retention(
    cell: Option<&Cell>,
    limit: &Limit,
    cost: Cost,
    fits_again: Admission,
    now: Timestamp,
) -> Retention {
    let fits_again =
        if cost.needed() == 1 { fits_again } else { assess(cell, limit, Cost::ONE, now).admission };
    match fits_again {
        Admission::Now if !is_pinned(cell) => Retention::Evictable,
        _ => tenure_at_limit(cell),
    }
}

/// Returns the [`retention`] of a state that has no units of its limit left.
fn tenure_at_limit(cell: Option<&Cell>) -> Retention {
    if is_pinned(cell) { Retention::Pinned } else { Retention::AtLimit }
}

const fn is_pinned(cell: Option<&Cell>) -> bool {
    matches!(cell, Some(Cell::Concurrency(_) | Cell::Reserved(_)))
}
