//! One part of the store, behind one lock: what the step does to its entries.

use std::borrow::Cow;

use tollgate_core::decide::{
    Plain, charge_plain, expires_at, judge, refundable_until, refuse, take,
};
use tollgate_core::{
    Admission, Cell, Charge, ChargePosition, Cost, Limit, Operation, Reading, Refusals,
    StoredState, Timestamp, assess, decide,
};

use super::bounds::Bounds;
use super::cells::{self, Cells};
use super::fingerprint::Fingerprint;
use super::packed::{Content, Packed, Retention};
use super::room::Room;
use super::table::Table;

/// Some of the entries, and what their number and bytes may come to.
pub(super) struct Shard {
    pub(super) table: Table<Packed>,
    pub(super) cells: Cells,
    pub(super) bounds: Bounds,
    /// What calls in progress have been promised and not yet used.
    pub(super) reserved_room: Room,
    /// Until then there is nothing to evict.
    pub(super) barren_until: Timestamp,
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
    fn of(admission: Admission) -> Self {
        if admission == Admission::Now { Self::Admitted } else { Self::Refused }
    }
}

impl Shard {
    /// An empty shard.
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            table: Table::new(),
            cells: Cells::default(),
            bounds,
            reserved_room: Room::default(),
            barren_until: Timestamp::EPOCH,
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
                Admission::At(_) | Admission::Never => Retention::Protected,
            };
            // A plain state is over as soon as nothing of it is used any more.
            Packed::plain(next, reading.full_reset_at, retention)
        } else if refused && reading.found == StoredState::Present {
            packed.protected()
        } else {
            packed
        };
        if after.retention() == Retention::Evictable {
            self.barren_until = Timestamp::EPOCH;
        }
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
        let content = || slot.and_then(|slot| self.content(slot));
        match target.charge.operation {
            Operation::Charge { cost, .. } | Operation::Reserve { cost, .. }
                if !counts(limit, cost, outcome) =>
            {
                Room::NONE
            }
            Operation::Charge { .. } | Operation::Settle { .. } => match content() {
                None if target.charge.operation.as_charge().is_none() => Room::NONE,
                None => Room::for_entry(limit),
                Some(Content::Large(index)) => Room::for_growth(self.cells.growth(index)),
                Some(_) => Room::for_change(limit),
            },
            Operation::Reserve { .. } => match content() {
                None => Room::ENTRY + Room::for_reservation(),
                Some(Content::Large(index)) => {
                    Room::for_growth(self.cells.growth(index)) + Room::for_first_reservation()
                }
                Some(_) => Room::for_reservation(),
            },
            Operation::Refund { position, .. } => match target.refund {
                Some(refund)
                    if slot.is_some()
                        && now < remembered_until(limit, position, now)
                        && self.table.find(refund).is_none() =>
                {
                    Room::ENTRY
                }
                _ => Room::NONE,
            },
            Operation::Peek { .. }
            | Operation::Renew { .. }
            | Operation::Extend { .. }
            | Operation::Reset => Room::NONE,
        }
    }

    /// Does what `target` asks; whatever it adds must have been promised.
    pub(super) fn execute(
        &mut self,
        now: Timestamp,
        target: &Target<'_>,
        outcome: CallOutcome,
    ) -> Reading {
        let reading = match target.charge.operation {
            Operation::Charge { cost, .. } | Operation::Reserve { cost, .. } => {
                self.take(now, target, cost, outcome)
            }
            Operation::Peek { .. } => self.look(now, target),
            Operation::Refund { position, .. } => self.refund(now, target, position),
            Operation::Settle { .. } => self.settle(now, target),
            Operation::Renew { .. } | Operation::Extend { .. } | Operation::Reset => {
                self.change(now, target)
            }
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
        let slot = self.table.find(target.key);
        if let Some(Content::Large(index)) = slot.and_then(|slot| self.content(slot)) {
            self.cells.grow(index);
        }
        self.step(target, |cell| {
            let cell = cell.or_else(|| cells::seed(limit));
            let (reading, cell) = match outcome {
                CallOutcome::Admitted => take(cell, limit, operation, now),
                CallOutcome::Refused => refuse(cell, limit, operation, now),
            };
            let retention = match reading.admission {
                Admission::Now => retention(cell.as_ref(), limit, cost, reading.fits_again, now),
                Admission::At(_) | Admission::Never => Retention::Protected,
            };
            (reading, cell, retention)
        })
    }

    /// How the limit stands.
    fn look(&self, now: Timestamp, target: &Target<'_>) -> Reading {
        let cell = self.table.find(target.key).and_then(|slot| self.cell(slot));
        judge(cell.as_deref(), target.charge.limit, target.charge.operation, now)
    }

    /// Answers a take that is not counted. If it was refused here, what refused it stays.
    fn leave(&mut self, now: Timestamp, target: &Target<'_>) -> Reading {
        let reading = self.look(now, target);
        if let Some(slot) = self.table.find(target.key)
            && reading.admission != Admission::Now
            && reading.found == StoredState::Present
            && let Some((_, packed)) = self.table.get(slot)
        {
            self.table.set(slot, packed.protected());
        }
        reading
    }

    /// Gives back, unless that was done before; remembers it where it may be asked again.
    fn refund(&mut self, now: Timestamp, target: &Target<'_>, position: ChargePosition) -> Reading {
        if target.refund.is_some_and(|refund| self.table.find(refund).is_some()) {
            return self.leave(now, target);
        }
        let reading = self.change(now, target);
        let until = remembered_until(target.charge.limit, position, now);
        if let Some(refund) = target.refund
            && reading.refunded > 0
            && now < until
        {
            self.table.insert(refund, Packed::refunded(until));
            self.counts.refunds += 1;
        }
        reading
    }

    /// Puts the real cost in the place of what is held, which may be one charge more.
    fn settle(&mut self, now: Timestamp, target: &Target<'_>) -> Reading {
        let slot = self.table.find(target.key);
        if let Some(Content::Large(index)) = slot.and_then(|slot| self.content(slot)) {
            self.cells.grow(index);
        }
        self.change(now, target)
    }

    fn change(&mut self, now: Timestamp, target: &Target<'_>) -> Reading {
        let Charge { limit, operation, .. } = target.charge;
        self.step(target, |cell| {
            let (reading, cell) = decide(cell, limit, operation, now);
            let retention = retention(cell.as_ref(), limit, Cost::PEEK, reading.fits_again, now);
            (reading, cell, retention)
        })
    }

    /// Passes the state of `target` through `decide` and keeps what comes out.
    fn step(
        &mut self,
        target: &Target<'_>,
        decide: impl FnOnce(Option<Cell>) -> (Reading, Option<Cell>, Retention),
    ) -> Reading {
        let slot = self.table.find(target.key);
        let content = slot.and_then(|slot| self.content(slot));
        let cell = match content {
            Some(Content::Plain(state)) => Some(state.into()),
            Some(Content::Large(index)) => self.cells.lend(index),
            Some(Content::Refunded) | None => None,
        };
        let (reading, cell, retention) = decide(cell);
        self.keep(target, slot, cell, retention);
        reading
    }

    pub(super) fn keep(
        &mut self,
        target: &Target<'_>,
        slot: Option<usize>,
        cell: Option<Cell>,
        retention: Retention,
    ) {
        let expires_at = cell.as_ref().map(|cell| expires_at(cell, target.charge.limit));
        let (Some(cell), Some(expires_at)) =
            (cell, expires_at.filter(|end| *end > Timestamp::EPOCH))
        else {
            if let Some(slot) = slot {
                self.forget(slot);
            }
            return;
        };
        if retention == Retention::Evictable {
            self.barren_until = Timestamp::EPOCH;
        }
        let index = match slot.and_then(|slot| self.content(slot)) {
            Some(Content::Large(index)) => Some(index),
            _ => None,
        };
        let packed = match (Plain::try_from(cell), index) {
            (Err(cell), Some(index)) => {
                self.cells.put_back(index, cell);
                Packed::large(index, expires_at, retention)
            }
            (Err(cell), None) => {
                Packed::large(self.cells.push(target.key, cell), expires_at, retention)
            }
            (Ok(state), index) => {
                self.forget_large(index);
                Packed::plain(state, expires_at, retention)
            }
        };
        match slot {
            Some(slot) => self.table.set(slot, packed),
            None => self.table.insert(target.key, packed),
        }
    }

    /// Removes the entry in `slot`.
    pub(super) fn forget(&mut self, slot: usize) {
        match self.table.remove(slot).map(Packed::content) {
            Some(Content::Large(index)) => self.forget_large(Some(index)),
            Some(Content::Refunded) => self.counts.refunds -= 1,
            Some(Content::Plain(_)) | None => {}
        }
        self.barren_until = Timestamp::EPOCH;
    }

    /// Removes a large state, and tells the owner of the one that took its place.
    fn forget_large(&mut self, index: Option<usize>) {
        let Some(index) = index else { return };
        let Some(slot) = self.cells.remove(index).and_then(|owner| self.table.find(owner)) else {
            return;
        };
        if let Some((_, packed)) = self.table.get(slot) {
            self.table.set(slot, packed.moved_to(index));
        }
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
        Admission::At(_) | Admission::Never if cost.needed() == 1 => Retention::Protected,
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
    match (cell, fits_again) {
        (Some(Cell::Concurrency(_) | Cell::Reserved(_)), _)
        | (_, Admission::At(_) | Admission::Never) => Retention::Protected,
        (_, Admission::Now) => Retention::Evictable,
    }
}

/// How long a refund of what was put at `position` is remembered: no longer than a charge of now could
/// be refunded, whatever a receipt from outside says.
fn remembered_until(limit: &Limit, position: ChargePosition, now: Timestamp) -> Timestamp {
    let longest = now.after(limit.window()).after(limit.window()).after(limit.skew_tolerance());
    refundable_until(limit, position).min(longest)
}

/// Whether a take changes what is stored.
fn counts(limit: &Limit, cost: Cost, outcome: CallOutcome) -> bool {
    let is_counted = outcome == CallOutcome::Admitted || limit.refusals() == Refusals::Counted;
    cost != Cost::PEEK && is_counted
}
