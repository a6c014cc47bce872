//! The step of a cell with reservations: what ran out goes first, then the algorithm's own step.
//!
//! A reservation is a take whose id, place and end are remembered beside the state. Giving back is
//! the algorithm's refund into that place, so that no window moves, and nothing is given back that
//! was not taken. What ran out by `now` is left out of every answer, and leaves the state as soon
//! as a step changes it: an answer does not depend on when that was.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{
    Cell, Take, admits_all, assess, charge, charge_state, give_back, join as join_states, over_at,
};
use crate::charge::{Ask, Repeats};
use crate::charge_id::ChargeId;
use crate::cost::Cost;
use crate::hold::{Hold, MAX_HOLDS, OnExpiry};
use crate::limit::{Limit, Refusals};
use crate::reading::{Fit, Found, Reading};
use crate::time::Timestamp;

/// A state and what reservations hold of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The state, of any kind but leases, with no reservations of its own.
    pub cell: Cell,
    /// In rising order of their ends, at least one and at most [`MAX_HOLDS`].
    pub holds: Vec<Hold>,
}

impl Held {
    /// How `limit` stands at `now`, and whether `cost` fits.
    pub(super) fn assess(&self, limit: &Limit, cost: Cost, now: Timestamp) -> Reading {
        let held = self.as_of(limit, now);
        let reading = assess(Some(&held.cell), limit, cost, now);
        if reading.found == Found::Discarded {
            return reading;
        }
        let fit = match reading.fit {
            Fit::At(fits_at) => held.fits_at(limit, cost, fits_at),
            fit => fit,
        };
        let found = if held.holds.is_empty() { reading.found } else { Found::State };
        Reading { fit, again: fit, found, held: units_of(&held.holds), ..reading }
    }

    /// When units that are to be held find room beside those that are.
    fn has_room_at(&self, cost: Cost, limit: &Limit, now: Timestamp) -> Fit {
        let Some(free) = limit.hold().at_most.checked_sub(cost.get()) else { return Fit::Never };
        let holds = &self.holds[self.holds.partition_point(|hold| hold.until <= now)..];
        let (mut units, mut count) = (units_of(holds), holds.len());
        let mut ends = holds.iter();
        let mut fit = Fit::Now;
        while units > free || count >= MAX_HOLDS {
            let Some(first) = ends.next() else { return Fit::Never };
            (units, count) = (units.saturating_sub(first.units), count - 1);
            fit = Fit::At(first.until);
        }
        fit
    }

    /// When `cost` fits that does not fit now: as units leave by themselves until `fits_at`, or as
    /// reservations run out before.
    fn fits_at(&self, limit: &Limit, cost: Cost, mut fits_at: Timestamp) -> Fit {
        let mut cell = self.cell.clone();
        for hold in &self.holds {
            if fits_at <= hold.until {
                break;
            }
            if run_out(&mut cell, limit, hold) == 0 {
                continue;
            }
            match assess(Some(&cell), limit, cost, hold.until).fit {
                Fit::Now => return Fit::At(hold.until),
                Fit::At(moment) => fits_at = moment,
                Fit::Never => return Fit::Never,
            }
        }
        Fit::At(fits_at)
    }

    /// With every reservation that ran out by `now` released, or charged, as of its own end.
    fn as_of(&self, limit: &Limit, now: Timestamp) -> Cow<'_, Self> {
        let over = self.holds.partition_point(|hold| hold.until <= now);
        if over == 0 {
            return Cow::Borrowed(self);
        }
        let mut held = self.clone();
        for hold in held.holds.drain(..over) {
            run_out(&mut held.cell, limit, &hold);
        }
        Cow::Owned(held)
    }

    /// The moment from which neither the state nor a reservation says anything any more.
    pub(super) fn over_at(&self, limit: &Limit) -> Timestamp {
        let last = self.holds.last().map_or(Timestamp::EPOCH, |hold| hold.until);
        over_at(&self.cell, limit).max(last)
    }

    /// Puts a reservation where its end belongs.
    fn insert(&mut self, hold: Hold) {
        let index = self.holds.partition_point(|other| other.until <= hold.until);
        self.holds.insert(index, hold);
    }

    /// The cell that this is: the state by itself where nothing is held of it.
    fn into_cell(self) -> Cell {
        if self.holds.is_empty() { self.cell } else { Cell::Held(Box::new(self)) }
    }
}

