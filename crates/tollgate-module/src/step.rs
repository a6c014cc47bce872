//! Executes the jobs of a command one after another. Each job is executed completely or not at all.
//!
//! The changed states stay in memory until the end of the command. If the command fails before
//! that, no key is changed.

use std::ops::Range;
use std::rc::Rc;

use tollgate_core::decide::{
    assess, assess_operation, charge_admitted, charge_refused, decide, expires_at, join,
};
use tollgate_core::limit::Refusals;
use tollgate_core::time::MAX_WINDOW;
use tollgate_core::{
    Admission, Algorithm, Cell, ChargePosition, Cost, Deduplication, Limit, Millis, Operation,
    Reading, ReservationTerms, StoredState, Timestamp,
};

use crate::answer::Reply;
use crate::error::CommandError;
use crate::held::{Held, Undo};
use crate::request::{Ask, Creation, Guard, Item, Op, Place, Request, Target};
use crate::stored::{Loaded, Stored, of_another_algorithm};

/// Reads the states that a command needs.
pub(crate) trait Keyspace {
    /// Calls `loaded` with the stored value at `place`, and returns what `loaded` returns.
    fn load<T>(
        &mut self,
        place: Place,
        loaded: impl FnOnce(Loaded<'_>) -> T,
    ) -> Result<T, CommandError>;

    /// Calls `loaded` for each place in order: with the value of a table entry, and with `None` for
    /// a key. Calls nothing if it is faster to load each entry with [`load`](Self::load) when it is
    /// first used.
    fn load_entries(
        &mut self,
        places: &[Place],
        loaded: impl FnMut(Option<Loaded<'_>>),
    ) -> Result<(), CommandError>;

    /// Returns whether a state cannot be created at `place`, because there is no room. The place
    /// must have no state yet.
    fn is_full(&mut self, place: Place) -> bool;
}

/// A state that a command changed and that is not written to its place yet.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) place: Place,
    /// The slot from which the state was read, if the place is a table entry.
    pub(crate) slot: usize,
    /// The range of the new value in [`Buffers::values`]. The range is empty if the state is
    /// removed.
    pub(crate) value: Range<usize>,
    /// Whether the place had a state before the command.
    pub(crate) existed: bool,
    /// The new time to live, which is used only if `is_end_moved` is set.
    pub(crate) live: Millis,
    /// Whether the change moves the time at which the state expires.
    pub(crate) is_end_moved: bool,
}

/// The lists that the execution of a command needs. The next command reuses their memory.
///
/// Without this reuse, a command would allocate memory about fifteen times. An allocation with its
/// release takes about 200 instructions in the server, because the server counts its memory.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    pub(crate) rules: Vec<Rc<Limit>>,
    pub(crate) places: Vec<Place>,
    pub(crate) asks: Vec<Ask>,
    pub(crate) takes: Vec<Target>,
    pub(crate) held: Vec<Held>,
    pub(crate) changes: Vec<Change>,
    /// The bytes of the states that are not decoded, and the new values of all changes.
    pub(crate) values: Vec<u8>,
    pub(crate) reply: Vec<u8>,
    pub(crate) undo: Vec<Undo>,
}

impl Buffers {
    /// The largest capacity, in places, that the lists keep after a command.
    const KEPT_PLACES: usize = 1_024;
    /// The largest capacity, in bytes, that the list of values keeps after a command.
    const KEPT_BYTES: usize = 256 * 1024;

    /// Empties all lists, and releases the memory of long lists.
    pub(crate) fn clear(&mut self) {
        if self.places.capacity().max(self.asks.capacity()) > Self::KEPT_PLACES
            || self.values.capacity().max(self.reply.capacity()) > Self::KEPT_BYTES
        {
            *self = Self::default();
        }
        self.rules.clear();
        self.places.clear();
        self.asks.clear();
        self.held.clear();
        self.changes.clear();
        self.values.clear();
        self.reply.clear();
    }
}

/// The lists of [`Buffers`] that [`run`] fills.
pub(crate) struct Lists<'b> {
    pub(crate) asks: &'b mut Vec<Ask>,
    pub(crate) takes: &'b mut Vec<Target>,
    pub(crate) held: &'b mut Vec<Held>,
    pub(crate) changes: &'b mut Vec<Change>,
    pub(crate) values: &'b mut Vec<u8>,
    pub(crate) reply: &'b mut Vec<u8>,
    pub(crate) undo: &'b mut Vec<Undo>,
}

