//! Executes the jobs of a command one after another. Each job is executed completely or not at all.
//!
//! The changed states stay in memory until the end of the command. If the command fails before
//! that, no key is changed.

use std::rc::Rc;

use tollgate_core::decide::{
    assess_operation, charge_admitted, charge_refused, decide, expires_at,
};
use tollgate_core::limit::Refusals;
use tollgate_core::time::MAX_WINDOW;
use tollgate_core::{
    Admission, Algorithm, Cell, ChargePosition, Cost, Deduplication, Limit, Millis, Operation,
    Reading, ReservationTerms, Timestamp,
};

use crate::answer::Reply;
use crate::buffers::{Change, Lists};
use crate::error::CommandError;
use crate::location_state::{LocationState, Undo};
use crate::request::{Creation, Guard, Item, JobCharge, Location, Op, Request, Target};
use crate::stored::{Loaded, Stored, of_another_algorithm};

/// Reads the states that a command needs.
pub(crate) trait Keyspace {
    /// Calls `loaded` with the stored value at `location`, and returns what `loaded` returns.
    fn load<T>(
        &mut self,
        location: Location,
        loaded: impl FnOnce(Loaded<'_>) -> T,
    ) -> Result<T, CommandError>;

    /// Loads the stored values at `locations`. Calls `loaded` for each location in order: with the
    /// value if the location is a table entry, and with `None` if it is a key. Calls `loaded` for
    /// no location if it is faster to load each entry with [`load`](Self::load) when it is first
    /// used.
    fn load_entries(
        &mut self,
        locations: &[Location],
        loaded: impl FnMut(Option<Loaded<'_>>),
    ) -> Result<(), CommandError>;

    /// Returns whether a state cannot be created at `location`, because there is no room. The
    /// location must have no state yet.
    fn is_full(&mut self, location: Location) -> bool;
}

/// The result of an operation on a cell: the reading, the new cell, and whether it must be written.
type Decided = (Reading, Option<Cell>, bool);

/// The state of the execution of a command.
pub(crate) struct Step<'a, K> {
    pub(crate) keyspace: &'a mut K,
    pub(crate) creation: Creation,
    pub(crate) rules: &'a [Rc<Limit>],
    pub(crate) locations: &'a [Location],
    pub(crate) states: &'a mut [LocationState],
    pub(crate) values: &'a mut Vec<u8>,
    pub(crate) reply: Reply<'a>,
    pub(crate) undo: &'a mut Vec<Undo>,
}

/// Executes all jobs of `request`. Writes the reply and the changed states to `lists`.
///
/// # Errors
/// [`CommandError`] if a part of the request is invalid.
pub(crate) fn run(
    mut request: Request<'_>,
    keyspace: &mut impl Keyspace,
    clock: Option<Timestamp>,
    lists: &mut Lists,
) -> Result<(), CommandError> {
    let (creation, rules, locations) = (request.creation, request.rules, request.locations);
    let Lists { charges, plain_charges, states, changes, values, reply, undo } = lists;
    states.reserve(locations.len());
    keyspace.load_entries(locations, |value| {
        states.push(value.map(|value| LocationState::of(value, values)).unwrap_or_default());
    })?;
    states.resize_with(locations.len(), LocationState::default);
    let reply = Reply::new(reply, locations.len(), clock);
    let mut step = Step { keyspace, creation, rules, locations, states, values, reply, undo };
    while let Some(item) = request.next(charges, plain_charges)? {
        match item {
            Item::Job { now } => step.job(charges, now)?,
            Item::PlainCharges { now } => step.charge_job(plain_charges, now)?,
            Item::Run { now, rule, cost, location, jobs, is_same } => {
                for index in 0..jobs {
                    let location = if is_same { location } else { location + index };
                    let target = Target { rule, location, cost };
                    step.load(location)?;
                    let plain = step.charge_plain(&target, now).map(|(reading, _)| reading);
                    if let Some(reading) = plain.or_else(|| step.charge_window(&target, now)) {
                        step.reply.decided();
                        step.reply.reading(&reading);
                        continue;
                    }
                    let op = Op::Charge { cost, id: Default::default() };
                    step.alone(&JobCharge { rule, location, op }, now)?;
                }
            }
        }
    }
    step.list_changes(changes);
    Ok(())
}

impl<'a, K: Keyspace> Step<'a, K> {
    /// Executes a job that consists of the single operation `charge`, and writes its answer.
    fn alone(&mut self, charge: &JobCharge, now: Timestamp) -> Result<(), CommandError> {
        let Op::Charge { cost, id } = charge.op else {
            return self.job(std::slice::from_ref(charge), now);
        };
        if self.creation == Creation::Denied || !self.open(charge.location)?.stored.exists() {
            return self.job(std::slice::from_ref(charge), now);
        }
        let operation = Operation::Charge { cost, id };
        let reading = self.change(charge, now, |cell, limit| {
            let (reading, next) = decide(cell, limit, operation, now);
            let counted =
                reading.admission == Admission::Now || limit.refusals() == Refusals::Counted;
            (reading, next, counted && cost != Cost::PEEK)
        })?;
        self.reply.decided();
        self.reply.reading(&reading);
        Ok(())
    }

