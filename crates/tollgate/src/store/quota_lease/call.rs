//! A call that this node cannot answer by itself: leases are taken for it, or the store is asked.

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
use crate::receipt::new_charge_id;

/// The attempts to take a lease that a call waits for before it asks the store itself.
const MAX_LEASE_ATTEMPTS: usize = 3;

/// Units that are given back in one call of the store: for so many limits and subjects at most.
pub(super) const MAX_REFUND_BATCH: usize = 64;

impl<S: Store + 'static> Shared<S> {
    /// Carries out what is not covered: what is worth a lease is decided out of one.
    pub(super) async fn ask(
        self: &Arc<Self>,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> Result<Readings, StoreError> {
        for charge in charges {
            self.take_lease(now, charge).await?;
        }
        let mut here = LocalAnswers::answered(&self.table, now, charges);
        let asked: Vec<Charge<'_>> = here.unanswered().collect();
        if asked.is_empty() {
            add(&self.counters.decided, 1);
            return Ok(here.joined(&Readings::new()));
        }
        let readings = self.ask_store(now, &asked).await?;
        if refuses(&asked, &readings) {
            here.undo_take();
        }
        Ok(here.joined(&readings).with_source(readings.source()))
    }

    /// Takes a lease for `charge` if that is worth it, or waits until whoever does has one.
    async fn take_lease(
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
                LeaseStep::Wait(hear) => lease_outcome(hear).await,
                LeaseStep::Take { account, units, asked, tell, hear } => {
                    let shared = Arc::clone(self);
                    let take = async move {
                        let turn = shared.take(now, &account, units, asked).await;
                        let _ = tell.send(Some(turn));
                    };
                    // On a task of its own: units that come late are not lost with their caller.
                    match Handle::try_current() {
                        Ok(runtime) => drop(runtime.spawn(take)),
                        Err(_) => take.await,
                    }
                    lease_outcome(hear).await
                }
            };
            match turn {
                LeaseOutcome::Taken => {}
                LeaseOutcome::Refused => return Ok(()),
                // Whoever waited for it is told at once: the store is not asked again by each.
                LeaseOutcome::Failed(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes `units` in advance.
    async fn take(
        &self,
        now: Timestamp,
        account: &Arc<LeaseSubject>,
        units: u64,
        asked: ReplyCount,
    ) -> LeaseOutcome {
        let cost = Cost::up_to(units);
        let ask = Operation::Charge { cost, id: new_charge_id() };
        let charge = Charge { limit: &account.limit, subject: &account.subject, operation: ask };
        let answer = self.store.apply(now, &[charge]).await;
        let reading = answer.and_then(|all| all.first().copied().ok_or(StoreError::Corrupt));
        let (turn, is_elsewhere) = self.table.end(account, units, reading, now, asked);
        if turn == LeaseOutcome::Taken {
            add(&self.counters.taken, 1);
            add(&self.counters.units_taken, units);
        }
        if let (true, Ok(Reading { position, .. })) = (is_elsewhere, reading)
            && let Some(undone) = ask.inverse(position)
        {
            // What cannot be given back is over with its window.
            let _ = self.refund(now, &[(Arc::clone(account), undone)]).await;
        }
        turn
    }

    /// Asks the store what nothing here covers. What is unused of the same limits and subjects is
    /// given back first, so that nobody is refused beside it, and the store's numbers are exact.
    async fn ask_store(
        &self,
        now: Timestamp,
        asked: &[Charge<'_>],
    ) -> Result<Readings, StoreError> {
        let unused: Vec<LeaseRefund> = asked
            .iter()
            .filter(|charge| !matches!(charge.operation, Operation::Peek { .. } | Operation::Reset))
            .filter_map(|charge| self.table.all_unused(now, charge))
            .collect();
        self.refund(now, &unused).await?;
        self.forget(asked);
        let before: Vec<_> = asked.iter().map(|charge| self.table.replies(charge)).collect();
        let mut readings = self.store.apply(now, asked).await?;
        // A lease that was begun meanwhile is of what was forgotten.
        self.forget(asked);
        if readings.source() == DecisionSource::Store {
            self.learn(now, asked, &before, &readings);
        }
        self.correct(now, asked, &before, &mut readings).await?;
        Ok(readings)
    }

    fn forget(&self, asked: &[Charge<'_>]) {
        let forgotten = asked.iter().filter(|charge| charge.operation == Operation::Reset);
        forgotten.for_each(|charge| self.table.forget(charge));
    }

    fn learn(
        &self,
        now: Timestamp,
        asked: &[Charge<'_>],
        before: &[Option<ReplyCount>],
        readings: &Readings,
    ) {
        let is_refused = refuses(asked, readings);
        for ((charge, reading), before) in asked.iter().zip(readings.iter()).zip(before) {
            // A look may be answered by a copy that lags.
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

    /// Leaves out of what was only read what is unused here. Where that would say too little, it is
    /// given back and asked again.
    async fn correct(
        &self,
        now: Timestamp,
        asked: &[Charge<'_>],
        before: &[Option<ReplyCount>],
        readings: &mut Readings,
    ) -> Result<(), StoreError> {
        for ((charge, reading), before) in asked.iter().zip(readings.iter_mut()).zip(before) {
            if !matches!(charge.operation, Operation::Peek { .. }) {
                continue;
            }
            if let Some(corrected) = self.table.corrected(charge, reading, *before) {
                *reading = corrected;
                continue;
            }
            let Some(unused) = self.table.all_unused(now, charge) else { continue };
            self.refund(now, &[unused]).await?;
            let again = self.store.apply(now, &[*charge]).await?;
            *reading = again.first().copied().ok_or(StoreError::Corrupt)?;
        }
        Ok(())
    }

    /// Gives units back, some limits and subjects at a time.
    ///
    /// # Errors
    /// Why the store did not take some of them: those stay used until their windows are over.
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
                Ok(_) => add(&self.counters.units_given_back, units),
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
    /// Whether this node could carry `charge` out, or it is none that leases are for.
    fn answers(&self, now: Timestamp, charge: &Charge<'_>) -> bool {
        match charge.operation {
            Operation::Charge { cost, .. } if charge.limit.mode() == LimitMode::Leased => {
                let look = Charge { operation: Operation::Peek { cost }, ..*charge };
                cost == Cost::PEEK || self.answer(now, &look).is_some()
            }
            _ => true,
        }
    }
}

/// What this node answered of a call. Until the whole call is known to be carried out, units that
/// it used are put back where the call is given up.
struct LocalAnswers<'c, 'a> {
    table: &'c Table,
    charges: &'c [Charge<'a>],
    answers: Vec<Option<Reading>>,
    is_open: bool,
}

impl<'c, 'a> LocalAnswers<'c, 'a> {
    fn answered(table: &'c Table, now: Timestamp, charges: &'c [Charge<'a>]) -> Self {
        let answers = charges.iter().map(|charge| table.answer(now, charge)).collect();
        Self { table, charges, answers, is_open: true }
    }

    fn unanswered(&self) -> impl Iterator<Item = Charge<'a>> {
        let both = self.charges.iter().zip(&self.answers);
        both.filter(|(_, answer)| answer.is_none()).map(|(charge, _)| *charge)
    }

    /// Undoes the takes: the call was refused, or nobody knows. One of nothing stays as it was told:
    /// what fitted then may fit no more.
    fn undo_take(&mut self) {
        self.is_open = false;
        for (charge, answer) in self.charges.iter().zip(&mut self.answers) {
            if let (Operation::Charge { cost, .. }, Some(taken)) = (charge.operation, answer)
                && cost != Cost::PEEK
            {
                let untaken = Reading { used: taken.used.saturating_sub(cost.get()), ..*taken };
                *taken = self.table.undo_take(charge, taken.position).unwrap_or(untaken);
            }
        }
    }

    /// The readings of the whole call, in its order.
    fn joined(&mut self, asked: &Readings) -> Readings {
        self.is_open = false;
        let mut asked = asked.iter().copied();
        self.answers.iter().filter_map(|answer| answer.or_else(|| asked.next())).collect()
    }
}

impl Drop for LocalAnswers<'_, '_> {
    fn drop(&mut self) {
        if self.is_open {
            self.undo_take();
        }
    }
}

/// Whether a take or a reservation of these was refused.
fn refuses(charges: &[Charge<'_>], readings: &Readings) -> bool {
    let both = charges.iter().zip(readings.iter());
    both.filter(|(charge, _)| charge.operation.as_charge().is_some())
        .any(|(_, reading)| reading.admission != Admission::Now)
}

async fn lease_outcome(mut hear: LeaseReceiver) -> LeaseOutcome {
    match hear.wait_for(Option::is_some).await {
        Ok(turn) => turn.unwrap_or(LeaseOutcome::Refused),
        // Its task has ended with the runtime: each asks for itself.
        Err(_) => LeaseOutcome::Refused,
    }
}

const fn units_of(operation: Operation) -> u64 {
    match operation {
        Operation::Refund { cost, .. } => cost.get(),
        _ => 0,
    }
}
