//! Charges the store for units that the fallback admitted, when the store answers again.

use tokio::time::timeout;
use tollgate_core::{
    Admission, Cell, CellKey, CellTransfer, Charge, Cost, DecisionSource, Operation, Readings,
    Refusals, Store, StoreError, Timestamp,
};

use super::local_charges::{CHARGED_BY_ONE_CALL, LocalCharge, LocalCharges};
use super::{Fallback, FallbackStore};
use crate::call_error::{may_have_run, unsent};
use crate::join::{join_all, join_pair};
use tollgate::receipt::new_charge_id;

/// The most attempts of one call to charge the store for one entry. Each attempt charges fewer units
/// than the attempt before, because other nodes have used the limit.
const ATTEMPTS: usize = 4;

impl<A: Store, B: FallbackStore> Fallback<A, B> {
    /// Charges the store for the units that the fallback admitted on the limits and subjects of the
    /// call, and then sends the call as `call_store` does. The charges and the call must end within
    /// the budget. If the fallback admitted no such units, sends the call at once, and concurrently
    /// charges the store for some entries of other subjects, with one attempt for each entry.
    pub(super) async fn apply_reconciled(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> Result<Readings, StoreError> {
        let own = self.local_charges.take_of(now, charges);
        if !own.is_empty() {
            return self.reconcile_then_call(now, own, charges).await;
        }
        match self.local_charges.pass(now) {
            None => self.call_store(now, charges).await,
            Some(pass) => {
                let others = async {
                    // An error of these charges does not concern the subjects of the call.
                    let others = self.local_charges.take_some(now);
                    let _ = self.charge_all(now, others, 1).await;
                    drop(pass);
                };
                join_pair(self.call_store(now, charges), others).await.0
            }
        }
    }

    /// Charges the store for `own`, the units that the fallback admitted on the limits and subjects
    /// of the call, and then sends the call. Both must end within the budget.
    async fn reconcile_then_call(
        &self,
        now: Timestamp,
        own: Vec<LocalCharge>,
        charges: &[Charge<'_>],
    ) -> Result<Readings, StoreError> {
        let mut is_charged = false;
        let call = async {
            // If this charge fails, the call is not sent, whatever the error is.
            self.charge_all(now, own, ATTEMPTS).await.map_err(unsent)?;
            is_charged = true;
            self.store.apply(now, charges).await
        };
        let result = match self.budget {
            None => Some(call.await),
            Some(budget) => timeout(budget, call).await.ok(),
        };
        // If the charge for admitted units did not end in time, the call was not sent.
        let late = if is_charged { StoreError::TimedOut } else { StoreError::Unavailable };
        self.answer(now, charges, result.unwrap_or(Err(late))).await
    }

    /// Charges the store for all units that the fallback admitted. Stops if the store executes no
    /// charge of a batch, or if the outcome of a charge is unknown.
    ///
    /// If one of several shards is down, its charges fail, and the charges of the other shards go
    /// on.
    ///
    /// Call this function periodically. Without these calls, a node without traffic would never
    /// charge the admitted units, and the other nodes would not count these units.
    pub async fn charge_local(&self, now: Timestamp) {
        let Some(_pass) = self.local_charges.pass(now) else { return };
        // Entries that the store did not charge are put back and taken last, so these batches take
        // each entry about once. Entries that were put back wait for the next call.
        for _ in 0..self.local_charges.len().div_ceil(CHARGED_BY_ONE_CALL) {
            let some = self.local_charges.take_some(now);
            let results = self.charge_each(now, some, ATTEMPTS).await;
            let is_failed = !results.is_empty() && results.iter().all(Result::is_err);
            // An unknown outcome took the whole deadline, and its units are not charged again. A
            // pass that went on would be slow, and lose the units of all entries of such a shard.
            let is_unknown =
                results.iter().any(|result| matches!(result, Err(error) if may_have_run(*error)));
            if is_failed || is_unknown {
                return;
            }
        }
    }

    /// Sends the charges `local` to the store, and keeps the charges that the store did not
    /// execute.
    ///
    /// # Errors
    /// The store's error, if the store did not answer one of the charges.
    async fn charge_all(
        &self,
        now: Timestamp,
        local: Vec<LocalCharge>,
        attempts: usize,
    ) -> Result<(), StoreError> {
        self.charge_each(now, local, attempts).await.into_iter().collect()
    }

    /// Sends the charges `local` to the store as [`charge_all`](Self::charge_all) does, and returns
    /// the result of each charge.
    async fn charge_each(
        &self,
        now: Timestamp,
        local: Vec<LocalCharge>,
        attempts: usize,
    ) -> Vec<Result<(), StoreError>> {
        let begin = |local| Charging::new(&self.local_charges, now, local);
        let charged = local.into_iter().map(|local| self.charge_later(begin(local), attempts));
        join_all(charged.collect()).await
    }

    /// Charges the store for the units of one entry. If the limit does not have that many units
    /// left, charges fewer, in at most `attempts` attempts. The units that did not fit are given up
    /// when the store has counted the others.
    async fn charge_later(
        &self,
        mut charging: Charging<'_>,
        attempts: usize,
    ) -> Result<(), StoreError> {
        let now = charging.now;
        let LocalCharge { limit, subject, .. } = &charging.local;
        let used = self.fallback_store.used(now, limit, subject).await;
        charging.local.units.keep(used);
        for _ in 0..attempts {
            let cost = Cost::up_to(charging.local.units.next);
            if cost == Cost::PEEK {
                break;
            }
            let LocalCharge { limit, subject, .. } = &charging.local;
            let operation = Operation::Charge { cost, id: new_charge_id() };
            let charge = Charge { limit, subject, operation };
            charging.is_sent = true;
            let readings = match self.store.apply(now, &[charge]).await {
                Ok(readings) => match readings.source() {
                    // The answer is from a fallback inside the store.
                    DecisionSource::Fallback(error) | DecisionSource::Failure(error) => {
                        charging.is_sent = false;
                        return Err(error);
                    }
                    _ => readings,
                },
                Err(error) => {
                    // If the store may have charged the entry, the entry is not charged again.
                    charging.is_sent = may_have_run(error);
                    return Err(error);
                }
            };
            charging.is_sent = false;
            let Some(reading) = readings.first() else { break };
            let limit = &charging.local.limit;
            if reading.admission == Admission::Now || limit.refusals() == Refusals::Counted {
                self.local_charges.note_charged(std::mem::take(&mut charging.local.units.next));
                charging.give_up();
                return Ok(());
            }
            let free = limit.capacity().saturating_sub(reading.used);
            let units = &mut charging.local.units;
            let fits = units.next.min(free);
            units.excess = units.excess.saturating_add(units.next - fits);
            units.next = fits;
        }
        if charging.local.units.next == 0 {
            charging.give_up();
        }
        Ok(())
    }
}

/// Transfers the cells of the main store. Before the cells are read, the store is charged for the
/// units that the fallback admitted, so the cells contain these units. Only units that other nodes
/// crowd out in four attempts are missing.
impl<A: CellTransfer, B: FallbackStore> CellTransfer for Fallback<A, B> {
    async fn cells(
        &self,
        now: Timestamp,
        cell_keys: &[CellKey<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        if !self.local_charges.is_empty() {
            let peeks: Vec<_> = cell_keys.iter().map(CellKey::peek).collect();
            let own = self.local_charges.take_of(now, &peeks);
            Box::pin(self.charge_all(now, own, ATTEMPTS)).await?;
        }
        self.store.cells(now, cell_keys).await
    }

    fn join(
        &self,
        now: Timestamp,
        cells: &[(CellKey<'_>, Cell)],
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        self.store.join(now, cells)
    }
}

/// An entry that is being charged. If this value is dropped before the charge is sent, for example
/// because the caller disconnects, the entry is kept. If a call with units of the entry was sent
/// and its outcome is unknown, these units are counted as unknown, and the others are kept.
struct Charging<'a> {
    charges: &'a LocalCharges,
    now: Timestamp,
    local: LocalCharge,
    /// Whether a call with the units of the next charge was sent and not answered.
    is_sent: bool,
}

impl<'a> Charging<'a> {
    const fn new(charges: &'a LocalCharges, now: Timestamp, local: LocalCharge) -> Self {
        Self { charges, now, local, is_sent: false }
    }

    /// Counts all units that are left as admitted beyond the limit.
    fn give_up(&mut self) {
        self.charges.note_exceeded(self.local.units.total());
        self.local.units.keep(0);
    }
}

impl Drop for Charging<'_> {
    fn drop(&mut self) {
        if self.local.units.total() == 0 {
            return;
        }
        if self.is_sent {
            // If the store did not count them, the other units fit.
            let units = &mut self.local.units;
            self.charges.note_unknown(std::mem::replace(&mut units.next, units.excess));
            units.excess = 0;
        }
        self.charges.put_back(self.now, &self.local);
    }
}
