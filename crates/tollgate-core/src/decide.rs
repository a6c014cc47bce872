//! The step: a cell, an ask and a moment give a reading and the next cell.
//!
//! The only match on the algorithm. A store reads every take of a call with [`assess`], and only
//! if all fit carries them out with [`decide`]; nothing here reads a clock, fails or does IO.

mod reservations;
mod scaled;

use alloc::boxed::Box;

pub use reservations::ReservedCell;

use crate::algo::{
    CellStep, StepTime, concurrency, fixed_window, sliding_log, sliding_window, token_bucket,
    two_bucket,
};
use crate::charge::{Deduplication, Operation};
use crate::charge_id::ChargeId;
use crate::charge_position::ChargePosition;
use crate::cost::Cost;
use crate::limit::{Algorithm, Limit, Refusals};
use crate::reading::{Admission, Reading, StoredState};
use crate::time::Timestamp;

/// What a store keeps for one limit and subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Of a fixed window.
    FixedWindow(fixed_window::State),
    /// Of a sliding window.
    SlidingWindow(sliding_window::State),
    /// Of a two-bucket estimate.
    TwoBucket(two_bucket::State),
    /// Of a sliding log.
    SlidingLog(sliding_log::State),
    /// Of a token bucket.
    TokenBucket(token_bucket::State),
    /// Of a concurrency limit.
    Concurrency(concurrency::State),
    /// Of any but a concurrency limit, with reservations.
    Reserved(Box<ReservedCell>),
}

/// A state that is two plain numbers: copied, not moved, and decided on by [`charge_plain`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plain {
    /// Of a fixed window.
    FixedWindow(fixed_window::State),
    /// Of a token bucket.
    TokenBucket(token_bucket::State),
}

impl From<Plain> for Cell {
    #[inline]
    fn from(state: Plain) -> Self {
        match state {
            Plain::FixedWindow(state) => Self::FixedWindow(state),
            Plain::TokenBucket(state) => Self::TokenBucket(state),
        }
    }
}

impl TryFrom<Cell> for Plain {
    type Error = Cell;

    /// # Errors
    /// The cell itself, if it is of another kind.
    fn try_from(cell: Cell) -> Result<Self, Cell> {
        match cell {
            Cell::FixedWindow(state) => Ok(Self::FixedWindow(state)),
            Cell::TokenBucket(state) => Ok(Self::TokenBucket(state)),
            _ => Err(cell),
        }
    }
}

impl Cell {
    /// Whether it is of the kind that `limit` keeps.
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

/// Calls `$body` with the limit's algorithm as `$step`, its state of the right kind as `$state`
/// (`None` where the cell is of another kind) and the cell's constructor as `$wrap`.
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

/// How `limit` stands at `now`, and whether `cost` fits. Changes nothing, and allocates nothing
/// where no reservation ran out and none is waited for.
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

/// How `limit` stands at `now`, and whether what `operation` takes or looks for fits: a reservation also
/// has to find room beside others. Changes nothing.
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

/// Carries `operation` out at `now`: the reading after it and the next cell.
///
/// A take that does not fit changes nothing, unless the limit counts refusals. A cell of another
/// kind than the limit's, or from an impossible future, counts as none. `None` as the next cell
/// means that there is nothing to store.
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
        Operation::Renew { id } => renew(cell, limit, id, now),
        Operation::Extend { id, .. } if has_permits(limit) => renew(cell, limit, id, now),
        Operation::Extend { id, until, .. } => reservations::extend(cell, limit, (id, until), now),
        Operation::Settle { .. } if has_permits(limit) => {
            release_permit(cell, limit, operation, now)
        }
        Operation::Settle { id, cost, .. } => reservations::settle(cell, limit, (id, cost), now),
        Operation::Reset => (forget(cell.as_ref(), limit, now), None),
    }
}

/// Counts a take or a reservation that was found to fit; its reading says so.
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

/// Answers a take or a reservation of a refused call: counted where the limit counts refusals, else unchanged.
///
/// The reading's fit is this limit's own: it may fit here, and be refused by another limit.
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

/// Carries out a take that is alone in its call, on a plain state: what [`decide`] does, without a
/// cell to be moved. `None` if `limit` keeps another kind.
///
/// The next state is the same where nothing was counted. The hot path of a store in memory: it is
/// inlined with all below it, so that neither reading nor state passes through memory twice.
#[inline(always)]
#[must_use]
pub fn charge_plain(
    state: Plain,
    limit: &Limit,
    cost: Cost,
    now: Timestamp,
) -> Option<(Reading, Plain)> {
    let take = ChargeStep::new(limit, cost, ChargeId::default(), now);
    let admits = |admission| admission == Admission::Now;
    match (limit.algorithm(), state) {
        (Algorithm::FixedWindow(step), Plain::FixedWindow(state)) => {
            let (reading, next) = take.charge(step, Some(state), admits);
            Some((reading, Plain::FixedWindow(next.unwrap_or(state))))
        }
        (Algorithm::TokenBucket(step), Plain::TokenBucket(state)) => {
            let (reading, next) = take.charge(step, Some(state), admits);
            Some((reading, Plain::TokenBucket(next.unwrap_or(state))))
        }
        _ => None,
    }
}

const fn admit_always(_: Admission) -> bool {
    true
}

const fn has_permits(limit: &Limit) -> bool {
    matches!(limit.algorithm(), Algorithm::Concurrency(_))
}

/// Takes or reserves by `limit` if `admits` says so of how that fits.
fn execute(
    cell: Option<Cell>,
    limit: &Limit,
    operation: Operation,
    now: Timestamp,
    admits: impl FnOnce(Admission) -> bool,
) -> (Reading, Option<Cell>) {
    let (cost, id) = operation.as_charge().unwrap_or_default();
    let take = ChargeStep::new(limit, cost, id, now);
    match operation {
        Operation::Reserve { until, .. } if !has_permits(limit) => {
            reservations::reserve(cell, limit, (take, until), admits)
        }
        _ => charge(cell, limit, take, admits),
    }
}

