//! Charges the store for units that the fallback admitted, when the store answers again.

use tollgate_core::{
    Admission, Charge, Cost, DecisionSource, Operation, Readings, Refusals, Store, StoreError,
    Timestamp,
};

use super::local_charges::LocalCharge;
use super::{Fallback, FallbackStore};
use crate::receipt::new_charge_id;
use crate::store::join::{join_all, join_pair};

/// The attempts to charge one entry, each with fewer units because other nodes used the limit.
const ATTEMPTS: usize = 4;

impl<A: Store, B: FallbackStore> Fallback<A, B> {
    /// Charges the store for units that the fallback admitted of the same limits and subjects, and then
    /// sends the call as `ask_store` does. Also charges it for some of the other entries.
    pub(super) async fn ask_charged(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> Result<Readings, StoreError> {
        let own = self.local_charges.take_of(now, charges);
        if let Err(error) = self.charge_all(now, own).await {
            return self.decide_by_fallback(now, charges, error).await;
        }
        match self.local_charges.pass(now) {
            None => self.ask_store(now, charges).await,
            Some(pass) => {
                let others = async {
                    // An error here concerns another part of the store than this call.
                    let others = self.local_charges.take_some(now);
                    let _ = self.charge_all(now, others).await;
                    drop(pass);
                };
                join_pair(self.ask_store(now, charges), others).await.0
            }
        }
    }

    /// Charges the store for all units that the fallback admitted, until the store does not answer.
    ///
    /// Call this periodically: a node without traffic would never charge them, and other nodes do not
    /// know them.
    pub async fn charge_local(&self, now: Timestamp) {
        let Some(_pass) = self.local_charges.pass(now) else { return };
        loop {
            let some = self.local_charges.take_some(now);
            if some.is_empty() || self.charge_all(now, some).await.is_err() {
                return;
            }
        }
    }

    /// Charges the store for `local`, and keeps the entries that it did not execute.
    ///
    /// # Errors
    /// The error of the store for one of them, if it did not answer.
    async fn charge_all(&self, now: Timestamp, local: Vec<LocalCharge>) -> Result<(), StoreError> {
        let charged = local.iter().map(|local| self.charge_later(now, local));
        join_all(charged.collect()).await.into_iter().collect()
    }

    /// Charges the store for `local`, as far as the limit has units left.
    async fn charge_later(&self, now: Timestamp, local: &LocalCharge) -> Result<(), StoreError> {
        let LocalCharge { limit, subject, units, .. } = local;
        let used = self.fallback_store.used(now, limit, subject).await;
        let mut left = (*units).min(used);
        for _ in 0..ATTEMPTS {
            let Some(cost) = Cost::new(left).filter(|cost| *cost != Cost::PEEK) else { break };
            let operation = Operation::Charge { cost, id: new_charge_id() };
            let charge = Charge { limit, subject, operation };
            let readings = match self.store.apply(now, &[charge]).await {
                Ok(readings) => match readings.source() {
                    // A fallback inside of the store answered.
                    DecisionSource::Fallback(error) | DecisionSource::Failure(error) => {
                        self.local_charges.put_back(now, local, left);
                        return Err(error);
                    }
                    _ => readings,
                },
                Err(error @ (StoreError::Unavailable | StoreError::Full)) => {
                    self.local_charges.put_back(now, local, left);
                    return Err(error);
                }
                Err(error) => {
                    // It may have been charged, so it is not charged again.
                    self.local_charges.put_back(now, local, 0);
                    self.local_charges.note_unknown(left);
                    return Err(error);
                }
            };
            let Some(reading) = readings.first() else { break };
            if reading.admission == Admission::Now || limit.refusals() == Refusals::Counted {
                self.local_charges.note_charged(left);
                return Ok(());
            }
            let fits = limit.capacity().saturating_sub(reading.used).min(left);
            self.local_charges.note_exceeded(left - fits);
            left = fits;
        }
        self.local_charges.note_exceeded(left);
        Ok(())
    }
}
