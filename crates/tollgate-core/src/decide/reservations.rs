//! Decisions on a cell with reservations. Expired reservations are removed before the algorithm
//! decides.
//!
//! A reservation is a charge with an expiry. The id, the position and the expiry of the charge are
//! stored with the state. To release a reservation, this module lets the algorithm refund the
//! reserved units to the position of the charge. A release moves no window and never returns more
//! units than were charged. Every reading ignores reservations that expired by the time of the
//! decision. The next operation that changes the state removes them. A reading does not depend on
//! the time of this removal.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{
    Cell, ChargeStep, admit_always, assess, charge, charge_state, expires_at, join as join_states,
    refund_units,
};

use crate::charge::{Deduplication, Operation};
use crate::charge_id::ChargeId;
use crate::charge_position::ChargePosition;
use crate::cost::Cost;
use crate::limit::{Algorithm, Limit, Refusals};
use crate::reading::{Admission, Reading, StoredState};
use crate::reservation::{MAX_RESERVATIONS, OnExpiry, Reservation};
use crate::time::Timestamp;

/// The state of a limit and a subject, with the subject's reservations on that limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservedCell {
    /// The state of any algorithm except concurrency, without reservations of its own.
    pub cell: Cell,
    /// The reservations, sorted by expiry: at least one and at most [`MAX_RESERVATIONS`].
    pub reservations: Vec<Reservation>,
}

impl ReservedCell {
    /// Reads `limit` at `now` and checks whether `cost` fits.
    pub(super) fn assess(&self, limit: &Limit, cost: Cost, now: Timestamp) -> Reading {
        let reserved = self.as_of(limit, now);
        let reading = assess(Some(&reserved.cell), limit, cost, now);
        if reading.found == StoredState::Discarded {
            return reading;
        }
        let admission = match reading.admission {
            Admission::At(fits_at) => reserved.fits_at(limit, cost, fits_at),
            admission => admission,
        };
        let found =
            if reserved.reservations.is_empty() { reading.found } else { StoredState::Present };
        Reading {
            admission,
            fits_again: admission,
            found,
            reserved: units_of(&reserved.reservations),
            ..reading
        }
    }

    /// Returns whether the limit's reservation terms and [`MAX_RESERVATIONS`] allow one more
    /// reservation of `cost` units now, and otherwise from which time on they allow it.
    fn has_room_at(&self, cost: Cost, limit: &Limit, now: Timestamp) -> Admission {
        let Some(free) = limit.reservation_terms().at_most.checked_sub(cost.get()) else {
            return Admission::Never;
        };
        let reservations = &self.reservations
            [self.reservations.partition_point(|reservation| reservation.until <= now)..];
        let (mut units, mut count) = (units_of(reservations), reservations.len());
        let mut ends = reservations.iter();
        let mut admission = Admission::Now;
        while units > free || count >= MAX_RESERVATIONS {
            let Some(first) = ends.next() else { return Admission::Never };
            (units, count) = (units.saturating_sub(first.units), count - 1);
            admission = Admission::At(first.until);
        }
        admission
    }

    /// Returns the time at which a `cost` that does not fit now will fit. The parameter `fits_at`
    /// is that time under the assumption that no reservation expires. The result is earlier if
    /// reservations expire before `fits_at` and release enough units.
    fn fits_at(&self, limit: &Limit, cost: Cost, mut fits_at: Timestamp) -> Admission {
        let mut cell = self.cell.clone();
        for reservation in &self.reservations {
            if fits_at <= reservation.until {
                break;
            }
            if expire(&mut cell, limit, reservation) == 0 {
                continue;
            }
            match assess(Some(&cell), limit, cost, reservation.until).admission {
                Admission::Now => return Admission::At(reservation.until),
                Admission::At(moment) => fits_at = moment,
                Admission::Never => return Admission::Never,
            }
        }
        Admission::At(fits_at)
    }