/// Takes by `limit` if `admits` says so of how the take fits.
fn charge(
    cell: Option<Cell>,
    limit: &Limit,
    take: ChargeStep,
    admits: impl FnOnce(Admission) -> bool,
) -> (Reading, Option<Cell>) {
    match cell {
        Some(Cell::Reserved(reserved)) => reservations::take(reserved, limit, take, admits),
        cell => charge_state(cell, limit, take, admits),
    }
}

/// As [`charge`], of a cell without reservations.
fn charge_state(
    mut cell: Option<Cell>,
    limit: &Limit,
    take: ChargeStep,
    admits: impl FnOnce(Admission) -> bool,
) -> (Reading, Option<Cell>) {
    let of_another_kind = cell.take_if(|cell| !cell.is_of(limit));
    let (reading, next) = with_step!(limit, cell, |step, state, wrap| {
        let (reading, next) = take.charge(step, state, admits);
        (reading, next.map(wrap))
    });
    match of_another_kind {
        None => (reading, next),
        Some(cell) => (Reading { found: StoredState::Discarded, ..reading }, next.or(Some(cell))),
    }
}

/// What a take asks of an algorithm.
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

    /// Reads, and counts if `admits` says so of how it fits, or refusals count.
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
        // A state from an impossible future counts as none.
        let state = state.filter(|_| before.found != StoredState::Discarded);
        let state = step.take(state, cost, id, at);
        let after = step.read(Some(&state), cost, at);
        // What fitted before its own counting was not what refused.
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
    // What counts as none has nothing to give back, and is replaced by a take alone.
    if before.found == StoredState::Discarded {
        return (before, cell);
    }
    let Some(mut cell) = cell else { return (before, None) };
    let refunded = refund_units(&mut cell, limit, operation, now);
    let reading = assess(Some(&cell), limit, Cost::PEEK, now);
    (Reading { refunded, found: before.found, ..reading }, Some(cell))
}

/// The units that a refund gives back to a state in force.
fn refund_units(cell: &mut Cell, limit: &Limit, refund: Operation, now: Timestamp) -> u64 {
    let Operation::Refund { cost, position, id, .. } = refund else { return 0 };
    let at = StepTime { now, skew_max: limit.skew_tolerance() };
    with_step!(limit, Some(cell), |step, state, wrap| {
        state.map_or(0, |state| step.refund(state, cost, position, id, at))
    })
}

fn renew(
    mut cell: Option<Cell>,
    limit: &Limit,
    id: ChargeId,
    now: Timestamp,
) -> (Reading, Option<Cell>) {
    let at = StepTime { now, skew_max: limit.skew_tolerance() };
    let renewed = match (limit.algorithm(), &mut cell) {
        (Algorithm::Concurrency(step), Some(Cell::Concurrency(state))) => {
            step.renew(state, id, at).is_some()
        }
        _ => false,
    };
    let reading = assess(cell.as_ref(), limit, Cost::PEEK, now);
    // A renewal fits if the lease was still held; one that ran out has to be asked for anew.
    let admission = if renewed { Admission::Now } else { Admission::Never };
    (Reading { admission, ..reading }, cell)
}

/// Gives a lease back, whatever the request cost; fits if it was still held.
fn release_permit(
    cell: Option<Cell>,
    limit: &Limit,
    settlement: Operation,
    now: Timestamp,
) -> (Reading, Option<Cell>) {
    let Operation::Settle { id, position, cost } = settlement else {
        return (Reading::default(), cell);
    };
    let refund = Operation::Refund { cost, position, id, deduplication: Deduplication::Unneeded };
    let (reading, cell) = self::refund(cell, limit, refund, now);
    let admission = if reading.refunded > 0 { Admission::Now } else { Admission::Never };
    (Reading { admission, ..reading }, cell)
}

/// How `limit` stands once `cell` is gone; what was found is what was forgotten.
fn forget(cell: Option<&Cell>, limit: &Limit, now: Timestamp) -> Reading {
    let found = assess(cell, limit, Cost::PEEK, now).found;
    Reading { found, ..assess(None, limit, Cost::PEEK, now) }
}

/// `cell` and `other`, two accounts of one limit and subject, as one that admits what both would.
///
/// Exact where one of them counted everything that the other did, and more: then it is that one.
/// Where each counted what the other did not, the larger stands, so that at most the smaller's own
/// part is forgotten. Joined twice changes nothing more, and neither does the order. What counts as
/// none at `now` is left out; where both do, `cell` stays.
#[must_use]
pub fn join(cell: Option<Cell>, other: Cell, limit: &Limit, now: Timestamp) -> Option<Cell> {
    let counts = |cell: &Cell| {
        let found = assess(Some(cell), limit, Cost::PEEK, now).found;
        cell.is_of(limit) && found == StoredState::Present
    };
    if !counts(&other) {
        return cell;
    }
    // So that what ran out is gone, whether it is joined once or twice.
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

/// The moment from which `cell` says nothing any more and can be forgotten.
#[must_use]
pub fn expires_at(cell: &Cell, limit: &Limit) -> Timestamp {
    if let Cell::Reserved(reserved) = cell {
        return reserved.expires_at(limit);
    }
    with_step!(limit, Some(cell), |step, state, wrap| {
        state.map_or(Timestamp::EPOCH, |state| step.expires_at(state))
    })
}

/// The moment from which nothing taken at `position` can be given back: until then a store remembers
/// which receipts were refunded.
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
