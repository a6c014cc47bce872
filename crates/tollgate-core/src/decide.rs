//! The state transition: computes the reading and the next [`Cell`] from a cell, an operation and a
//! time.
//!
//! This module is the only place that matches on the algorithm. A store reads every charge of a
//! call with [`assess`] and executes them with [`decide`] only if all fit. Nothing in this module
//! reads a clock, fails or does IO.

mod permits;
mod plain;
mod reservations;
mod scaled;

use alloc::boxed::Box;

pub use permits::first_permit;
pub use plain::Plain;
pub use reservations::ReservedCell;

use permits::has_permits;

use crate::algo::{
    CellStep, PlainStep, StepTime, concurrency, fixed_window, sliding_log, sliding_window,
    token_bucket, two_bucket,
};
use crate::charge::Operation;
use crate::charge_id::ChargeId;
use crate::charge_position::ChargePosition;
use crate::cost::Cost;
use crate::limit::{Algorithm, Limit, Refusals};
use crate::reading::{Admission, Reading, StoredState};
use crate::time::Timestamp;

/// The state that a store keeps for one limit and one subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// The state of a fixed window.
    FixedWindow(fixed_window::State),
    /// The state of a sliding window.
    SlidingWindow(sliding_window::State),
    /// The state of a two-bucket estimate.
    TwoBucket(two_bucket::State),
    /// The state of a sliding log.
    SlidingLog(sliding_log::State),
    /// The state of a token bucket.
    TokenBucket(token_bucket::State),
    /// The state of a concurrency limit.
    Concurrency(concurrency::State),
    /// The state of any limit except a concurrency limit, with its reservations.
    Reserved(Box<ReservedCell>),
}

impl Cell {
    /// Returns whether the cell is a state of the algorithm of `limit`.
    fn is_of(&self, limit: &Limit) -> bool {
        if let Self::Reserved(reserved) = self {
            return reserved.cell.is_of(limit);
        }
        matches!(
            (self, limit.algorithm()),
            (Self::FixedWindow(_), Algorithm::FixedWindow(_))
                | (Self::SlidingWindow(_), Algorithm::SlidingWindow(_))
                | (Self::TwoBucket(_), Algorithm::TwoBucket(_))
                | (Self::SlidingLog(_), Algorithm::SlidingLog(_))
                | (Self::TokenBucket(_), Algorithm::TokenBucket(_))
                | (Self::Concurrency(_), Algorithm::Concurrency(_))
        )
    }
}

/// Evaluates the expression `$body` for the algorithm of `$limit`. In `$body`, `$step` is the
/// algorithm, `$state` is its state in the cell (`None` if the cell belongs to another algorithm),
/// and `$wrap` is the variant of [`Cell`] that contains such a state.
macro_rules! with_step {
    ($limit:expr, $cell:expr, |$step:ident, $state:ident, $wrap:ident| $body:expr) => {
        match $limit.algorithm() {
            Algorithm::FixedWindow($step) => with_step!(@ $cell, FixedWindow, $state, $wrap, $body),
            Algorithm::SlidingWindow($step) => with_step!(@ $cell, SlidingWindow, $state, $wrap, $body),
            Algorithm::TwoBucket($step) => with_step!(@ $cell, TwoBucket, $state, $wrap, $body),
            Algorithm::SlidingLog($step) => with_step!(@ $cell, SlidingLog, $state, $wrap, $body),
            Algorithm::TokenBucket($step) => with_step!(@ $cell, TokenBucket, $state, $wrap, $body),
            Algorithm::Concurrency($step) => with_step!(@ $cell, Concurrency, $state, $wrap, $body),
        }
    };
    (@ $cell:expr, $kind:ident, $state:ident, $wrap:ident, $body:expr) => {{
        #[allow(unused_variables)]
        let $wrap = Cell::$kind;
        let $state = match $cell {
            Some(Cell::$kind(state)) => Some(state),
            _ => None,
        };
        $body
    }};
}

/// Reads `limit` at `now` and checks whether `cost` fits, without changing the cell. The function
/// allocates memory only if a reservation has expired, or if `cost` has to wait until a reservation
/// expires.
#[must_use]
pub fn assess(cell: Option<&Cell>, limit: &Limit, cost: Cost, now: Timestamp) -> Reading {
    if let Some(Cell::Reserved(reserved)) = cell {
        return reserved.assess(limit, cost, now);
    }
    let at = StepTime { now, skew_max: limit.skew_tolerance() };
    let found_cell = cell.is_some();
    with_step!(limit, cell, |step, state, wrap| {
        let of_another_kind = found_cell && state.is_none();
        let mut reading = step.read(state, cost, at);
        if of_another_kind {
            reading.found = StoredState::Discarded;
        }
        reading
    })
}

