//! One part of the store, behind one lock: what the step does to its entries.

use std::borrow::Cow;

use tollgate_core::decide::{Plain, judge, over_at, refundable_until, refuse, take, take_plain};
use tollgate_core::{
    Ask, Cell, Charge, Cost, Fit, Found, Limit, Mark, Reading, Refusals, Timestamp, assess, decide,
};

use super::bounds::Bounds;
use super::cells::{self, Cells};
use super::fingerprint::Fingerprint;
use super::packed::{Content, Packed, Tenure};
use super::room::Room;
use super::table::Table;

/// Some of the entries, and what their number and bytes may come to.
pub(super) struct Shard {
    pub(super) table: Table<Packed>,
    pub(super) cells: Cells,
    pub(super) bounds: Bounds,
    /// What calls in progress have been promised and not yet used.
    pub(super) promised: Room,
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
pub(super) enum Ruling {
    /// Every one: all are counted.
    Admitted,
    /// Not every one: none is counted, unless its limit counts refusals.
    Refused,
}

impl Ruling {
    /// Of a call whose only take fits like this.
    fn of(fit: Fit) -> Self {
        if fit == Fit::Now { Self::Admitted } else { Self::Refused }
    }
}

impl Shard {
    /// An empty shard.
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            table: Table::new(),
            cells: Cells::default(),
            bounds,
            promised: Room::default(),
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
        let Charge { limit, ask: Ask::Take { cost, .. }, .. } = *charge else { return None };
        let slot = self.table.find(key)?;
        let (_, packed) = self.table.get(slot)?;
        let Content::Plain(state) = packed.content() else { return None };
        let (reading, next) = take_plain(state, limit, cost, now)?;
        let refused = reading.fit != Fit::Now;
        let after = if counts(limit, cost, Ruling::of(reading.fit)) {
            let tenure = match reading.fit {
                Fit::Now => tenure_of_plain(next, limit, cost, reading.again, now),
                Fit::At(_) | Fit::Never => Tenure::Protected,
            };
            // A plain state is over as soon as nothing of it is used any more.
            Packed::plain(next, reading.whole_at, tenure)
        } else if refused && reading.found == Found::State {
            packed.protected()
        } else {
            packed
        };
        if after.tenure() == Tenure::Evictable {
            self.barren_until = Timestamp::EPOCH;
        }
        self.table.set(slot, after);
        self.counts.discarded += u64::from(reading.found == Found::Discarded);
        Some(reading)
    }

    /// Whether `target` stands in nobody's way: a take that fits, or what takes nothing.
    pub(super) fn admits(&self, now: Timestamp, target: &Target<'_>) -> bool {
        target.charge.ask.taken().is_none() || self.look(now, target).fit == Fit::Now
    }

    /// The room that [`Self::carry_out`] will need.
    pub(super) fn room_for(&self, now: Timestamp, target: &Target<'_>, ruling: Ruling) -> Room {
        let slot = self.table.find(target.key);
        let limit = target.charge.limit;
        let content = || slot.and_then(|slot| self.content(slot));
        match target.charge.ask {
            Ask::Take { cost, .. } | Ask::Reserve { cost, .. } if !counts(limit, cost, ruling) => {
                Room::NONE
            }
            Ask::Take { .. } | Ask::Settle { .. } => match content() {
                None if target.charge.ask.taken().is_none() => Room::NONE,
                None => Room::for_entry(limit),
                Some(Content::Large(index)) => Room::for_growth(self.cells.growth(index)),
                Some(_) => Room::for_change(limit),
            },
            Ask::Reserve { .. } => match content() {
                None => Room::ENTRY + Room::for_hold(),
                Some(Content::Large(index)) => {
                    Room::for_growth(self.cells.growth(index)) + Room::for_first_hold()
                }
                Some(_) => Room::for_hold(),
            },
            Ask::Refund { mark, .. } => match target.refund {
                Some(refund)
                    if slot.is_some()
                        && now < remembered_until(limit, mark, now)
                        && self.table.find(refund).is_none() =>
                {
                    Room::ENTRY
                }
                _ => Room::NONE,
            },
            Ask::Look { .. } | Ask::Renew { .. } | Ask::Extend { .. } | Ask::Forget => Room::NONE,
        }
    }

    /// Does what `target` asks; whatever it adds must have been promised.
    pub(super) fn carry_out(
        &mut self,
        now: Timestamp,
        target: &Target<'_>,
        ruling: Ruling,
    ) -> Reading {
        let reading = match target.charge.ask {
            Ask::Take { cost, .. } | Ask::Reserve { cost, .. } => {
                self.take(now, target, cost, ruling)
            }
            Ask::Look { .. } => self.look(now, target),
            Ask::Refund { mark, .. } => self.refund(now, target, mark),
            Ask::Settle { .. } => self.settle(now, target),
            Ask::Renew { .. } | Ask::Extend { .. } | Ask::Forget => self.change(now, target),
        };
        if reading.found == Found::Discarded {
            self.counts.discarded += 1;
        }
        reading
    }

    fn take(&mut self, now: Timestamp, target: &Target<'_>, cost: Cost, ruling: Ruling) -> Reading {
        let Charge { limit, ask, .. } = target.charge;
        if !counts(limit, cost, ruling) {
            return self.leave(now, target);
        }
        let slot = self.table.find(target.key);
        if let Some(Content::Large(index)) = slot.and_then(|slot| self.content(slot)) {
            self.cells.grow(index);
        }
        self.step(target, |cell| {
            let cell = cell.or_else(|| cells::seed(limit));
            let (reading, cell) = match ruling {
                Ruling::Admitted => take(cell, limit, ask, now),
                Ruling::Refused => refuse(cell, limit, ask, now),
            };
            let tenure = match reading.fit {
                Fit::Now => tenure(cell.as_ref(), limit, cost, reading.again, now),
                Fit::At(_) | Fit::Never => Tenure::Protected,
            };
            (reading, cell, tenure)
        })
    }

