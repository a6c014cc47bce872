//! One question to the store: what is enforced of a plan, or counted beside it, and its verdict.

use std::sync::Arc;

use tollgate_core::charge::{Ask, Charge, ChargeId};
use tollgate_core::policy::{Mode, OnFailure, Planned, Queue};
use tollgate_core::reading::Source;
use tollgate_core::{Readings, Standing, Store, StoreError, Timestamp, Verdict};

use super::Limiter;
use super::overridden::{Overridden, OverriddenPlan, Overrule};
use super::proof::Proof;
use super::taking::Taking;
use super::trial::Beside;

impl<S: Store> Limiter<S> {
    /// Charges everything planned or nothing, looks at what is charged later, and keeps proof.
    pub(super) async fn judge(
        &self,
        now: Timestamp,
        id: ChargeId,
        mode: Mode,
        planned: Vec<Planned>,
        taking: Taking,
        Unless { on_failure, queue }: Unless,
    ) -> Judged {
        let Overridden { planned, by } = self.overridden(now, planned);
        let planned = match planned {
            OverriddenPlan::Planned(planned) => planned,
            OverriddenPlan::Blocked(planned, standings) => {
                let judged = Judged { by, ..Judged::blocked(now, standings) };
                if mode == Mode::Enforce {
                    self.observer.judged(&planned, &judged.verdict);
                    self.tracer.judged(&self.key, &planned, &judged.verdict);
                }
                return judged;
            }
        };
        let ask = |planned: &Planned| taking.ask(planned, id);
        let (now, readings) = match queue {
            None => (now, self.ask(now, &planned, ask).await),
            Some(queue) => Box::pin(self.ask_in_line(now, &planned, ask, queue)).await,
        };
        let readings = match readings {
            Ok(readings) => readings,
            Err(error) => return Judged::failure(now, error),
        };
        let verdict = verdict(now, &planned, &readings);
        let beside = match readings.source() {
            Source::Store | Source::Remembered => Beside::of(&planned, &verdict),
            Source::Fallback(_) | Source::Failure(_) => Vec::new(),
        };
        if mode == Mode::Enforce && !planned.is_empty() {
            self.observer.judged(&planned, &verdict);
            self.tracer.judged(&self.key, &planned, &verdict);
        }
        let mut proof = Proof::of(id, taking, planned, &readings);
        if !verdict.is_admitted() {
            let taken = std::mem::take(&mut proof);
            if taken.receipt.is_some() || taken.reserved.is_some() {
                Box::pin(self.undo_refused(now, taken)).await;
            }
        }
        match readings.source() {
            // These rules do not ask what stands in; what it charged is given back there.
            Source::Fallback(error) if on_failure != OnFailure::Local => {
                for receipt in [proof.receipt, proof.reserved].into_iter().flatten() {
                    let _ = Box::pin(self.refund_at(now, receipt)).await;
                }
                Judged::failure(now, error)
            }
            source => Judged { verdict, source, proof, beside, by },
        }
    }

    /// Ends what a request holds that a look refused. Limits that count refusals have counted it.
    async fn undo_refused(&self, now: Timestamp, proof: Proof) {
        let leases = proof.receipt.map(|taken| taken.split_leases().1);
        for receipt in leases.into_iter().chain(proof.reserved) {
            let _ = self.refund_at(now, receipt).await;
        }
    }

    /// Takes all of it or nothing, for `id`.
    pub(super) async fn take(
        &self,
        now: Timestamp,
        planned: &[Planned],
        id: ChargeId,
    ) -> Result<Readings, StoreError> {
        self.ask(now, planned, |planned| Ask::Take { cost: planned.cost, id }).await
    }

    pub(super) async fn ask(
        &self,
        now: Timestamp,
        planned: &[Planned],
        ask: impl Fn(&Planned) -> Ask,
    ) -> Result<Readings, StoreError> {
        if planned.is_empty() {
            return Ok(Readings::new());
        }
        let charges: Vec<Charge<'_>> = planned
            .iter()
            .map(|planned| {
                let Planned { limit, subject, .. } = planned;
                Charge { limit, subject, ask: ask(planned) }
            })
            .collect();
        self.store.apply(now, &charges).await
    }
}

/// What is done where the store has no answer, and where only a place in flight is missing.
#[derive(Clone, Copy)]
pub(super) struct Unless {
    pub(super) on_failure: OnFailure,
    pub(super) queue: Option<Queue>,
}

impl Unless {
    /// Of what decides nothing: nobody waits for it, and nobody hears where there is no answer.
    pub(super) const BESIDE: Self = Self { on_failure: OnFailure::Local, queue: None };
}

/// What the enforced rules, or those in shadow mode, make of a request.
pub(super) struct Judged {
    pub(super) verdict: Verdict,
    pub(super) source: Source,
    pub(super) proof: Proof,
    /// What is tried beside it.
    pub(super) beside: Vec<Beside>,
    /// Overrides that decided in it.
    pub(super) by: Vec<Overrule>,
}

impl Judged {
    pub(super) fn failure(now: Timestamp, error: StoreError) -> Self {
        let (verdict, source) = (Verdict::without_standings(now), Source::Failure(error));
        Self { verdict, source, proof: Proof::default(), beside: Vec::new(), by: Vec::new() }
    }

    fn blocked(now: Timestamp, standings: Vec<Standing>) -> Self {
        let (verdict, source) = (Verdict { now, standings }, Source::Remembered);
        Self { verdict, source, proof: Proof::default(), beside: Vec::new(), by: Vec::new() }
    }
}

pub(super) fn verdict(now: Timestamp, planned: &[Planned], readings: &Readings) -> Verdict {
    let standings = planned
        .iter()
        .zip(readings.iter())
        .map(|(planned, reading)| Standing::new(Arc::clone(&planned.limit), planned.cost, reading));
    Verdict { now, standings: standings.collect() }
}