/// Reads `limit` at `now` and checks whether the cost of `operation` fits, without changing the
/// cell. A new reservation must also be allowed by the limit's reservation terms and by
/// [`MAX_RESERVATIONS`](crate::reservation::MAX_RESERVATIONS).
#[inline]
#[must_use]
pub fn assess_operation(
    cell: Option<&Cell>,
    limit: &Limit,
    operation: Operation,
    now: Timestamp,
) -> Reading {
    match operation {
        Operation::Reserve { cost, .. } if !has_permits(limit) => {
            reservations::assess_reservation(cell, limit, cost, now)
        }
        _ => assess(cell, limit, operation.cost(), now),
    }
}

/// Executes `operation` at `now`. Returns the reading after the operation and the next cell.
///
/// A charge that does not fit changes nothing, unless the limit counts refusals. A cell of another
/// algorithm than the limit's, or a cell from too far in the future, is treated as missing. If the
/// next cell is `None`, there is nothing to store.
#[must_use]
pub fn decide(
    cell: Option<Cell>,
    limit: &Limit,
    operation: Operation,
    now: Timestamp,
) -> (Reading, Option<Cell>) {
    match operation {
        Operation::Charge { .. } | Operation::Reserve { .. } => {
            execute(cell, limit, operation, now, |admission| admission == Admission::Now)
        }
        Operation::Peek { cost } => (assess(cell.as_ref(), limit, cost, now), cell),
        Operation::Refund { .. } => refund(cell, limit, operation, now),
        Operation::Renew { id } => permits::renew(cell, limit, id, now),
        Operation::Extend { id, .. } if has_permits(limit) => permits::renew(cell, limit, id, now),
        Operation::Extend { id, until, .. } => reservations::extend(cell, limit, (id, until), now),
        Operation::Settle { .. } if has_permits(limit) => {
            permits::release(cell, limit, operation, now)
        }
        Operation::Settle { id, cost, .. } => reservations::settle(cell, limit, (id, cost), now),
        Operation::Reset => (forget(cell.as_ref(), limit, now), None),
    }
}

/// Counts a charge or a reservation that is already known to fit. Returns the reading after it and
/// the next cell.
#[must_use]
pub fn charge_admitted(
    cell: Option<Cell>,
    limit: &Limit,
    operation: Operation,
    now: Timestamp,
) -> (Reading, Option<Cell>) {
    match operation.as_charge() {
        Some(_) => execute(cell, limit, operation, now, admit_always),
        None => decide(cell, limit, operation, now),
    }
}

/// Executes a charge or a reservation of a call that was refused: counts it only if the limit
/// counts refusals. Returns the reading and the next cell.
///
/// The reading's `admission` describes only this limit: the charge can fit on this limit although
/// another limit refused the call.
#[must_use]
pub fn charge_refused(
    cell: Option<Cell>,
    limit: &Limit,
    operation: Operation,
    now: Timestamp,
) -> (Reading, Option<Cell>) {
    match operation.as_charge() {
        Some(_) => execute(cell, limit, operation, now, |_| false),
        None => decide(cell, limit, operation, now),
    }
}

/// Executes the only charge of a call on `state`, with the same result as [`decide`] on a cell.
/// Returns the reading and the next state, or `None` if `limit` has another algorithm than `state`.
///
/// The next state equals `state` if nothing was counted. This function is the hot path of the
/// memory store. It does not move a [`Cell`], and it is inlined with all functions that it calls.
/// The reading and the state are therefore written to memory only once.
#[inline(always)]
#[must_use]
pub fn charge_plain(
    state: Plain,
    limit: &Limit,
    cost: Cost,
    now: Timestamp,
) -> Option<(Reading, Plain)> {
    let charge_step = ChargeStep::new(limit, cost, ChargeId::default(), now);
    match (limit.algorithm(), state) {
        (Algorithm::FixedWindow(step), Plain::FixedWindow(state)) => {
            let (reading, next) = charge_step.charge_alone(step, state);
            Some((reading, Plain::FixedWindow(next)))
        }
        (Algorithm::TokenBucket(step), Plain::TokenBucket(state)) => {
            let (reading, next) = charge_step.charge_alone(step, state);
            Some((reading, Plain::TokenBucket(next)))
        }
        _ => None,
    }
}

const fn admit_always(_: Admission) -> bool {
    true
}