    /// Returns this cell without the reservations that expired by `now`. The units of such a
    /// reservation were released at its expiry, or stay used, as its `on_expiry` states.
    fn as_of(&self, limit: &Limit, now: Timestamp) -> Cow<'_, Self> {
        let over = self.reservations.partition_point(|reservation| reservation.until <= now);
        if over == 0 {
            return Cow::Borrowed(self);
        }
        let mut reserved = self.clone();
        for reservation in reserved.reservations.drain(..over) {
            expire(&mut reserved.cell, limit, &reservation);
        }
        Cow::Owned(reserved)
    }

    /// Returns the time at which the state and all reservations have expired.
    pub(super) fn expires_at(&self, limit: &Limit) -> Timestamp {
        let last =
            self.reservations.last().map_or(Timestamp::EPOCH, |reservation| reservation.until);
        expires_at(&self.cell, limit).max(last)
    }

    /// Inserts a reservation, so that the reservations stay sorted by expiry.
    fn insert(&mut self, reservation: Reservation) {
        let index = self.reservations.partition_point(|other| other.until <= reservation.until);
        self.reservations.insert(index, reservation);
    }

    /// Converts this value to a [`Cell`]. If no reservations are left, the cell is the algorithm's
    /// own state.
    fn into_cell(self) -> Cell {
        if self.reservations.is_empty() { self.cell } else { Cell::Reserved(Box::new(self)) }
    }
}

/// Reads `limit` at `now` and checks whether `cost` fits and the reservation terms allow it.
pub(super) fn assess_reservation(
    cell: Option<&Cell>,
    limit: &Limit,
    cost: Cost,
    now: Timestamp,
) -> Reading {
    let reading = assess(cell, limit, cost, now);
    let room = match cell {
        Some(Cell::Reserved(reserved)) if reading.found != StoredState::Discarded => {
            reserved.has_room_at(cost, limit, now)
        }
        _ if cost.get() > limit.reservation_terms().at_most => Admission::Never,
        _ => Admission::Now,
    };
    let admission = reading.admission.max(room);
    Reading { admission, fits_again: admission, ..reading }
}

/// Charges `limit` without a reservation, if `admits` returns true for the admission of the charge.
/// The existing reservations stay in the cell.
pub(super) fn charge_reserved(
    reserved: Box<ReservedCell>,
    limit: &Limit,
    charge_step: ChargeStep,
    admits: impl FnOnce(Admission) -> bool,
) -> (Reading, Option<Cell>) {
    let before = reserved.assess(limit, charge_step.cost, charge_step.at.now);
    let admitted = admits(before.admission);
    if charge_step.cost == Cost::PEEK || !(admitted || charge_step.refusals == Refusals::Counted) {
        return (before, Some(Cell::Reserved(reserved)));
    }
    // State from too far in the future is treated as missing, together with its reservations.
    if before.found == StoredState::Discarded {
        return charge_state(Some(reserved.cell), limit, charge_step, |_| admitted);
    }
    let ReservedCell { cell, reservations } =
        reserved.as_of(limit, charge_step.at.now).into_owned();
    let (_, Some(cell)) = charge_state(Some(cell), limit, charge_step, |_| admitted) else {
        return (before, Some(Cell::Reserved(reserved)));
    };
    let cell = ReservedCell { cell, reservations }.into_cell();
    let after = assess(Some(&cell), limit, charge_step.cost, charge_step.at.now);
    let fits = admitted || before.admission == Admission::Now;
    let admission = if fits { Admission::Now } else { after.admission };
    (Reading { admission, found: before.found, ..after }, Some(cell))
}

/// Charges `limit` as [`charge_reserved`] does, and adds a reservation of the charged units that
/// expires at `until`, or earlier if the reservation terms require it. A charge that is not
/// admitted adds no reservation.
pub(super) fn reserve(
    cell: Option<Cell>,
    limit: &Limit,
    (charge_step, until): (ChargeStep, Timestamp),
    admits: impl FnOnce(Admission) -> bool,
) -> (Reading, Option<Cell>) {
    let (cost, now) = (charge_step.cost, charge_step.at.now);
    let before = assess_reservation(cell.as_ref(), limit, cost, now);
    let admitted = admits(before.admission);
    if charge_step.cost == Cost::PEEK || !(admitted || charge_step.refusals == Refusals::Counted) {
        return (before, cell);
    }
    let (charged, next) = charge(cell, limit, charge_step, |_| admitted);
    let next = match next {
        Some(cell) if admitted => {
            let mut reserved = match cell {
                Cell::Reserved(reserved) => *reserved,
                cell => ReservedCell { cell, reservations: Vec::new() },
            };
            reserved.insert(Reservation {
                id: charge_step.id,
                units: cost.get(),
                position: charged.position,
                until: limit.reservation_terms().end(until, now),
                on_expiry: limit.reservation_terms().on_expiry,
            });
            Some(reserved.into_cell())
        }
        next => next,
    };
    let after = assess_reservation(next.as_ref(), limit, cost, now);
    let fits = admitted || before.admission == Admission::Now;
    let admission = if fits { Admission::Now } else { after.admission };
    (Reading { admission, found: before.found, ..after }, next)
}