    pub(crate) fn job(
        &mut self,
        charges: &[JobCharge],
        now: Timestamp,
    ) -> Result<(), CommandError> {
        let is_admitted = self.is_admitted_by_all(charges, now)?;
        for charge in charges {
            let is_counted = is_admitted || self.rules[charge.rule].refusals() == Refusals::Counted;
            let creates = match charge.op {
                Op::Charge { cost, .. } | Op::Reserve { cost, .. } => {
                    cost != Cost::PEEK && is_counted
                }
                Op::Join { .. } => true,
                _ => false,
            };
            if creates
                && !self.open(charge.location)?.stored.exists()
                && self.is_full(charge.location)
            {
                self.reply.full();
                return Ok(());
            }
        }
        self.reply.decided();
        for charge in charges {
            self.execute(charge, now, is_admitted)?;
        }
        Ok(())
    }

    fn is_full(&mut self, location: usize) -> bool {
        self.creation == Creation::Denied || self.keyspace.is_full(self.locations[location])
    }

    fn is_admitted_by_all(
        &mut self,
        charges: &[JobCharge],
        now: Timestamp,
    ) -> Result<bool, CommandError> {
        for charge in charges {
            let (operation, limit) = match charge.op {
                Op::Charge { cost, id } => (Operation::Charge { cost, id }, None),
                Op::Reserve { cost, id, until, .. } => {
                    (Operation::Reserve { cost, id, until }, self.terms_of(charge)?)
                }
                _ => continue,
            };
            let limit = limit.as_ref().unwrap_or_else(|| self.rule(charge));
            let state = self.open(charge.location)?;
            let foreign;
            let cell = match &state.stored {
                Stored::Cell(cell) => Some(cell),
                Stored::Missing => None,
                Stored::Refund(_) | Stored::Foreign => {
                    foreign = of_another_algorithm(limit);
                    Some(&foreign)
                }
            };
            let admission = assess_operation(cell, limit, operation, now).admission;
            if admission != Admission::Now {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn execute(
        &mut self,
        charge: &JobCharge,
        now: Timestamp,
        is_admitted: bool,
    ) -> Result<(), CommandError> {
        let reading = match &charge.op {
            Op::Charge { cost, id } => {
                let operation = Operation::Charge { cost: *cost, id: *id };
                self.charge(charge, operation, now, is_admitted)?
            }
            Op::Reserve { cost, id, until, .. } => {
                let operation = Operation::Reserve { cost: *cost, id: *id, until: *until };
                self.charge(charge, operation, now, is_admitted)?
            }
            Op::Peek { cost } => self.peek(charge, *cost, now)?,
            Op::Refund { guard, .. } => self.refund(charge, *guard, now)?,
            Op::Renew { id } => {
                let operation = Operation::Renew { id: *id };
                self.decide(charge, operation, now, |reading| reading.admission == Admission::Now)?
            }
            Op::Extend { id, until } => {
                let position = ChargePosition::default();
                let operation = Operation::Extend { id: *id, position, until: *until };
                self.decide(charge, operation, now, |reading| reading.admission == Admission::Now)?
            }
            Op::Settle { cost, id, .. } => {
                let position = ChargePosition::default();
                let operation = Operation::Settle { id: *id, position, cost: *cost };
                self.decide(charge, operation, now, |reading| reading.admission == Admission::Now)?
            }
            Op::Reset => {
                let existed = self.open(charge.location)?.stored.exists();
                self.decide(charge, Operation::Reset, now, |_| existed)?
            }
            Op::Cell => return self.cell(charge, now),
            Op::Join { cell } => return self.join(charge, cell, now),
        };
        self.reply.reading(&reading);
        Ok(())
    }

    /// Executes one charge or reservation of a job. `is_admitted` states whether all charges and
    /// reservations of the job fit.
    fn charge(
        &mut self,
        charge: &JobCharge,
        operation: Operation,
        now: Timestamp,
        is_admitted: bool,
    ) -> Result<Reading, CommandError> {
        self.change(charge, now, |cell, limit| {
            let counted = is_admitted || limit.refusals() == Refusals::Counted;
            let charge = if is_admitted { charge_admitted } else { charge_refused };
            let (reading, next) = charge(cell, limit, operation, now);
            (reading, next, counted && operation.cost() != Cost::PEEK)
        })
    }

    fn peek(
        &mut self,
        charge: &JobCharge,
        cost: Cost,
        now: Timestamp,
    ) -> Result<Reading, CommandError> {
        self.decide(charge, Operation::Peek { cost }, now, |_| false)
    }

    fn refund(
        &mut self,
        charge: &JobCharge,
        guard: Option<Guard>,
        now: Timestamp,
    ) -> Result<Reading, CommandError> {
        let Op::Refund { cost, position, id, .. } = charge.op else {
            return Err(CommandError::Invalid("refund"));
        };
        if let Some(guard) = guard
            && let Stored::Refund(until) = self.open(guard.location)?.stored
            && now < until
        {
            return self.peek(charge, Cost::PEEK, now);
        }
        let (position, deduplication) = (ChargePosition(position), Deduplication::Unneeded);
        let operation = Operation::Refund { cost, position, id, deduplication };
        let reading = self.decide(charge, operation, now, |reading| reading.refunded > 0)?;
        if let Some(guard) = guard
            && now < guard.until
            && (reading.refunded > 0 || self.creation == Creation::Allowed)
        {
            let state = self.open(guard.location)?;
            state.stored = Stored::Refund(guard.until);
            (state.changed, state.is_end_moved) = (Some((charge.rule, now)), true);
        }
        Ok(reading)
    }

    /// Executes one operation and returns its reading. `is_changed` receives the reading and
    /// returns whether the operation changed the cell.
    fn decide(
        &mut self,
        charge: &JobCharge,
        operation: Operation,
        now: Timestamp,
        is_changed: impl FnOnce(&Reading) -> bool,
    ) -> Result<Reading, CommandError> {
        self.change(charge, now, |cell, limit| {
            let (reading, next) = decide(cell, limit, operation, now);
            let is_changed = is_changed(&reading);
            (reading, next, is_changed)
        })
    }

    pub(crate) fn change(
        &mut self,
        charge: &JobCharge,
        now: Timestamp,
        decide: impl FnOnce(Option<Cell>, &Limit) -> Decided,
    ) -> Result<Reading, CommandError> {
        let own = self.terms_of(charge)?;
        let limit = own.as_ref().unwrap_or_else(|| self.rule(charge));
        let state = self.open(charge.location)?;
        let kept = state.stored.clone_if_foreign();
        let cell = state.stored.take_for(limit);
        let end = cell.as_ref().filter(|_| kept.is_none()).map(|cell| expires_at(cell, limit));
        let (reading, next, is_changed) = decide(cell, limit);
        state.stored = match (is_changed, kept) {
            (false, Some(kept)) => kept,
            _ => next.map_or(Stored::Missing, Stored::Cell),
        };
        if is_changed {
            let next = match &state.stored {
                Stored::Cell(cell) => Some(expires_at(cell, limit)),
                _ => None,
            };
            state.is_end_moved |= next != end;
            state.changed = Some((charge.rule, now));
        }
        Ok(reading)
    }

    #[inline]
    pub(crate) fn load(&mut self, location: usize) -> Result<(), CommandError> {
        let state = &mut self.states[location];
        if !state.is_loaded {
            let values = &mut *self.values;
            *state = self
                .keyspace
                .load(self.locations[location], |value| LocationState::of(value, values))?;
        }
        Ok(())
    }

    pub(crate) fn open(&mut self, location: usize) -> Result<&mut LocationState, CommandError> {
        self.load(location)?;
        let state = &mut self.states[location];
        state.decode(self.values);
        Ok(state)
    }

    pub(crate) fn rule(&self, charge: &JobCharge) -> &'a Limit {
        &self.rules[charge.rule]
    }

    /// Returns the limit with the reservation terms that the operation `charge` contains. Returns
    /// `Ok(None)` if the operation contains no such terms.
    fn terms_of(&self, charge: &JobCharge) -> Result<Option<Limit>, CommandError> {
        let limit = self.rule(charge);
        let defaults = || ReservationTerms { max: MAX_WINDOW, ..ReservationTerms::default() };
        let terms = match charge.op {
            Op::Reserve { at_most, on_expiry, .. } => {
                ReservationTerms { at_most, on_expiry, ..defaults() }
            }
            Op::Extend { .. } => defaults(),
            Op::Settle { most, .. } if !matches!(limit.algorithm(), Algorithm::Concurrency(_)) => {
                let overdraft = most.checked_sub(limit.capacity());
                let overdraft = overdraft.ok_or(CommandError::Invalid("number of used units"))?;
                ReservationTerms { overdraft, ..defaults() }
            }
            _ => return Ok(None),
        };
        let limit = limit.clone().with_reservation_terms(terms);
        limit.map(Some).map_err(|_| CommandError::Invalid("terms of a reservation"))
    }

    fn list_changes(&mut self, changes: &mut Vec<Change>) {
        let values = &mut *self.values;
        for (state, location) in self.states.iter_mut().zip(self.locations) {
            let Some((rule, now)) = state.changed else { continue };
            let (limit, stored, existed) = (&self.rules[rule], &state.stored, state.existed);
            let is_end_moved = state.is_end_moved || !existed;
            let live = || {
                let end = match stored {
                    Stored::Cell(cell) => expires_at(cell, limit),
                    Stored::Refund(until) => *until,
                    Stored::Missing | Stored::Foreign => now,
                };
                let live = end.since(now).get().saturating_add(limit.skew_tolerance().get());
                Millis::new(live.max(1))
            };
            let live = if is_end_moved { live() } else { Millis::new(0) };
            let begin = values.len();
            match (&state.bytes, location) {
                (Some(_), _) => {}
                (None, Location::Key(_)) => stored.write_key(values),
                (None, Location::Entry(..)) => stored.write_entry(values),
            }
            let value = state.bytes.clone().unwrap_or(begin..values.len());
            let slot = state.slot;
            changes.push(Change { location: *location, slot, value, existed, live, is_end_moved });
        }
    }
}