/// The result of an operation on a cell: the reading, the new cell, and whether it must be written.
type Decided = (Reading, Option<Cell>, bool);

/// The state of the execution of a command.
pub(crate) struct Step<'a, K> {
    pub(crate) keyspace: &'a mut K,
    pub(crate) creation: Creation,
    pub(crate) rules: &'a [Rc<Limit>],
    pub(crate) places: &'a [Place],
    pub(crate) held: &'a mut [Held],
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
    lists: Lists<'_>,
) -> Result<(), CommandError> {
    let (creation, rules, places) = (request.creation, request.rules, request.places);
    let Lists { asks, takes, held, changes, values, reply, undo } = lists;
    held.reserve(places.len());
    keyspace.load_entries(places, |value| {
        held.push(value.map(|value| Held::of(value, values)).unwrap_or_default());
    })?;
    held.resize_with(places.len(), Held::default);
    let reply = Reply::new(reply, places.len(), clock);
    let mut step = Step { keyspace, creation, rules, places, held, values, reply, undo };
    while let Some(item) = request.next(asks, takes)? {
        match item {
            Item::Job { now } => step.job(asks, now)?,
            Item::Takes { now } => step.takes(takes, now)?,
            Item::Run { now, rule, cost, place, jobs, is_same } => {
                for index in 0..jobs {
                    let place = if is_same { place } else { place + index };
                    let target = Target { rule, place, cost };
                    step.load(place)?;
                    let plain = step.charge_plain(&target, now).map(|(reading, _)| reading);
                    if let Some(reading) = plain.or_else(|| step.charge_window(&target, now)) {
                        step.reply.decided();
                        step.reply.reading(&reading);
                        continue;
                    }
                    let op = Op::Take { cost, id: Default::default() };
                    step.alone(&Ask { rule, place, op }, now)?;
                }
            }
        }
    }
    step.list_changes(changes);
    Ok(())
}

impl<'a, K: Keyspace> Step<'a, K> {
    /// Executes a job that consists of the single operation `ask`, and writes its answer.
    fn alone(&mut self, ask: &Ask, now: Timestamp) -> Result<(), CommandError> {
        let Op::Take { cost, id } = ask.op else {
            return self.job(std::slice::from_ref(ask), now);
        };
        if self.creation == Creation::Denied || !self.open(ask.place)?.stored.exists() {
            return self.job(std::slice::from_ref(ask), now);
        }
        let operation = Operation::Charge { cost, id };
        let reading = self.change(ask, now, |cell, limit| {
            let (reading, next) = decide(cell, limit, operation, now);
            let counted =
                reading.admission == Admission::Now || limit.refusals() == Refusals::Counted;
            (reading, next, counted && cost != Cost::PEEK)
        })?;
        self.reply.decided();
        self.reply.reading(&reading);
        Ok(())
    }

    pub(crate) fn job(&mut self, asks: &[Ask], now: Timestamp) -> Result<(), CommandError> {
        let is_admitted = self.is_admitted_by_all(asks, now)?;
        for ask in asks {
            let is_counted = is_admitted || self.rules[ask.rule].refusals() == Refusals::Counted;
            let creates = match ask.op {
                Op::Take { cost, .. } | Op::Reserve { cost, .. } => {
                    cost != Cost::PEEK && is_counted
                }
                Op::Join { .. } => true,
                _ => false,
            };
            if creates && !self.open(ask.place)?.stored.exists() && self.is_full(ask.place) {
                self.reply.full();
                return Ok(());
            }
        }
        self.reply.decided();
        for ask in asks {
            self.execute(ask, now, is_admitted)?;
        }
        Ok(())
    }

    fn is_full(&mut self, place: usize) -> bool {
        self.creation == Creation::Denied || self.keyspace.is_full(self.places[place])
    }