/// Executes the charge or reservation `operation` on `limit` if `admits` returns true for its
/// admission, or if the limit counts refusals. Returns the reading and the next cell.
fn execute(
    cell: Option<Cell>,
    limit: &Limit,
    operation: Operation,
    now: Timestamp,
    admits: impl FnOnce(Admission) -> bool,
) -> (Reading, Option<Cell>) {
    let (cost, id) = operation.as_charge().unwrap_or_default();
    let charge_step = ChargeStep::new(limit, cost, id, now);
    match operation {
        Operation::Reserve { until, .. } if !has_permits(limit) => {
            reservations::reserve(cell, limit, (charge_step, until), admits)
        }
        _ => charge(cell, limit, charge_step, admits),
    }
}

/// Charges `limit` if `admits` returns true for the admission of the charge, or if the limit counts
/// refusals. Returns the reading and the next cell.
fn charge(
    cell: Option<Cell>,
    limit: &Limit,
    charge_step: ChargeStep,
    admits: impl FnOnce(Admission) -> bool,
) -> (Reading, Option<Cell>) {
    match cell {
        Some(Cell::Reserved(reserved)) => {
            reservations::charge_reserved(reserved, limit, charge_step, admits)
        }
        cell => charge_state(cell, limit, charge_step, admits),
    }
}

/// Charges a cell that has no reservations, as [`charge`] does for any cell.
fn charge_state(
    mut cell: Option<Cell>,
    limit: &Limit,
    charge_step: ChargeStep,
    admits: impl FnOnce(Admission) -> bool,
) -> (Reading, Option<Cell>) {
    let of_another_kind = cell.take_if(|cell| !cell.is_of(limit));
    let (reading, next) = with_step!(limit, cell, |step, state, wrap| {
        let (reading, next) = charge_step.charge(step, state, admits);
        (reading, next.map(wrap))
    });
    match of_another_kind {
        None => (reading, next),
        Some(cell) => (Reading { found: StoredState::Discarded, ..reading }, next.or(Some(cell))),
    }
}

/// The parameters of a charge that are the same for every algorithm.
#[derive(Clone, Copy)]
struct ChargeStep {
    cost: Cost,
    id: ChargeId,
    refusals: Refusals,
    at: StepTime,
}

impl ChargeStep {
    #[inline(always)]
    fn new(limit: &Limit, cost: Cost, id: ChargeId, now: Timestamp) -> Self {
        let at = StepTime { now, skew_max: limit.skew_tolerance() };
        Self { cost, id, refusals: limit.refusals(), at }
    }

    /// Counts the only charge of a call if it fits, or if the limit counts refusals. Returns the
    /// reading and the next state.
    #[inline(always)]
    fn charge_alone<S: PlainStep>(self, step: &S, state: S::State) -> (Reading, S::State) {
        let Self { cost, refusals, at, .. } = self;
        if cost == Cost::PEEK {
            return (step.read(Some(&state), cost, at), state);
        }
        match step.charge_if_fits(&state, cost, at) {
            Ok((next, after)) => (Reading { admission: Admission::Now, ..after }, next),
            Err(before) if refusals == Refusals::Free => (before, state),
            Err(_) => {
                let (reading, next) = self.charge(step, Some(state), |_| false);
                (reading, next.unwrap_or(state))
            }
        }
    }

    /// Reads the state. Then counts the charge if `admits` returns true for its admission, or if
    /// the limit counts refusals. Returns the reading and the next state.
    #[inline(always)]
    fn charge<S: CellStep>(
        self,
        step: &S,
        state: Option<S::State>,
        admits: impl FnOnce(Admission) -> bool,
    ) -> (Reading, Option<S::State>) {
        let Self { cost, id, refusals, at } = self;
        let before = step.read(state.as_ref(), cost, at);
        let admitted = admits(before.admission);
        if cost == Cost::PEEK || !(admitted || refusals == Refusals::Counted) {
            return (before, state);
        }
        // State from too far in the future is treated as missing.
        let state = state.filter(|_| before.found != StoredState::Discarded);
        let state = if admitted {
            step.charge(state, cost, id, at)
        } else {
            step.charge_refused(state, cost, id, at)
        };
        let after = step.read_after(&before, &state, cost, at);
        // A refused charge that fitted on this limit was refused by another limit.
        let fits = admitted || before.admission == Admission::Now;
        let admission = if fits { Admission::Now } else { after.fits_again };
        (Reading { admission, found: before.found, ..after }, Some(state))
    }
}

fn refund(
    cell: Option<Cell>,
    limit: &Limit,
    operation: Operation,
    now: Timestamp,
) -> (Reading, Option<Cell>) {
    let cell = match cell {
        Some(Cell::Reserved(reserved)) => {
            return reservations::refund(reserved, limit, operation, now);
        }
        cell => cell,
    };
    let before = assess(cell.as_ref(), limit, Cost::PEEK, now);
    // A discarded state has no charges to refund. Only a charge replaces a discarded state.
    if before.found == StoredState::Discarded {
        return (before, cell);
    }
    let Some(mut cell) = cell else { return (before, None) };
    let refunded = refund_units(&mut cell, limit, operation, now);
    let reading = assess(Some(&cell), limit, Cost::PEEK, now);
    (Reading { refunded, found: before.found, ..reading }, Some(cell))
}

