//! A bounded log of the answers that this node received recently.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::decide::{join, refundable_until};
use tollgate_core::{
    Admission, Algorithm, Cell, Charge, ChargePosition, Limit, Millis, Operation, Reading,
    Readings, Refusals, Subject, Timestamp,
};

use super::definitions::{Definitions, definition};
use super::recorded_state::{Detail, Name, RecentReadings, RecordedState};
use crate::bounded_cache::{BoundedCache, Key};

/// The newest recorded state. Depending on the algorithm of the limit, there is one entry for each
/// limit and subject, or one entry for each window, block or permit of a limit and subject.
#[derive(Debug)]
pub(super) struct ChargeLog {
    states: BoundedCache<RecordedState>,
    definitions: Definitions,
    /// The number of recorded readings and of resets so far.
    turn: AtomicU64,
    /// The value of `turn` at the last reset. Calls that started before the reset may report state
    /// that was reset since, so their readings are not recorded.
    forgotten: AtomicU64,
}

/// The start of a call, as the value of the log's `turn` before the call.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallStart(u64);

/// The recorded state of one limit and subject.
#[derive(Debug)]
pub(super) struct KnownState {
    pub(super) limit: Arc<Limit>,
    pub(super) subject: Subject,
    pub(super) cell: Cell,
    pub(super) recorded_at: Timestamp,
}

impl ChargeLog {
    pub(super) fn new(entries: usize) -> Self {
        Self {
            states: BoundedCache::new(entries),
            definitions: Definitions::default(),
            turn: AtomicU64::new(0),
            forgotten: AtomicU64::new(0),
        }
    }

    pub(super) fn capacity(&self) -> usize {
        self.states.capacity()
    }

    /// Returns the start of a call that is sent now.
    pub(super) fn begin(&self) -> CallStart {
        CallStart(self.turn.load(Ordering::Acquire))
    }

