//! The simplest possible store: a map behind a lock. The map has one [`Cell`], the state of one limit
//! for one subject, for each pair of a limit and a subject.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tollgate_core::decide::{assess_operation, charge_admitted, charge_refused, refundable_until};
use tollgate_core::{
    Admission, Cell, Charge, ChargeId, Cost, Deduplication, Operation, Reading, Readings, Store,
    StoreError, Subject, Timestamp, assess, decide,
};

type Key = (Box<str>, Subject);

/// A store that keeps states in a map and decides with the core's atomic step. The store has no
/// bounds, never deletes expired state, and optimizes nothing.
///
/// If a test passes with this store, the core is correct. If the same test fails with another
/// store, the error is in the other store.
#[derive(Debug, Default)]
pub struct Cells(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    cells: HashMap<Key, Cell>,
    /// For each refunded charge, the time until which a repetition of the refund must be ignored.
    refunded: HashMap<(Key, ChargeId), Timestamp>,
}

impl Store for Cells {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).apply(now, charges))
    }
}

impl State {
    fn apply(&mut self, now: Timestamp, charges: &[Charge<'_>]) -> Readings {
        let admitted = charges.iter().all(|charge| {
            let cell = self.cells.get(&key(charge));
            charge.operation.as_charge().is_none()
                || assess_operation(cell, charge.limit, charge.operation, now).admission
                    == Admission::Now
        });
        charges.iter().map(|charge| self.execute(now, charge, admitted)).collect()
    }

    fn execute(&mut self, now: Timestamp, charge: &Charge<'_>, admitted: bool) -> Reading {
        let key = key(charge);
        if self.is_repeated(now, charge) {
            return assess(self.cells.get(&key), charge.limit, Cost::PEEK, now);
        }
        let cell = self.cells.remove(&key);
        let (reading, cell) = match charge.operation.as_charge() {
            Some(_) if admitted => charge_admitted(cell, charge.limit, charge.operation, now),
            Some(_) => charge_refused(cell, charge.limit, charge.operation, now),
            None => decide(cell, charge.limit, charge.operation, now),
        };
        if let Some(cell) = cell {
            self.cells.insert(key, cell);
        }
        reading
    }

    /// Returns whether `charge` is a deduplicated refund that was executed before. If the refund is
    /// new, records the refund.
    fn is_repeated(&mut self, now: Timestamp, charge: &Charge<'_>) -> bool {
        let Operation::Refund { position, id, deduplication: Deduplication::ById, .. } =
            charge.operation
        else {
            return false;
        };
        let until = refundable_until(charge.limit, position);
        self.refunded.retain(|_, until| *until > now);
        until > now && self.refunded.insert((key(charge), id), until).is_some()
    }
}

fn key(charge: &Charge<'_>) -> Key {
    (charge.limit.name().into(), charge.subject.clone())
}