/// How `limit` stands at `now`, and whether `cost` fits and may be held.
pub(super) fn assess_reservation(
    cell: Option<&Cell>,
    limit: &Limit,
    cost: Cost,
    now: Timestamp,
) -> Reading {
    let reading = assess(cell, limit, cost, now);
    let room = match cell {
        Some(Cell::Held(held)) if reading.found != Found::Discarded => {
            held.has_room_at(cost, limit, now)
        }
        _ if cost.get() > limit.hold().at_most => Fit::Never,
        _ => Fit::Now,
    };
    let fit = reading.fit.max(room);
    Reading { fit, again: fit, ..reading }
}

/// Takes by `limit` if `admits` says so of how the take fits; what is held stays held.
pub(super) fn take(
    held: Box<Held>,
    limit: &Limit,
    take: Take,
    admits: impl FnOnce(Fit) -> bool,
) -> (Reading, Option<Cell>) {
    let before = held.assess(limit, take.cost, take.at.now);
    let admitted = admits(before.fit);
    if take.cost == Cost::PEEK || !(admitted || take.refusals == Refusals::Counted) {
        return (before, Some(Cell::Held(held)));
    }
    // State from an impossible future counts as none, and so does what is held of it.
    if before.found == Found::Discarded {
        return charge_state(Some(held.cell), limit, take, |_| admitted);
    }
    let Held { cell, holds } = held.as_of(limit, take.at.now).into_owned();
    let (_, Some(cell)) = charge_state(Some(cell), limit, take, |_| admitted) else {
        return (before, Some(Cell::Held(held)));
    };
    let cell = Held { cell, holds }.into_cell();
    let after = assess(Some(&cell), limit, take.cost, take.at.now);
    let fits = admitted || before.fit == Fit::Now;
    let fit = if fits { Fit::Now } else { after.fit };
    (Reading { fit, found: before.found, ..after }, Some(cell))
}

/// Takes as [`take`], and holds what was admitted for `until` says.
pub(super) fn reserve(
    cell: Option<Cell>,
    limit: &Limit,
    (take, until): (Take, Timestamp),
    admits: impl FnOnce(Fit) -> bool,
) -> (Reading, Option<Cell>) {
    let (cost, now) = (take.cost, take.at.now);
    let before = assess_reservation(cell.as_ref(), limit, cost, now);
    let admitted = admits(before.fit);
    if take.cost == Cost::PEEK || !(admitted || take.refusals == Refusals::Counted) {
        return (before, cell);
    }
    let (taken, next) = charge(cell, limit, take, |_| admitted);
    let next = match next {
        Some(cell) if admitted => {
            let mut held = match cell {
                Cell::Held(held) => *held,
                cell => Held { cell, holds: Vec::new() },
            };
            held.insert(Hold {
                id: take.id,
                units: cost.get(),
                mark: taken.mark,
                until: limit.hold().end(until, now),
                on_expiry: limit.hold().on_expiry,
            });
            Some(held.into_cell())
        }
        next => next,
    };
    let after = assess_reservation(next.as_ref(), limit, cost, now);
    let fits = admitted || before.fit == Fit::Now;
    let fit = if fits { Fit::Now } else { after.fit };
    (Reading { fit, found: before.found, ..after }, next)
}

/// Gives back as [`give_back`] what was taken without a reservation; what is held stays held.
pub(super) fn refund(
    held: Box<Held>,
    limit: &Limit,
    ask: Ask,
    now: Timestamp,
) -> (Reading, Option<Cell>) {
    let before = held.assess(limit, Cost::PEEK, now);
    if before.found == Found::Discarded {
        return (before, Some(Cell::Held(held)));
    }
    let mut current = held.as_of(limit, now).into_owned();
    let given_back = give_back(&mut current.cell, limit, ask, now);
    if given_back == 0 {
        return (before, Some(Cell::Held(held)));
    }
    let cell = current.into_cell();
    let after = assess(Some(&cell), limit, Cost::PEEK, now);
    (Reading { given_back, found: before.found, ..after }, Some(cell))
}

/// Puts the end of the reservation of `id` off, if it is still held; never nearer.
pub(super) fn extend(
    cell: Option<Cell>,
    limit: &Limit,
    (id, until): (ChargeId, Timestamp),
    now: Timestamp,
) -> (Reading, Option<Cell>) {
    let standing = assess(cell.as_ref(), limit, Cost::PEEK, now);
    let Some((mut held, hold)) = find(cell.as_ref(), limit, id, now) else {
        return (Reading { fit: Fit::Never, ..standing }, cell);
    };
    let until = limit.hold().end(until, now);
    let reading = Reading { fit: Fit::Now, ..standing };
    if until <= hold.until {
        return (reading, cell);
    }
    held.insert(Hold { until, ..hold });
    let cell = held.into_cell();
    let again = assess(Some(&cell), limit, Cost::PEEK, now).again;
    (Reading { again, ..reading }, Some(cell))
}

