//! One part of the store, behind one lock: what the step does to its entries.

use std::borrow::Cow;
use std::sync::Arc;

use smallvec::SmallVec;
use tollgate_core::decide::{
    Plain, assess_operation, charge_admitted, charge_plain, charge_refused, expires_at,
    refundable_until,
};
use tollgate_core::{
    Admission, Algorithm, Cell, Charge, ChargePosition, Cost, Limit, MAX_EXACT, Operation, Reading,
    Refusals, StoredState, Timestamp, assess, decide,
};

use super::bounds::Part;
use super::cells::{self, CELL_BYTES, Cells};
use super::fingerprint::Fingerprint;
use super::overflow::{no_room, untagged};
use super::packed::{Content, Packed, Retention};
use super::pool::{LARGE, Pool};
use super::room::Room;
use super::seat::Seat;
use super::shares::{Shares, Weight};
use super::table::Table;

/// Some of the entries, and what their number and bytes may come to.
pub(super) struct Shard {
    pub(super) table: Table<Packed>,
    pub(super) cells: Cells,
    pub(super) bounds: Part,
    pub(super) shares: Shares,
    /// Of the whole store.
    pub(super) pool: Arc<Pool>,
    /// What calls in progress have been promised and not yet used.
    pub(super) reserved_room: Room,
    /// The same of the pool, by buckets.
    pub(super) promised_pool: SmallVec<[(u8, usize); 4]>,
    /// No entry is over before.
    pub(super) first_end: Timestamp,
    /// Whether an overflow counter took part in the call in progress.
    pub(super) overflowed: bool,
    /// The slot at which the sweep goes on.
    pub(super) cursor: usize,
    /// Calls since the sweep last went on.
    pub(super) unswept_calls: u32,
    pub(super) counts: Counts,
}

/// What happened in a shard since it was made, and how many refunds it remembers now.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) evicted: u64,
    pub(super) swept: u64,
    pub(super) discarded: u64,
    pub(super) overflow: u64,
    pub(super) full: u64,
    pub(super) refunds: usize,
}

/// One charge and where its entries are.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) charge: Charge<'a>,
    /// Of the limit and the subject; also tells the shard.
    pub(super) key: Fingerprint,
    /// Of the refund, where it may arrive twice.
    pub(super) refund: Option<Fingerprint>,
}

/// What becomes of the memory of a list while it is decided on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Growth {
    /// It has room for one more, as it was promised.
    ByHalf,
    /// It stays.
    Kept,
    /// It shrinks to what it holds.
    None,
}

/// Whether every take of the call fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallOutcome {
    /// Every one: all are counted.
    Admitted,
    /// Not every one: none is counted, unless its limit counts refusals.
    Refused,
}

impl CallOutcome {
    /// Of a call whose only take fits like this.
    pub(super) fn of(admission: Admission) -> Self {
        if admission == Admission::Now { Self::Admitted } else { Self::Refused }
    }
}