/// Refunds units of a charge that is not a reservation. The existing reservations stay in the cell.
pub(super) fn refund(
    reserved: Box<ReservedCell>,
    limit: &Limit,
    operation: Operation,
    now: Timestamp,
) -> (Reading, Option<Cell>) {
    let before = reserved.assess(limit, Cost::PEEK, now);
    if before.found == StoredState::Discarded {
        return (before, Some(Cell::Reserved(reserved)));
    }
    let mut current = reserved.as_of(limit, now).into_owned();
    let refunded = refund_units(&mut current.cell, limit, operation, now);
    if refunded == 0 {
        return (before, Some(Cell::Reserved(reserved)));
    }
    let cell = current.into_cell();
    let after = assess(Some(&cell), limit, Cost::PEEK, now);
    (Reading { refunded, found: before.found, ..after }, Some(cell))
}

/// Extends the reservation of the charge `id` to `until`, if the reservation still exists, and
/// never shortens it. Returns the reading and the next cell.
pub(super) fn extend(
    cell: Option<Cell>,
    limit: &Limit,
    (id, until): (ChargeId, Timestamp),
    now: Timestamp,
) -> (Reading, Option<Cell>) {
    let status = assess(cell.as_ref(), limit, Cost::PEEK, now);
    let Some((mut reserved, reservation)) = find(cell.as_ref(), limit, id, now) else {
        return (Reading { admission: Admission::Never, ..status }, cell);
    };
    let until = limit.reservation_terms().end(until, now);
    let reading = Reading { admission: Admission::Now, ..status };
    if until <= reservation.until {
        return (reading, cell);
    }
    reserved.insert(Reservation { until, ..reservation });
    let cell = reserved.into_cell();
    let fits_again = assess(Some(&cell), limit, Cost::PEEK, now).fits_again;
    (Reading { fits_again, ..reading }, Some(cell))
}

/// Replaces the units of the reservation of the charge `id` by `cost`, as far as capacity and
/// overdraft allow, and removes the reservation. Changes nothing if the reservation no longer
/// exists. Returns the reading and the next cell.
pub(super) fn settle(
    cell: Option<Cell>,
    limit: &Limit,
    (id, cost): (ChargeId, Cost),
    now: Timestamp,
) -> (Reading, Option<Cell>) {
    let before = assess(cell.as_ref(), limit, Cost::PEEK, now);
    let Some((mut reserved, reservation)) = find(cell.as_ref(), limit, id, now) else {
        return (Reading { admission: Admission::Never, ..before }, cell);
    };
    let (mut refunded, mut added) = (0, 0);
    let units = cost.get();
    let mut next = reserved.cell.clone();
    if units < reservation.units {
        let rest = Cost::up_to(reservation.units - units);
        refunded = refund_units(&mut next, limit, refund_of(&reservation, rest), now);
    } else {
        let most = limit.capacity().saturating_add(limit.reservation_terms().overdraft);
        added = (units - reservation.units).min(most.saturating_sub(before.used));
        let charge_step = ChargeStep::new(limit, Cost::up_to(added), id, now);
        next =
            charge_state(Some(next), limit, charge_step, admit_always).1.unwrap_or(reserved.cell);
    }
    reserved.cell = next;
    let cell = reserved.into_cell();
    let after = assess(Some(&cell), limit, Cost::PEEK, now);
    let reading =
        Reading { admission: Admission::Now, refunded, added, found: before.found, ..after };
    (reading, Some(cell))
}

/// Returns `cell` without the reservations that expired by `now`.
pub(super) fn as_of(cell: Cell, limit: &Limit, now: Timestamp) -> Cell {
    match cell {
        Cell::Reserved(reserved) => reserved.as_of(limit, now).into_owned().into_cell(),
        cell => cell,
    }
}