    /// Records the answer to a call that started at `started`.
    pub(super) fn remember(
        &self,
        started: CallStart,
        now: Timestamp,
        charges: &[Charge<'_>],
        readings: &Readings,
    ) {
        let is_charge = |charge: &Charge<'_>| charge.operation.as_charge().is_some();
        let both = || charges.iter().zip(readings.iter());
        let admitted = both()
            .all(|(charge, reading)| !is_charge(charge) || reading.admission == Admission::Now);
        for (charge, reading) in both() {
            if matches!(charge.operation, Operation::Reset) {
                self.forget(charge);
            } else {
                self.remember_one(started, now, charge, reading, admitted);
            }
        }
    }

    /// Returns the state of all limits and subjects recorded within `age_max` before `now`. The
    /// newest state is the last.
    pub(super) fn known(&self, now: Timestamp, age_max: Millis) -> Vec<KnownState> {
        self.amount(now, |state| now.since(state.recorded_at) <= age_max)
    }

    /// Returns the recorded state of the limits and subjects of `charges`.
    pub(super) fn known_of(&self, now: Timestamp, charges: &[Charge<'_>]) -> Vec<KnownState> {
        let is_of = |state: &RecordedState, charge: &Charge<'_>| {
            state.limit == charge.limit.state_digest()
                && Some(state.subject) == Name::of(charge.subject)
        };
        self.amount(now, |state| charges.iter().any(|charge| is_of(state, charge)))
    }

    /// Combines the entries for which `is_such` returns true and that are not obsolete into one cell
    /// for each limit and subject. The newest cell is the last. Cells that were recorded at the same
    /// time are in the order of limits and subjects.
    fn amount(&self, now: Timestamp, is_such: impl Fn(&RecordedState) -> bool) -> Vec<KnownState> {
        let limits = self.definitions.read();
        let mut known = BTreeMap::<(u128, Subject), KnownState>::new();
        // A bucket that is full under one quota can lack tokens under another. An obsolete entry must
        // not decide with which quota the other entries are joined.
        let counts = |state: &RecordedState| now < state.expires_at && is_such(state);
        for state in self.states.values().into_iter().filter(counts) {
            let Some(limit) = limits.get(&(state.limit, state.numbers)) else { continue };
            let Some(subject) = state.subject.subject() else { continue };
            let cell = state.cell(limit);
            let at = (state.limit, subject.clone());
            let before = known.remove(&at);
            let (limit, recorded_at) = match &before {
                Some(known) if known.recorded_at > state.recorded_at => {
                    (Arc::clone(&known.limit), known.recorded_at)
                }
                _ => (Arc::clone(limit), state.recorded_at),
            };
            if let Some(cell) = join(before.map(|known| known.cell), cell, &limit, now) {
                known.insert(at, KnownState { limit, subject, cell, recorded_at });
            }
        }
        let mut known: Vec<_> = known.into_values().collect();
        known.sort_by_key(|known| known.recorded_at);
        known
    }

    fn remember_one(
        &self,
        started: CallStart,
        now: Timestamp,
        charge: &Charge<'_>,
        reading: &Reading,
        admitted: bool,
    ) {
        let counted = match charge.operation {
            Operation::Charge { cost, .. } | Operation::Reserve { cost, .. }
                if admitted || charge.limit.refusals() == Refusals::Counted =>
            {
                cost.get()
            }
            _ => reading.added,
        };
        match (charge.limit.algorithm(), charge.operation) {
            (Algorithm::FixedWindow(_), _) => {
                self.read(started, now, charge, reading, reading.full_reset_at.as_millis());
            }
            (Algorithm::TokenBucket(_), _) => {
                self.read(started, now, charge, reading, reading.position.0);
            }
            (Algorithm::Concurrency(_), operation) => {
                self.lease(started, now, charge, reading, operation, counted);
            }
            (_, Operation::Refund { position, .. } | Operation::Settle { position, .. })
                if reading.added == 0 =>
            {
                let lower = |used: u64| used.saturating_sub(reading.refunded);
                self.tally(started, now, charge, position.0, lower);
            }
            // A refused charge fills these at most to the quota, as in the store.
            (Algorithm::TwoBucket(_) | Algorithm::SlidingLog(_), _) if counted > 0 && !admitted => {
                let quota = charge.limit.capacity();
                let fill = |used: u64| used.max(used.saturating_add(counted).min(quota));
                self.tally(started, now, charge, reading.position.0, fill);
            }
            (_, _) if counted > 0 => {
                let raise = |used: u64| used.saturating_add(counted);
                self.tally(started, now, charge, reading.position.0, raise);
            }
            _ => {}
        }
    }

    /// Records a reading that contains the whole usage of a limit and subject. Answers may arrive
    /// in any order: see [`RecentReadings`]. The usage of a token bucket under two quotas cannot be
    /// compared, so each quota has its own record.
    fn read(
        &self,
        started: CallStart,
        now: Timestamp,
        charge: &Charge<'_>,
        reading: &Reading,
        position: u64,
    ) {
        let gave_back = reading.refunded > 0;
        let Some(new) =
            self.recorded_state(now, charge, reading.used, position, reading.full_reset_at)
        else {
            return;
        };
        let key = match charge.limit.algorithm() {
            Algorithm::TokenBucket(_) => self.states.quota_key(charge),
            _ => self.states.key(charge),
        };
        // A replica that lags may answer a read-only operation.
        let is_ordered = !charge.operation.is_read_only();
        self.update(started, now, key, charge.limit, |known| {
            let turn = self.next_turn();
            let detail = Detail::Readings(RecentReadings { since: turn, later: (0, 0) });
            let new = RecordedState { detail, ..new };
            match known {
                _ if gave_back => Some(RecordedState { lowered: turn, ..new }),
                Some(known) if started.0 < known.lowered => Some(known),
                Some(known) => {
                    Some(known.after_reading(new, turn, |since| is_ordered && since <= started.0))
                }
                None if reading.used > 0 => Some(new),
                None => None,
            }
        });
    }

    /// Changes the recorded units of this node's own charges at the position `position`. `count`
    /// computes the new number of units from the recorded number.
    fn tally(
        &self,
        started: CallStart,
        now: Timestamp,
        charge: &Charge<'_>,
        position: u64,
        count: impl Fn(u64) -> u64,
    ) {
        let expires_at = refundable_until(charge.limit, ChargePosition(position));
        let Some(new) = self.recorded_state(now, charge, 0, position, expires_at) else { return };
        let key = self.states.part(self.states.key(charge), u128::from(position));
        self.update(started, now, key, charge.limit, |known| {
            let used = count(known.map_or(0, |known| known.used));
            (used > 0).then_some(RecordedState { used, ..new })
        });
    }

    /// Records a permit of this node. If `operation` renewed the permit, the reset in the reading
    /// is the permit's new expiry.
    fn lease(
        &self,
        started: CallStart,
        now: Timestamp,
        charge: &Charge<'_>,
        reading: &Reading,
        operation: Operation,
        counted: u64,
    ) {
        let id = match operation {
            Operation::Charge { id, .. }
            | Operation::Renew { id }
            | Operation::Refund { id, .. } => id,
            Operation::Reserve { id, .. }
            | Operation::Extend { id, .. }
            | Operation::Settle { id, .. } => id,
            Operation::Peek { .. } | Operation::Reset => return,
        };
        let key = self.states.part(self.states.key(charge), id.0);
        let detail = Detail::Permit(id);
        let ends_at = reading.full_reset_at;
        let new = self.recorded_state(now, charge, counted, ends_at.as_millis(), ends_at);
        self.update(started, now, key, charge.limit, |known| match operation {
            Operation::Charge { .. } | Operation::Reserve { .. } if counted > 0 => {
                new.map(|new| RecordedState { detail, ..new })
            }
            Operation::Refund { .. } | Operation::Settle { .. } => None,
            _ => known.map(|known| match new {
                Some(new) if reading.used > 0 && known.position < new.position => {
                    RecordedState { used: known.used, detail, ..new }
                }
                _ => known,
            }),
        });
    }

    /// Changes the entry of `key`, unless a reset came after the start of the call, and keeps the
    /// definition of `limit` for the entry.
    fn update(
        &self,
        started: CallStart,
        now: Timestamp,
        key: Key,
        limit: &Limit,
        change: impl FnOnce(Option<RecordedState>) -> Option<RecordedState>,
    ) {
        let mut exists = false;
        self.states.update(key, now, |known| {
            // The entry is locked, so a reset either changed the number or removes the entry.
            let is_reset = started.0 < self.forgotten.load(Ordering::Acquire);
            let entry = if is_reset { known } else { change(known) };
            exists = entry.is_some();
            entry
        });
        // A scan removes definitions without an entry, so the entry comes first.
        if exists {
            self.definitions.record(limit, || {
                let states = self.states.values().into_iter();
                states.map(|state| (state.limit, state.numbers)).collect()
            });
        }
    }

    /// Creates an entry. Returns `None` if the subject is too long.
    fn recorded_state(
        &self,
        now: Timestamp,
        charge: &Charge<'_>,
        used: u64,
        position: u64,
        expires_at: Timestamp,
    ) -> Option<RecordedState> {
        let subject = Name::of(charge.subject)?;
        let (limit, numbers) = definition(charge.limit);
        Some(RecordedState {
            limit,
            numbers,
            subject,
            recorded_at: now,
            expires_at,
            lowered: 0,
            used,
            position,
            detail: Detail::Own,
        })
    }

    fn next_turn(&self) -> u64 {
        self.turn.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Records a reset. Nothing is used after the reset, whatever calls in flight return.
    fn forget(&self, charge: &Charge<'_>) {
        let (limit, subject) = (charge.limit.state_digest(), Name::of(charge.subject));
        self.forgotten.fetch_max(self.next_turn(), Ordering::AcqRel);
        self.states.forget_all(|state| state.limit == limit && Some(state.subject) == subject);
    }
}

#[cfg(test)]
mod tests;