    fn is_admitted_by_all(&mut self, asks: &[Ask], now: Timestamp) -> Result<bool, CommandError> {
        for ask in asks {
            let (operation, limit) = match ask.op {
                Op::Take { cost, id } => (Operation::Charge { cost, id }, None),
                Op::Reserve { cost, id, until, .. } => {
                    (Operation::Reserve { cost, id, until }, self.terms_of(ask)?)
                }
                _ => continue,
            };
            let limit = limit.as_ref().unwrap_or_else(|| self.rule(ask));
            let held = self.open(ask.place)?;
            let foreign;
            let cell = match &held.stored {
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
        ask: &Ask,
        now: Timestamp,
        is_admitted: bool,
    ) -> Result<(), CommandError> {
        let reading = match &ask.op {
            Op::Take { cost, id } => {
                let operation = Operation::Charge { cost: *cost, id: *id };
                self.take(ask, operation, now, is_admitted)?
            }
            Op::Reserve { cost, id, until, .. } => {
                let operation = Operation::Reserve { cost: *cost, id: *id, until: *until };
                self.take(ask, operation, now, is_admitted)?
            }
            Op::Look { cost } => self.look(ask, *cost, now)?,
            Op::Refund { guard, .. } => self.refund(ask, *guard, now)?,
            Op::Renew { id } => {
                let operation = Operation::Renew { id: *id };
                self.decide(ask, operation, now, |reading| reading.admission == Admission::Now)?
            }
            Op::Extend { id, until } => {
                let position = ChargePosition::default();
                let operation = Operation::Extend { id: *id, position, until: *until };
                self.decide(ask, operation, now, |reading| reading.admission == Admission::Now)?
            }
            Op::Settle { cost, id, .. } => {
                let position = ChargePosition::default();
                let operation = Operation::Settle { id: *id, position, cost: *cost };
                self.decide(ask, operation, now, |reading| reading.admission == Admission::Now)?
            }
            Op::Forget => {
                let existed = self.open(ask.place)?.stored.exists();
                self.decide(ask, Operation::Reset, now, |_| existed)?
            }
            Op::Cell => return self.cell(ask, now),
            Op::Join { cell } => return self.join(ask, cell, now),
        };
        self.reply.reading(&reading);
        Ok(())
    }

    /// Executes one charge or reservation of a job. `is_admitted` is whether all of them fit.
    fn take(
        &mut self,
        ask: &Ask,
        operation: Operation,
        now: Timestamp,
        is_admitted: bool,
    ) -> Result<Reading, CommandError> {
        self.change(ask, now, |cell, limit| {
            let counted = is_admitted || limit.refusals() == Refusals::Counted;
            let charge = if is_admitted { charge_admitted } else { charge_refused };
            let (reading, next) = charge(cell, limit, operation, now);
            (reading, next, counted && operation.cost() != Cost::PEEK)
        })
    }

    fn look(&mut self, ask: &Ask, cost: Cost, now: Timestamp) -> Result<Reading, CommandError> {
        self.decide(ask, Operation::Peek { cost }, now, |_| false)
    }

    fn refund(
        &mut self,
        ask: &Ask,
        guard: Option<Guard>,
        now: Timestamp,
    ) -> Result<Reading, CommandError> {
        let Op::Refund { cost, position, id, .. } = ask.op else {
            return Err(CommandError::Invalid("refund"));
        };
        if let Some(guard) = guard
            && let Stored::Refund(until) = self.open(guard.place)?.stored
            && now < until
        {
            return self.look(ask, Cost::PEEK, now);
        }
        let (position, deduplication) = (ChargePosition(position), Deduplication::Unneeded);
        let operation = Operation::Refund { cost, position, id, deduplication };
        let reading = self.decide(ask, operation, now, |reading| reading.refunded > 0)?;
        if let Some(guard) = guard
            && now < guard.until
            && (reading.refunded > 0 || self.creation == Creation::Allowed)
        {
            let held = self.open(guard.place)?;
            held.stored = Stored::Refund(guard.until);
            (held.changed, held.is_end_moved) = (Some((ask.rule, now)), true);
        }
        Ok(reading)
    }

    /// Answers a read of a cell: writes the cell at the place, or none if it is not valid.
    fn cell(&mut self, ask: &Ask, now: Timestamp) -> Result<(), CommandError> {
        let limit = self.rule(ask);
        let bytes = match &self.open(ask.place)?.stored {
            Stored::Cell(cell) if counts(cell, limit, now) => cell.to_bytes(),
            _ => Vec::new(),
        };
        self.reply.cell(&bytes);
        Ok(())
    }

    fn join(&mut self, ask: &Ask, other: &Cell, now: Timestamp) -> Result<(), CommandError> {
        let limit = self.rule(ask);
        let is_changed = counts(other, limit, now);
        if assess(Some(other), limit, Cost::PEEK, now).found == StoredState::Discarded
            && !is_of(other, limit)
        {
            return Err(CommandError::Invalid("cell for this limit"));
        }
        self.change(ask, now, |cell, limit| {
            let next = join(cell, other.clone(), limit, now);
            (Reading::default(), next, is_changed)
        })?;
        Ok(())
    }

    /// Executes one operation and returns its reading. `is_changed` receives the reading and
    /// returns whether the operation changed the cell.
    fn decide(
        &mut self,
        ask: &Ask,
        operation: Operation,
        now: Timestamp,
        is_changed: impl FnOnce(&Reading) -> bool,
    ) -> Result<Reading, CommandError> {
        self.change(ask, now, |cell, limit| {
            let (reading, next) = decide(cell, limit, operation, now);
            let is_changed = is_changed(&reading);
            (reading, next, is_changed)
        })
    }

    fn change(
        &mut self,
        ask: &Ask,
        now: Timestamp,
        decide: impl FnOnce(Option<Cell>, &Limit) -> Decided,
    ) -> Result<Reading, CommandError> {
        let own = self.terms_of(ask)?;
        let limit = own.as_ref().unwrap_or_else(|| self.rule(ask));
        let held = self.open(ask.place)?;
        let kept = held.stored.clone_if_foreign();
        let cell = held.stored.take_for(limit);
        let end = cell.as_ref().filter(|_| kept.is_none()).map(|cell| expires_at(cell, limit));
        let (reading, next, is_changed) = decide(cell, limit);
        held.stored = match (is_changed, kept) {
            (false, Some(kept)) => kept,
            _ => next.map_or(Stored::Missing, Stored::Cell),
        };
        if is_changed {
            let next = match &held.stored {
                Stored::Cell(cell) => Some(expires_at(cell, limit)),
                _ => None,
            };
            held.is_end_moved |= next != end;
            held.changed = Some((ask.rule, now));
        }
        Ok(reading)
    }

    #[inline]
    pub(crate) fn load(&mut self, place: usize) -> Result<(), CommandError> {
        let held = &mut self.held[place];
        if !held.is_loaded {
            let values = &mut *self.values;
            *held = self.keyspace.load(self.places[place], |value| Held::of(value, values))?;
        }
        Ok(())
    }

    fn open(&mut self, place: usize) -> Result<&mut Held, CommandError> {
        self.load(place)?;
        let held = &mut self.held[place];
        held.decode(self.values);
        Ok(held)
    }

    fn rule(&self, ask: &Ask) -> &'a Limit {
        &self.rules[ask.rule]
    }

    /// Returns the limit with the reservation terms that the operation `ask` contains. Returns
    /// `Ok(None)` if the operation contains no such terms.
    fn terms_of(&self, ask: &Ask) -> Result<Option<Limit>, CommandError> {
        let limit = self.rule(ask);
        let defaults = || ReservationTerms { max: MAX_WINDOW, ..ReservationTerms::default() };
        let terms = match ask.op {
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
        for (held, place) in self.held.iter_mut().zip(self.places) {
            let Some((rule, now)) = held.changed else { continue };
            let (limit, stored, existed) = (&self.rules[rule], &held.stored, held.existed);
            let is_end_moved = held.is_end_moved || !existed;
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
            match (&held.bytes, place) {
                (Some(_), _) => {}
                (None, Place::Key(_)) => stored.write_key(values),
                (None, Place::Entry(..)) => stored.write_entry(values),
            }
            let value = held.bytes.clone().unwrap_or(begin..values.len());
            let slot = held.slot;
            changes.push(Change { place: *place, slot, value, existed, live, is_end_moved });
        }
    }
}

fn counts(cell: &Cell, limit: &Limit, now: Timestamp) -> bool {
    assess(Some(cell), limit, Cost::PEEK, now).found == StoredState::Present
}

fn is_of(cell: &Cell, limit: &Limit) -> bool {
    match (cell, limit.algorithm()) {
        (Cell::Reserved(reserved), _) => is_of(&reserved.cell, limit),
        (Cell::FixedWindow(_), Algorithm::FixedWindow(_))
        | (Cell::SlidingWindow(_), Algorithm::SlidingWindow(_))
        | (Cell::TwoBucket(_), Algorithm::TwoBucket(_))
        | (Cell::SlidingLog(_), Algorithm::SlidingLog(_))
        | (Cell::TokenBucket(_), Algorithm::TokenBucket(_))
        | (Cell::Concurrency(_), Algorithm::Concurrency(_)) => true,
        _ => false,
    }
}