impl Shard {
    /// An empty shard.
    pub(super) fn new(bounds: Part, pool: Arc<Pool>) -> Self {
        Self {
            table: Table::new(),
            cells: Cells::new(Arc::clone(&pool)),
            bounds,
            shares: Shares::new(bounds.places),
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

    /// Carries out a take alone in its call whose state is in its entry and stays there: the most
    /// frequent charge by far. `None`, with nothing changed, where more is needed.
    #[inline(always)]
    pub(super) fn take_in_place(
        &mut self,
        now: Timestamp,
        charge: &Charge<'_>,
        key: Fingerprint,
    ) -> Option<Reading> {
        let Charge { limit, operation: Operation::Charge { cost, .. }, .. } = *charge else {
            return None;
        };
        let slot = self.table.find(key)?;
        let (_, packed) = self.table.get(slot)?;
        let Content::Plain(state) = packed.content() else { return None };
        let (reading, next) = charge_plain(state, limit, cost, now)?;
        let refused = reading.admission != Admission::Now;
        let after = if counts(limit, cost, CallOutcome::of(reading.admission)) {
            let retention = match reading.admission {
                Admission::Now => plain_retention(next, limit, cost, reading.fits_again, now),
                Admission::At(_) | Admission::Never => Retention::AtLimit,
            };
            // A plain state is over as soon as nothing of it is used any more.
            Packed::plain(next, reading.full_reset_at, retention).in_share_of(packed)
        } else if refused && reading.found == StoredState::Present {
            packed.protected()
        } else {
            packed
        };
        self.shares.turn(packed.share(), packed.retention(), after.retention());
        self.table.set(slot, after);
        self.counts.discarded += u64::from(reading.found == StoredState::Discarded);
        Some(reading)
    }

    /// Whether `target` stands in nobody's way: a take that fits, or what takes nothing.
    pub(super) fn admits(&self, now: Timestamp, target: &Target<'_>) -> bool {
        target.charge.operation.as_charge().is_none()
            || self.look(now, target).admission == Admission::Now
    }

    /// The room that [`Self::carry_out`] will need.
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
                        && now < remembered_until(limit, untagged_mark(position), now)
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

    /// Whether there is anything that `target` was charged to.
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

    /// Does what `target` asks; whatever it adds must have been promised.
    pub(super) fn execute(
        &mut self,
        now: Timestamp,
        target: &Target<'_>,
        outcome: CallOutcome,
        seat: Seat,
    ) -> Reading {
        let Charge { limit, operation, .. } = target.charge;
        let reading = match (operation, seat) {
            (Operation::Charge { cost, .. } | Operation::Reserve { cost, .. }, Seat::Entry) => {
                self.take(now, target, cost, outcome)
            }
            (Operation::Charge { cost, .. } | Operation::Reserve { cost, .. }, Seat::Overflow) => {
                self.take_by_overflow(now, target, cost, outcome)
            }
            (Operation::Charge { cost, .. } | Operation::Reserve { cost, .. }, Seat::Nowhere) => {
                no_room(limit, cost, self.leave(now, target), now)
            }
            (Operation::Peek { .. }, _) | (Operation::Refund { .. }, Seat::Nowhere) => {
                self.look(now, target)
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

    fn take(
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
        let bound = match self.table.find(target.key) {
            Some(_) => None,
            None => {
                let counter = self.shares.counter(limit.state_digest(), target.key);
                let bound = counter.and_then(|counter| counter.bound(limit, now));
                bound.map(Cow::into_owned)
            }
        };
        self.step(target, Growth::ByHalf, |cell| {
            let bound = bound.map(cells::grown);
            let cell = cell.or(bound).or_else(|| cells::seed(limit));
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

    /// How the limit stands.
    pub(super) fn look(&self, now: Timestamp, target: &Target<'_>) -> Reading {
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

    /// Answers a take that is not counted. If it was refused here, what refused it stays.
    fn leave(&mut self, now: Timestamp, target: &Target<'_>) -> Reading {
        let reading = self.look(now, target);
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

    /// Gives back, unless that was done before; remembers it where it may be asked again.
    fn refund(&mut self, now: Timestamp, target: &Target<'_>, position: ChargePosition) -> Reading {
        if target.refund.is_some_and(|refund| self.table.find(refund).is_some()) {
            return self.leave(now, target);
        }
        let reading = self.redeem(now, target);
        let limit = target.charge.limit;
        let until = remembered_until(limit, untagged_mark(position), now);
        if let Some(refund) = target.refund
            && reading.refunded > 0
            && now < until
        {
            let share = self.shares.enter(limit.state_digest());
            let packed = Packed::refunded(until).in_share(share);
            self.table.insert(refund, packed);
            self.shares.add(self.weigh(packed));
            self.first_end = self.first_end.min(until);
            self.counts.refunds += 1;
        }
        reading
    }

    /// Refunds, settles or extends a charge where it was counted.
    ///
    /// Settling puts the real cost in the place of what is held, which may be one charge more: the
    /// state lets go of the hold, and of all memory that it does not need.
    fn redeem(&mut self, now: Timestamp, target: &Target<'_>) -> Reading {
        let Charge { limit, operation, .. } = target.charge;
        let Some(there) = untagged(operation) else { return self.change(now, target) };
        let reading = self.redeem_by_overflow(now, target, there);
        if !is_concurrency(limit) || self.table.find(target.key).is_none() {
            return reading;
        }
        // The entry began with every permit of the counter.
        let charge = Charge { operation: there, ..target.charge };
        let here = self.change(now, &Target { charge, ..*target });
        let refunded = here.refunded.max(reading.refunded);
        Reading { admission: here.admission.min(reading.admission), refunded, ..here }
    }

    /// Renews a permit wherever it is counted.
    fn renew(&mut self, now: Timestamp, target: &Target<'_>) -> Reading {
        if self.table.find(target.key).is_none() {
            let renewed = self.renew_by_overflow(now, target);
            return renewed.unwrap_or_else(|| {
                decide(None, target.charge.limit, target.charge.operation, now).0
            });
        }
        let here = self.change(now, target);
        match self.renew_by_overflow(now, target) {
            Some(_) => Reading { admission: Admission::Now, ..here },
            None => here,
        }
    }

    fn change(&mut self, now: Timestamp, target: &Target<'_>) -> Reading {
        let Charge { limit, operation, .. } = target.charge;
        let growth = match operation {
            Operation::Settle { .. } => Growth::None,
            _ => Growth::Kept,
        };
        self.step(target, growth, |cell| {
            let (reading, cell) = decide(cell, limit, operation, now);
            let retention = retention(cell.as_ref(), limit, Cost::PEEK, reading.fits_again, now);
            (reading, cell, retention)
        })
    }

    /// Passes the state of `target` through `decide` and keeps what comes out.
    fn step(
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

    /// Puts `cell` in the slot of `target`, which had this weight before, or in a new one.
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
        let (Some(cell), Some(expires_at)) =
            (cell, expires_at.filter(|end| *end > Timestamp::EPOCH))
        else {
            if let Some(slot) = slot {
                self.table.remove(slot);
                self.forget_large(share, index);
            }
            return;
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

    /// Removes a large state, and tells the owner of the one that took its place.
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

    /// What an entry counts for in its share: of what it allocates, that which is not the pool's.
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

/// What [`retention`] is of a plain state, which needs no cell for an ask of one unit.
#[inline]
fn plain_retention(
    state: Plain,
    limit: &Limit,
    cost: Cost,
    fits_again: Admission,
    now: Timestamp,
) -> Retention {
    match fits_again {
        Admission::Now if cost.needed() == 1 => Retention::Evictable,
        Admission::At(_) | Admission::Never if cost.needed() == 1 => Retention::AtLimit,
        _ => retention(Some(&state.into()), limit, cost, fits_again, now),
    }
}

/// Whether the state after an ask may be dropped: not while units are in flight or held, nor where no unit
/// more fits. `fits_again` says it for an ask of one unit; for another it has to be found out.
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

/// What [`retention`] is of a state whose limit is reached.
fn tenure_at_limit(cell: Option<&Cell>) -> Retention {
    if is_pinned(cell) { Retention::Pinned } else { Retention::AtLimit }
}

const fn is_pinned(cell: Option<&Cell>) -> bool {
    matches!(cell, Some(Cell::Concurrency(_) | Cell::Reserved(_)))
}

/// Whether permits of `limit` are counted, each with an id.
pub(super) const fn is_concurrency(limit: &Limit) -> bool {
    matches!(limit.algorithm(), Algorithm::Concurrency(_))
}

/// The mark as the step made it.
const fn untagged_mark(position: ChargePosition) -> ChargePosition {
    ChargePosition(position.0 & MAX_EXACT)
}

/// How long a refund of what was put at `position` is remembered: no longer than a charge of now could
/// be refunded, whatever a receipt from outside says.
fn remembered_until(limit: &Limit, position: ChargePosition, now: Timestamp) -> Timestamp {
    let longest = now.after(limit.window()).after(limit.window()).after(limit.skew_tolerance());
    refundable_until(limit, position).min(longest)
}

/// Whether a take changes what is stored.
pub(super) fn counts(limit: &Limit, cost: Cost, outcome: CallOutcome) -> bool {
    let is_counted = outcome == CallOutcome::Admitted || limit.refusals() == Refusals::Counted;
    cost != Cost::PEEK && is_counted
}
