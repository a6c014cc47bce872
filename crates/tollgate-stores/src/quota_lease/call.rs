//! Calls that this node cannot decide from its leases. For such a call, the node takes new leases
//! or calls the store.

use std::sync::Arc;

use tokio::runtime::Handle;
use tollgate_core::{
    Admission, Charge, Cost, DecisionSource, LimitMode, Operation, Reading, Readings, Store,
    StoreError, Timestamp,
};

use super::Shared;
use super::counts::add;
use super::entry::{LeaseOutcome, LeaseReceiver, LeaseSubject, ReplyCount};
use super::table::{LeaseRefund, LeaseStep, Table};
use crate::call_error::{may_have_run, unsent};
use tollgate::receipt::new_charge_id;

/// The number of attempts to take leases for a call. After these attempts, the call is sent to the
/// store.
const MAX_LEASE_ATTEMPTS: usize = 3;

/// The maximum number of refunds in one store call. Each refund is for one limit and one subject.
pub(super) const MAX_REFUND_BATCH: usize = 64;

impl<S: Store + 'static> Shared<S> {
    /// Decides a call that the existing leases do not cover. Takes new leases for frequent charges.
    pub(super) async fn decide(
        self: &Arc<Self>,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> Result<Readings, StoreError> {
        for charge in charges {
            self.acquire_lease(now, charge).await?;
        }
        let mut here = LocalAnswers::answered(&self.table, now, charges);
        let sent: Vec<Charge<'_>> = here.unanswered().collect();
        if sent.is_empty() {
            add(&self.counters.decided, 1);
            return Ok(here.joined(&Readings::new()));
        }
        let readings = self.charge_store(now, &sent).await?;
        if refuses(&sent, &readings) {
            here.undo_charge();
        }
        Ok(here.joined(&readings).with_source(readings.source()))
    }

    /// Takes a lease for `charge` if such charges are frequent, or waits for the caller that is
    /// already taking a lease for the same limit and subject.
    async fn acquire_lease(
        self: &Arc<Self>,
        now: Timestamp,
        charge: &Charge<'_>,
    ) -> Result<(), StoreError> {
        for _ in 0..MAX_LEASE_ATTEMPTS {
            if self.table.answers(now, charge) {
                return Ok(());
            }
            let turn = match self.table.begin(now, charge) {
                LeaseStep::Nothing => return Ok(()),
                LeaseStep::Wait(receiver) => lease_outcome(receiver).await,
                LeaseStep::Acquire { account, units, sent_at, sender, receiver } => {
                    let shared = Arc::clone(self);
                    let acquire = async move {
                        let turn = shared.acquire(now, &account, units, sent_at).await;
                        let _ = sender.send(Some(turn));
                    };
                    // The lease is taken in a task of its own, so units that arrive late are not
                    // lost if the caller stops waiting.
                    match Handle::try_current() {
                        Ok(runtime) => drop(runtime.spawn(acquire)),
                        Err(_) => acquire.await,
                    }
                    lease_outcome(receiver).await
                }
            };
            match turn {
                LeaseOutcome::Acquired => {}
                LeaseOutcome::Refused => return Ok(()),
                // Every waiting caller fails immediately and does not send its own store call.
                LeaseOutcome::Failed(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Charges the store for a lease of `units` on the limit and subject in `account`. `sent_at` is
    /// the number of store answers that the entry has received before this call.
    async fn acquire(
        &self,
        now: Timestamp,
        account: &Arc<LeaseSubject>,
        units: u64,
        sent_at: ReplyCount,
    ) -> LeaseOutcome {
        let cost = Cost::up_to(units);
        let operation = Operation::Charge { cost, id: new_charge_id() };
        let charge = Charge { limit: &account.limit, subject: &account.subject, operation };
        let answer = self.store.apply(now, &[charge]).await;
        let reading = answer.and_then(|all| all.first().copied().ok_or(StoreError::Corrupt));
        if matches!(reading, Err(error) if may_have_run(error)) {
            add(&self.counters.units_lost, units);
        }
        let (turn, is_elsewhere) = self.table.end(account, units, reading, now, sent_at);
        if turn == LeaseOutcome::Acquired {
            add(&self.counters.taken, 1);
            add(&self.counters.units_taken, units);
        }
        if let (true, Ok(Reading { position, .. })) = (is_elsewhere, reading)
            && let Some(undone) = operation.inverse(position)
        {
            // If this refund fails, the units stay used until their window ends.
            let _ = self.refund(now, &[(Arc::clone(account), undone)]).await;
        }
        turn
    }

    /// Sends the charges that no lease covers to the store.
    ///
    /// Unused units of the same limits and subjects are refunded first. The store must not refuse
    /// because of this node's own lease, and the numbers in the store's answer must be exact.
    async fn charge_store(
        &self,
        now: Timestamp,
        sent: &[Charge<'_>],
    ) -> Result<Readings, StoreError> {
        let unused: Vec<LeaseRefund> = sent
            .iter()
            .filter(|charge| !matches!(charge.operation, Operation::Peek { .. } | Operation::Reset))
            .flat_map(|charge| self.table.all_unused(now, charge))
            .collect();
        self.refund(now, &unused).await.map_err(unsent)?;
        self.forget(sent);
        let before: Vec<_> = sent.iter().map(|charge| self.table.replies(charge)).collect();
        let mut readings = self.store.apply(now, sent).await?;
        // A lease that started during the reset belongs to the discarded state.
        self.forget(sent);
        if readings.source() == DecisionSource::Store {
            self.learn(now, sent, &before, &readings);
        }
        self.correct(now, sent, &before, &mut readings).await;
        Ok(readings)
    }

    fn forget(&self, sent: &[Charge<'_>]) {
        let forgotten = sent.iter().filter(|charge| charge.operation == Operation::Reset);
        forgotten.for_each(|charge| self.table.forget(charge));
    }

    fn learn(
        &self,
        now: Timestamp,
        sent: &[Charge<'_>],
        before: &[Option<ReplyCount>],
        readings: &Readings,
    ) {
        let is_refused = refuses(sent, readings);
        for ((charge, reading), before) in sent.iter().zip(readings.iter()).zip(before) {
            // A replica that lags may answer a read-only operation.
            if charge.operation.is_read_only() || charge.operation == Operation::Reset {
                continue;
            }
            let admitted = match charge.operation {
                Operation::Charge { cost, .. } if !is_refused => cost,
                _ => Cost::PEEK,
            };
            self.table.learn(now, charge, reading, admitted, *before);
        }
    }

    /// Subtracts this node's unused leased units from the readings of peeks. `before` has, for each
    /// charge, the number of store answers that the lease table had received about its limit and
    /// subject when the call was sent. If another answer arrived since, the unused units at the time
    /// of the peek are not known: they are refunded, and the peek is repeated.
    ///
    /// If the store does not answer one of these two calls, the reading stays as it is. The store
    /// has already decided the call and executed its charges, so the call must not fail. Units that
    /// the store did not accept back count until their window ends, as the reading says. Otherwise
    /// the peek may not fit although it would after the refund.
    async fn correct(
        &self,
        now: Timestamp,
        sent: &[Charge<'_>],
        before: &[Option<ReplyCount>],
        readings: &mut Readings,
    ) {
        for ((charge, reading), before) in sent.iter().zip(readings.iter_mut()).zip(before) {
            if !matches!(charge.operation, Operation::Peek { .. }) {
                continue;
            }
            if let Some(corrected) = self.table.corrected(charge, reading, *before) {
                *reading = corrected;
                continue;
            }
            let unused: Vec<_> = self.table.all_unused(now, charge).collect();
            if unused.is_empty() {
                continue;
            }
            if self.refund(now, &unused).await.is_ok()
                && let Ok(again) = self.store.apply(now, &[*charge]).await
                && let Some(again) = again.first()
            {
                *reading = *again;
            }
        }
    }

    /// Refunds units, with at most [`MAX_REFUND_BATCH`] refunds in one store call.
    ///
    /// # Errors
    /// The error of the store if it did not accept some of the refunds. The units of these refunds
    /// stay used until their windows end.
    pub(super) async fn refund(
        &self,
        now: Timestamp,
        unused: &[LeaseRefund],
    ) -> Result<(), StoreError> {
        let mut outcome = Ok(());
        for some in unused.chunks(MAX_REFUND_BATCH) {
            let charges: Vec<Charge<'_>> = some
                .iter()
                .map(|(account, operation)| Charge {
                    limit: &account.limit,
                    subject: &account.subject,
                    operation: *operation,
                })
                .collect();
            let units = charges.iter().map(|charge| units_of(charge.operation)).sum();
            match self.store.apply(now, &charges).await {
                Ok(_) => add(&self.counters.units_returned, units),
                Err(error) => {
                    add(&self.counters.units_lost, units);
                    outcome = Err(error);
                }
            }
        }
        outcome
    }
}

impl Table {
    /// Returns true if this node's lease covers `charge`, or if leases do not apply to `charge`.
    fn answers(&self, now: Timestamp, charge: &Charge<'_>) -> bool {
        match charge.operation {
            Operation::Charge { cost, .. } if charge.limit.mode() == LimitMode::Leased => {
                let peek = Charge { operation: Operation::Peek { cost }, ..*charge };
                cost == Cost::PEEK || self.answer(now, &peek).is_some()
            }
            _ => true,
        }
    }
}

/// The charges of a call that this node decided. If the call is cancelled before it is complete,
/// the units that these charges used are restored.
struct LocalAnswers<'c, 'a> {
    table: &'c Table,
    charges: &'c [Charge<'a>],
    answers: Vec<Option<Reading>>,
    /// The number of resets before the call. If the number changes, the units may belong to leases
    /// that a reset discarded, and are not restored.
    resets: u64,
    is_open: bool,
}

impl<'c, 'a> LocalAnswers<'c, 'a> {
    fn answered(table: &'c Table, now: Timestamp, charges: &'c [Charge<'a>]) -> Self {
        let resets = table.resets();
        let answers = charges.iter().map(|charge| table.answer(now, charge)).collect();
        Self { table, charges, answers, resets, is_open: true }
    }

    fn unanswered(&self) -> impl Iterator<Item = Charge<'a>> {
        let both = self.charges.iter().zip(&self.answers);
        both.filter(|(_, answer)| answer.is_none()).map(|(charge, _)| *charge)
    }

    /// Undoes the local charges of a call that was refused or failed. Readings of zero-cost charges
    /// are not computed again, because a charge that fitted at first may no longer fit.
    fn undo_charge(&mut self) {
        self.is_open = false;
        let is_valid = self.resets == self.table.resets();
        for (charge, answer) in self.charges.iter().zip(&mut self.answers) {
            if let (Operation::Charge { cost, .. }, Some(charged)) = (charge.operation, answer)
                && cost != Cost::PEEK
            {
                let uncharged =
                    Reading { used: charged.used.saturating_sub(cost.get()), ..*charged };
                let undo = || self.table.undo_charge(charge, charged.position);
                *charged = is_valid.then(undo).flatten().unwrap_or(uncharged);
            }
        }
    }

    /// Returns the readings of the whole call, in the order of its charges.
    fn joined(&mut self, store_readings: &Readings) -> Readings {
        self.is_open = false;
        let mut store_readings = store_readings.iter().copied();
        self.answers.iter().filter_map(|answer| answer.or_else(|| store_readings.next())).collect()
    }
}

impl Drop for LocalAnswers<'_, '_> {
    fn drop(&mut self) {
        if self.is_open {
            self.undo_charge();
        }
    }
}

/// Returns whether a charge or reservation was refused.
fn refuses(charges: &[Charge<'_>], readings: &Readings) -> bool {
    let both = charges.iter().zip(readings.iter());
    both.filter(|(charge, _)| charge.operation.as_charge().is_some())
        .any(|(_, reading)| reading.admission != Admission::Now)
}

async fn lease_outcome(mut receiver: LeaseReceiver) -> LeaseOutcome {
    match receiver.wait_for(Option::is_some).await {
        Ok(turn) => turn.unwrap_or(LeaseOutcome::Refused),
        // The task ended with the runtime and took no lease, so each caller sends its own charge.
        Err(_) => LeaseOutcome::Refused,
    }
}

const fn units_of(operation: Operation) -> u64 {
    match operation {
        Operation::Refund { cost, .. } => cost.get(),
        _ => 0,
    }
}
