//! Charges on the limits of a key: the fast path in memory, and the path for any store.

use std::any::Any;
use std::sync::Arc;

use smallvec::smallvec;
use tollgate_core::key::MAX_INLINE_VALUE;
use tollgate_core::{
    Admission, Algorithm, Charge, ChargeId, ChargePosition, Cost, Deduplication, Limit, Operation,
    Reading, Readings, Store, StoreError, Subject, Timestamp, Value,
};

use super::decision::{Admitted, Decision, Refused};
use super::key::Key;
use super::status::Status;
use super::{OnStoreError, RateLimiter};
use crate::receipt::new_charge_id;
use crate::store::Memory;
use crate::store::memory::KEY_DIMENSION;

pub(super) const PEEK: Operation = Operation::Peek { cost: Cost::ONE };

/// Returns the store operation that refunds the charge of `admitted` on the limit at `index`.
pub(super) fn refund(admitted: &Admitted, index: usize) -> Operation {
    let position = admitted.positions.get(index).copied().unwrap_or(ChargePosition(0));
    let (id, cost) = (admitted.id, admitted.cost);
    Operation::Refund { cost, position, id, deduplication: Deduplication::Unneeded }
}

/// Returns the id for a charge on `limit`. Only permits need unique ids, because only permits are
/// later found by their ids. All other charges share one id.
#[inline]
fn id_of(limit: &Limit) -> ChargeId {
    match limit.algorithm() {
        Algorithm::Concurrency(_) => new_charge_id(),
        _ => ChargeId::default(),
    }
}

impl<S: 'static> RateLimiter<S> {
    /// Returns the store if it is the memory store, whose calls need no future.
    #[inline]
    pub(super) fn memory(&self) -> Option<&Memory> {
        (&self.store as &dyn Any).downcast_ref()
    }
}

impl<S> RateLimiter<S> {
    /// Charges `units` to `key` in `memory`. If the limiter has only one limit, the charge needs no
    /// allocation.
    #[inline]
    pub(super) fn charge_in_memory<K: Key + ?Sized>(
        &self,
        memory: &Memory,
        key: &K,
        units: u64,
    ) -> Decision {
        let (now, cost) = (self.clock.now(), Cost::up_to(units));
        key.with_bytes(|key| match &*self.limits {
            // A key that is longer than `MAX_INLINE_VALUE` is stored as its hash, by the general
            // path.
            [limit] if key.len() <= MAX_INLINE_VALUE => {
                let operation = Operation::Charge { cost, id: id_of(limit) };
                let reading = memory.charge_key(now, limit, key, operation);
                self.decide_one(now, limit, operation, &reading)
            }
            _ => {
                let operation = Operation::Charge { cost, id: new_charge_id() };
                let subject = self.subject_of(key);
                let charges = self.charges(&subject, |_| operation);
                self.decide(now, operation, memory.apply_now(now, &charges))
            }
        })
    }

    /// Returns the subject under which the store counts `key`.
    pub(super) fn subject<K: Key + ?Sized>(&self, key: &K) -> Subject {
        key.with_bytes(|key| self.subject_of(key))
    }

    fn subject_of(&self, key: &[u8]) -> Subject {
        Subject::new([(KEY_DIMENSION, Value::Clear(key))], &self.hash_key)
    }

