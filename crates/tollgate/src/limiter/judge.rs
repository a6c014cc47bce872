//! One question to the store: what is enforced of a plan, or counted beside it, and its verdict.

use std::sync::Arc;

use tollgate_core::charge::{Ask, Charge, ChargeId};
use tollgate_core::policy::{Mode, OnFailure, Planned, Queue};
use tollgate_core::reading::Source;
use tollgate_core::{Fit, Reading, Readings, Standing, Store, StoreError, Timestamp, Verdict};

use super::overridden::{Overridden, OverriddenPlan, Overrule};
use super::taking::Taking;
use super::trial::Beside;
use super::{Limiter, Pending};
use crate::receipt::Receipt;

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
                }
                return judged;
            }
        };
        let ask = |planned: &Planned| taking.ask(planned, id);
        let (now, readings) = self.ask_in_line(now, &planned, ask, queue).await;
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
        }
        let (receipt, pending) = proof(id, taking, planned, &readings);
        let (receipt, pending) = match receipt {
            // Refused by a look. Limits that count refusals have counted this one; leases end.
            Some(taken) if !verdict.is_admitted() => {
                let (_, leases) = taken.split_leases();
                let _ = self.refund_at(now, leases).await;
                (None, None)
            }
            receipt => (receipt, pending.filter(|_| verdict.is_admitted())),
        };
        match readings.source() {
            // These rules do not ask what stands in; what it charged is given back there.
            Source::Fallback(error) if on_failure != OnFailure::Local => {
                if let Some(receipt) = receipt {
                    let _ = self.refund_at(now, receipt).await;
                }
                Judged::failure(now, error)
            }
            source => Judged { verdict, source, receipt, pending, beside, by },
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
    pub(super) receipt: Option<Receipt>,
    pub(super) pending: Option<Pending>,
    /// What is tried beside it.
    pub(super) beside: Vec<Beside>,
    /// Overrides that decided in it.
    pub(super) by: Vec<Overrule>,
}

impl Judged {
    pub(super) fn failure(now: Timestamp, error: StoreError) -> Self {
        let (verdict, source) = (Verdict::without_standings(now), Source::Failure(error));
        Self { verdict, source, receipt: None, pending: None, beside: Vec::new(), by: Vec::new() }
    }

    fn blocked(now: Timestamp, standings: Vec<Standing>) -> Self {
        let (verdict, source) = (Verdict { now, standings }, Source::Remembered);
        Self { verdict, source, receipt: None, pending: None, beside: Vec::new(), by: Vec::new() }
    }
}

/// What was taken, unless that was refused, and what was only looked at.
pub(super) fn proof(
    id: ChargeId,
    taking: Taking,
    planned: Vec<Planned>,
    readings: &Readings,
) -> (Option<Receipt>, Option<Pending>) {
    // All or nothing by itself, whatever the looks saw.
    let is_taken = |(planned, reading): (&Planned, &Reading)| {
        taking.looks_at(&planned.limit) || reading.fit == Fit::Now
    };
    if !planned.iter().zip(readings.iter()).all(is_taken) {
        return (None, None);
    }
    let mut looked_at = Vec::new();
    let taken = planned.into_iter().zip(readings.iter()).filter_map(|(planned, reading)| {
        if taking.looks_at(&planned.limit) {
            looked_at.push(planned);
            return None;
        }
        Some((planned, reading.mark))
    });
    let receipt = Receipt::new(id, taking.purpose(), taken);
    ((!receipt.is_empty()).then_some(receipt), Pending::new(looked_at))
}

pub(super) fn verdict(now: Timestamp, planned: &[Planned], readings: &Readings) -> Verdict {
    let standings = planned
        .iter()
        .zip(readings.iter())
        .map(|(planned, reading)| Standing::new(Arc::clone(&planned.limit), planned.cost, reading));
    Verdict { now, standings: standings.collect() }
}