/// Puts `cost` in the place of what the reservation of `id` holds, if it is still held.
pub(super) fn settle(
    cell: Option<Cell>,
    limit: &Limit,
    (id, cost): (ChargeId, Cost),
    now: Timestamp,
) -> (Reading, Option<Cell>) {
    let before = assess(cell.as_ref(), limit, Cost::PEEK, now);
    let Some((mut held, hold)) = find(cell.as_ref(), limit, id, now) else {
        return (Reading { fit: Fit::Never, ..before }, cell);
    };
    let (mut given_back, mut added) = (0, 0);
    let units = cost.get();
    let mut next = held.cell.clone();
    if units < hold.units {
        let rest = Cost::up_to(hold.units - units);
        given_back = give_back(&mut next, limit, refund_of(&hold, rest), now);
    } else {
        let most = limit.capacity().saturating_add(limit.hold().overdraft);
        added = (units - hold.units).min(most.saturating_sub(before.used));
        let take = Take::new(limit, Cost::up_to(added), id, now);
        next = charge_state(Some(next), limit, take, admits_all).1.unwrap_or(held.cell);
    }
    held.cell = next;
    let cell = held.into_cell();
    let after = assess(Some(&cell), limit, Cost::PEEK, now);
    let reading = Reading { fit: Fit::Now, given_back, added, found: before.found, ..after };
    (reading, Some(cell))
}

/// `cell` without what ran out by `now`.
pub(super) fn as_of(cell: Cell, limit: &Limit, now: Timestamp) -> Cell {
    match cell {
        Cell::Held(held) => held.as_of(limit, now).into_owned().into_cell(),
        cell => cell,
    }
}

/// Two accounts of one subject, either of which may have reservations, as one.
///
/// What only one of them holds the other may have seen settled: it can be settled still, and where
/// it is not it stays used.
pub(super) fn join(one: Cell, other: Cell, limit: &Limit, now: Timestamp) -> Option<Cell> {
    let part = |cell: Cell| match cell {
        Cell::Held(held) => {
            let Held { cell, holds } = held.as_of(limit, now).into_owned();
            (cell, holds)
        }
        cell => (cell, Vec::new()),
    };
    let ((one, ones), (other, others)) = (part(one), part(other));
    let knows = |holds: &[Hold], id| holds.iter().find(|hold| hold.id == id).copied();
    let mut joined = Held { cell: join_states(Some(one), other, limit, now)?, holds: Vec::new() };
    for hold in &ones {
        joined.insert(match knows(&others, hold.id) {
            Some(known) => hold.joined(known),
            None => Hold { on_expiry: OnExpiry::Charge, ..*hold },
        });
    }
    for hold in others.iter().filter(|hold| knows(&ones, hold.id).is_none()) {
        joined.insert(Hold { on_expiry: OnExpiry::Charge, ..*hold });
    }
    let superfluous = joined.holds.len().saturating_sub(MAX_HOLDS);
    joined.holds.drain(..superfluous);
    Some(joined.into_cell())
}

/// The state as of `now` without the reservation of `id`, and that reservation; `None` if it ran
/// out, was settled, or never was.
fn find(cell: Option<&Cell>, limit: &Limit, id: ChargeId, now: Timestamp) -> Option<(Held, Hold)> {
    let Some(Cell::Held(held)) = cell else { return None };
    if assess(Some(&held.cell), limit, Cost::PEEK, now).found == Found::Discarded {
        return None;
    }
    let is_held = |hold: &Hold| hold.id == id && now < hold.until;
    held.holds.iter().position(is_held)?;
    let mut held = held.as_of(limit, now).into_owned();
    let index = held.holds.iter().position(is_held)?;
    let hold = held.holds.remove(index);
    Some((held, hold))
}

/// What gives `cost` units of a reservation back.
const fn refund_of(hold: &Hold, cost: Cost) -> Ask {
    Ask::Refund { cost, mark: hold.mark, id: hold.id, repeats: Repeats::Impossible }
}

/// Lets go of a reservation that ran out, as of its end; answers the units that were released.
fn run_out(cell: &mut Cell, limit: &Limit, hold: &Hold) -> u64 {
    match hold.on_expiry {
        OnExpiry::Charge => 0,
        OnExpiry::Release => {
            give_back(cell, limit, refund_of(hold, Cost::up_to(hold.units)), hold.until)
        }
    }
}

fn units_of(holds: &[Hold]) -> u64 {
    holds.iter().fold(0, |sum, hold| sum.saturating_add(hold.units))
}