    /// Returns the charges of a store call, one for each limit. `operation` receives the index of a
    /// limit and returns the operation on this limit.
    pub(super) fn charges<'c>(
        &'c self,
        subject: &'c Subject,
        operation: impl Fn(usize) -> Operation,
    ) -> Vec<Charge<'c>> {
        let charge = |(index, limit): (usize, &'c Arc<Limit>)| Charge {
            limit,
            subject,
            operation: operation(index),
        };
        self.limits.iter().enumerate().map(charge).collect()
    }

    /// Returns the status of the limit with the longest wait, or, if no limit is used up, of the
    /// limit with the smallest share of its units left. If the store returned no `readings`,
    /// returns the status of an unused limit with the admission `without_readings`.
    pub(super) fn status(
        &self,
        now: Timestamp,
        readings: &[Reading],
        without_readings: Admission,
    ) -> Status {
        let statuses = self.limits.iter().zip(readings);
        statuses
            .map(|(limit, reading)| self.status_on(limit, reading, now))
            .reduce(Status::tighter)
            .unwrap_or_else(|| Status::unused(&self.limits[0], without_readings, now))
    }

    /// Returns the status on `limit`. If no permit of a `concurrency` limit is free, the suggested
    /// wait is the mean time for which permits were held. The time until a permit expires would be
    /// far too long, because most permits are released earlier.
    #[inline]
    fn status_on(&self, limit: &Limit, reading: &Reading, now: Timestamp) -> Status {
        let status = Status::new(limit, reading, now);
        match self.hold_times.retry_at(limit, reading.admission, now) {
            Some(at) => Status { admission: Admission::At(at), resets_at: at, ..status },
            None => status,
        }
    }

    /// Records how long the charge `admitted` held its permits, until it was refunded at `now`.
    pub(super) fn observe_hold_times(&self, admitted: &Admitted, now: Timestamp) {
        for limit in &self.limits {
            if matches!(limit.algorithm(), Algorithm::Concurrency(_)) {
                self.hold_times.held(limit, now.since(admitted.status.now));
            }
        }
    }

    /// Converts the reading of a call with one charge to a decision.
    #[inline]
    fn decide_one(
        &self,
        now: Timestamp,
        limit: &Limit,
        operation: Operation,
        reading: &Reading,
    ) -> Decision {
        let status = self.status_on(limit, reading, now);
        let (Some((cost, id)), Admission::Now) = (operation.as_charge(), reading.admission) else {
            return Decision::Refused(Refused { status, store_error: None });
        };
        let (positions, store_error) = (smallvec![reading.position], None);
        Decision::Admitted(Admitted { status, id, cost, positions, store_error })
    }

    /// Converts the result of a store call to a decision. The call sent the charge `operation` for
    /// every limit.
    pub(super) fn decide(
        &self,
        now: Timestamp,
        operation: Operation,
        result: Result<Readings, StoreError>,
    ) -> Decision {
        let Some((cost, id)) = operation.as_charge() else { unreachable!("charges only") };
        match result {
            Ok(readings) => {
                let status = self.status(now, &readings, Admission::Now);
                if readings.all_admitted() {
                    let positions = readings.iter().map(|reading| reading.position).collect();
                    let store_error = None;
                    return Decision::Admitted(Admitted {
                        status,
                        id,
                        cost,
                        positions,
                        store_error,
                    });
                }
                Decision::Refused(Refused { status, store_error: None })
            }
            Err(error) if self.on_store_error == OnStoreError::Refuse => {
                let at = Admission::At(now.after(crate::store::memory::RETRY_WITHOUT_ROOM));
                let status = self.status(now, &[], at);
                Decision::Refused(Refused { status, store_error: Some(error) })
            }
            Err(error) => {
                let status = self.status(now, &[], Admission::Now);
                let (positions, store_error) = (smallvec![], Some(error));
                Decision::Admitted(Admitted { status, id, cost, positions, store_error })
            }
        }
    }
}

impl<S: Store + 'static> RateLimiter<S> {
    /// Charges `units` to `key` in any store.
    pub(super) async fn charge<K: Key + ?Sized>(&self, key: &K, units: u64) -> Decision {
        let (now, subject) = (self.clock.now(), self.subject(key));
        let operation = Operation::Charge { cost: Cost::up_to(units), id: new_charge_id() };
        let charges = self.charges(&subject, |_| operation);
        let result = self.store.apply(now, &charges).await;
        self.decide(now, operation, result)
    }
}