    /// How the limit stands.
    fn look(&self, now: Timestamp, target: &Target<'_>) -> Reading {
        let cell = self.table.find(target.key).and_then(|slot| self.cell(slot));
        judge(cell.as_deref(), target.charge.limit, target.charge.ask, now)
    }

    /// Answers a take that is not counted. If it was refused here, what refused it stays.
    fn leave(&mut self, now: Timestamp, target: &Target<'_>) -> Reading {
        let reading = self.look(now, target);
        if let Some(slot) = self.table.find(target.key)
            && reading.fit != Fit::Now
            && reading.found == Found::State
            && let Some((_, packed)) = self.table.get(slot)
        {
            self.table.set(slot, packed.protected());
        }
        reading
    }

    /// Gives back, unless that was done before; remembers it where it may be asked again.
    fn refund(&mut self, now: Timestamp, target: &Target<'_>, mark: Mark) -> Reading {
        if target.refund.is_some_and(|refund| self.table.find(refund).is_some()) {
            return self.leave(now, target);
        }
        let reading = self.change(now, target);
        let until = remembered_until(target.charge.limit, mark, now);
        if let Some(refund) = target.refund
            && reading.given_back > 0
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
        let Charge { limit, ask, .. } = target.charge;
        self.step(target, |cell| {
            let (reading, cell) = decide(cell, limit, ask, now);
            let tenure = tenure(cell.as_ref(), limit, Cost::PEEK, reading.again, now);
            (reading, cell, tenure)
        })
    }

    /// Passes the state of `target` through `decide` and keeps what comes out.
    fn step(
        &mut self,
        target: &Target<'_>,
        decide: impl FnOnce(Option<Cell>) -> (Reading, Option<Cell>, Tenure),
    ) -> Reading {
        let slot = self.table.find(target.key);
        let content = slot.and_then(|slot| self.content(slot));
        let cell = match content {
            Some(Content::Plain(state)) => Some(state.into()),
            Some(Content::Large(index)) => self.cells.lend(index),
            Some(Content::Refunded) | None => None,
        };
        let (reading, cell, tenure) = decide(cell);
        self.keep(target, slot, cell, tenure);
        reading
    }

    pub(super) fn keep(
        &mut self,
        target: &Target<'_>,
        slot: Option<usize>,
        cell: Option<Cell>,
        tenure: Tenure,
    ) {
        let over_at = cell.as_ref().map(|cell| over_at(cell, target.charge.limit));
        let (Some(cell), Some(over_at)) = (cell, over_at.filter(|end| *end > Timestamp::EPOCH))
        else {
            if let Some(slot) = slot {
                self.forget(slot);
            }
            return;
        };
        if tenure == Tenure::Evictable {
            self.barren_until = Timestamp::EPOCH;
        }
        let index = match slot.and_then(|slot| self.content(slot)) {
            Some(Content::Large(index)) => Some(index),
            _ => None,
        };
        let packed = match (Plain::try_from(cell), index) {
            (Err(cell), Some(index)) => {
                self.cells.put_back(index, cell);
                Packed::large(index, over_at, tenure)
            }
            (Err(cell), None) => Packed::large(self.cells.push(target.key, cell), over_at, tenure),
            (Ok(state), index) => {
                self.forget_large(index);
                Packed::plain(state, over_at, tenure)
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

/// What [`tenure`] is of a plain state, which needs no cell for an ask of one unit.
#[inline]
fn tenure_of_plain(state: Plain, limit: &Limit, cost: Cost, again: Fit, now: Timestamp) -> Tenure {
    match again {
        Fit::Now if cost.needed() == 1 => Tenure::Evictable,
        Fit::At(_) | Fit::Never if cost.needed() == 1 => Tenure::Protected,
        _ => tenure(Some(&state.into()), limit, cost, again, now),
    }
}

/// Whether the state after an ask may be dropped: not while units are in flight or held, nor where no unit
/// more fits. `again` says it for an ask of one unit; for another it has to be found out.
pub(super) fn tenure(
    cell: Option<&Cell>,
    limit: &Limit,
    cost: Cost,
    again: Fit,
    now: Timestamp,
) -> Tenure {
    let again = if cost.needed() == 1 { again } else { assess(cell, limit, Cost::ONE, now).fit };
    match (cell, again) {
        (Some(Cell::Concurrency(_) | Cell::Held(_)), _) | (_, Fit::At(_) | Fit::Never) => {
            Tenure::Protected
        }
        (_, Fit::Now) => Tenure::Evictable,
    }
}

/// How long a refund of what was put at `mark` is remembered: no longer than a charge of now could
/// be refunded, whatever a receipt from outside says.
fn remembered_until(limit: &Limit, mark: Mark, now: Timestamp) -> Timestamp {
    let longest = now.after(limit.window()).after(limit.window()).after(limit.believed_ahead());
    refundable_until(limit, mark).min(longest)
}

/// Whether a take changes what is stored.
fn counts(limit: &Limit, cost: Cost, ruling: Ruling) -> bool {
    let is_counted = ruling == Ruling::Admitted || limit.refusals() == Refusals::Counted;
    cost != Cost::PEEK && is_counted
}