/// Applies the operation `refund` to a valid cell of `limit`, and returns the refunded units.
fn refund_units(cell: &mut Cell, limit: &Limit, refund: Operation, now: Timestamp) -> u64 {
    let Operation::Refund { cost, position, id, .. } = refund else { return 0 };
    let at = StepTime { now, skew_max: limit.skew_tolerance() };
    with_step!(limit, Some(cell), |step, state, wrap| {
        state.map_or(0, |state| step.refund(state, cost, position, id, at))
    })
}

/// Returns the reading of `limit` after a reset that deletes `cell`. The reading's `found`
/// describes the deleted cell.
fn forget(cell: Option<&Cell>, limit: &Limit, now: Timestamp) -> Reading {
    let found = assess(cell, limit, Cost::PEEK, now).found;
    Reading { found, ..assess(None, limit, Cost::PEEK, now) }
}

/// Merges `cell` and `other`, two states of one limit and subject, into a cell that admits only
/// requests that both states admit.
///
/// If one state contains everything that the other counted, the result is that state, and is exact.
/// If each state counted requests that the other did not, the result has the larger count, and
/// requests that only the state with the smaller count contains are lost. The operation is
/// idempotent and commutative. A state that is not valid at `now` is ignored. If neither is valid,
/// `cell` is returned unchanged.
#[must_use]
pub fn join(cell: Option<Cell>, other: Cell, limit: &Limit, now: Timestamp) -> Option<Cell> {
    let counts = |cell: &Cell| {
        let found = assess(Some(cell), limit, Cost::PEEK, now).found;
        cell.is_of(limit) && found == StoredState::Present
    };
    if !counts(&other) {
        return cell;
    }
    // Expired reservations are removed in this case too, so a repeated join has the same result.
    let Some(one) = cell.filter(counts) else {
        return Some(reservations::as_of(other, limit, now));
    };
    if matches!(one, Cell::Reserved(_)) || matches!(other, Cell::Reserved(_)) {
        return reservations::join(one, other, limit, now);
    }
    Some(match (limit.algorithm(), one, other) {
        (Algorithm::FixedWindow(step), Cell::FixedWindow(one), Cell::FixedWindow(other)) => {
            Cell::FixedWindow(step.join(one, other))
        }
        (Algorithm::SlidingWindow(step), Cell::SlidingWindow(one), Cell::SlidingWindow(other)) => {
            Cell::SlidingWindow(step.join(one, other))
        }
        (Algorithm::TwoBucket(step), Cell::TwoBucket(one), Cell::TwoBucket(other)) => {
            Cell::TwoBucket(step.join(one, other))
        }
        (Algorithm::SlidingLog(step), Cell::SlidingLog(one), Cell::SlidingLog(other)) => {
            Cell::SlidingLog(step.join(one, other))
        }
        (Algorithm::TokenBucket(step), Cell::TokenBucket(one), Cell::TokenBucket(other)) => {
            Cell::TokenBucket(step.join(one, other))
        }
        (Algorithm::Concurrency(step), Cell::Concurrency(one), Cell::Concurrency(other)) => {
            Cell::Concurrency(step.join(one, other))
        }
        (_, one, _) => one,
    })
}

/// Returns the time at which `cell` expires and can be deleted.
#[inline]
#[must_use]
pub fn expires_at(cell: &Cell, limit: &Limit) -> Timestamp {
    if let Cell::Reserved(reserved) = cell {
        return reserved.expires_at(limit);
    }
    with_step!(limit, Some(cell), |step, state, wrap| {
        state.map_or(Timestamp::EPOCH, |state| step.expires_at(state))
    })
}

/// Returns the time from which units charged at `position` can no longer be refunded. Until then a
/// store remembers which receipts were refunded.
#[must_use]
pub fn refundable_until(limit: &Limit, position: ChargePosition) -> Timestamp {
    match limit.algorithm() {
        Algorithm::FixedWindow(step) => step.refundable_until(position),
        Algorithm::SlidingWindow(step) => step.refundable_until(position),
        Algorithm::TwoBucket(step) => step.refundable_until(position),
        Algorithm::SlidingLog(step) => step.refundable_until(position),
        Algorithm::TokenBucket(step) => step.refundable_until(position),
        Algorithm::Concurrency(step) => step.refundable_until(position),
    }
}