/// Merges two cells of one limit and subject. Each of the cells can have reservations.
///
/// A reservation that only one cell contains may already have been settled in the other cell. The
/// merged cell keeps such a reservation, so it can still be settled. If it is not settled, its
/// units stay used when it expires.
pub(super) fn join(one: Cell, other: Cell, limit: &Limit, now: Timestamp) -> Option<Cell> {
    let part = |cell: Cell| match cell {
        Cell::Reserved(reserved) => {
            let ReservedCell { cell, reservations } = reserved.as_of(limit, now).into_owned();
            (cell, reservations)
        }
        cell => (cell, Vec::new()),
    };
    let ((one, ones), (other, others)) = (part(one), part(other));
    let knows = |reservations: &[Reservation], id| {
        reservations.iter().find(|reservation| reservation.id == id).copied()
    };
    let mut joined =
        ReservedCell { cell: join_states(Some(one), other, limit, now)?, reservations: Vec::new() };
    for reservation in &ones {
        joined.insert(match knows(&others, reservation.id) {
            Some(known) => join_records(*reservation, known, limit),
            None => Reservation { on_expiry: OnExpiry::Charge, ..*reservation },
        });
    }
    for reservation in others.iter().filter(|reservation| knows(&ones, reservation.id).is_none()) {
        joined.insert(Reservation { on_expiry: OnExpiry::Charge, ..*reservation });
    }
    let superfluous = joined.reservations.len().saturating_sub(MAX_RESERVATIONS);
    joined.reservations.drain(..superfluous);
    Some(joined.into_cell())
}

/// Merges two records of one reservation on `limit`, which come from different cells. The result
/// has the smaller number of units, expires at the later time, and releases its units on expiry
/// only if both records release them. Its position is the one in the state that the join of the two
/// cells keeps: the bucket with fewer tokens, or the window that opened first.
fn join_records(one: Reservation, other: Reservation, limit: &Limit) -> Reservation {
    let position = match limit.algorithm() {
        // The position is the time at which the bucket is full again.
        Algorithm::TokenBucket(_) => one.position.0.max(other.position.0),
        _ => one.position.0.min(other.position.0),
    };
    Reservation {
        id: one.id,
        units: one.units.min(other.units),
        position: ChargePosition(position),
        until: one.until.max(other.until),
        on_expiry: if one.on_expiry == other.on_expiry { one.on_expiry } else { OnExpiry::Charge },
    }
}

/// Returns the cell as of `now` without the reservation of the charge `id`, and that reservation.
/// Returns `None` if there is no such reservation: it expired, was settled, or never existed.
fn find(
    cell: Option<&Cell>,
    limit: &Limit,
    id: ChargeId,
    now: Timestamp,
) -> Option<(ReservedCell, Reservation)> {
    let Some(Cell::Reserved(reserved)) = cell else { return None };
    if assess(Some(&reserved.cell), limit, Cost::PEEK, now).found == StoredState::Discarded {
        return None;
    }
    let is_held = |reservation: &Reservation| reservation.id == id && now < reservation.until;
    reserved.reservations.iter().position(is_held)?;
    let mut reserved = reserved.as_of(limit, now).into_owned();
    let index = reserved.reservations.iter().position(is_held)?;
    let reservation = reserved.reservations.remove(index);
    Some((reserved, reservation))
}

/// Returns the operation that refunds `cost` units of a reservation to the position at which they
/// were counted.
const fn refund_of(reservation: &Reservation, cost: Cost) -> Operation {
    Operation::Refund {
        cost,
        position: reservation.position,
        id: reservation.id,
        deduplication: Deduplication::Unneeded,
    }
}

/// Applies the expiry of a reservation to `cell`, as of the time of the expiry. Returns the
/// released units.
fn expire(cell: &mut Cell, limit: &Limit, reservation: &Reservation) -> u64 {
    match reservation.on_expiry {
        OnExpiry::Charge => 0,
        OnExpiry::Release => refund_units(
            cell,
            limit,
            refund_of(reservation, Cost::up_to(reservation.units)),
            reservation.until,
        ),
    }
}

fn units_of(reservations: &[Reservation]) -> u64 {
    reservations.iter().fold(0, |sum, reservation| sum.saturating_add(reservation.units))
}
