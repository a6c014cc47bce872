//! Limits that are tried: which part of a plan is enforced, and how candidates would have decided.

use std::sync::Arc;

use tollgate_core::charge::ChargeId;
use tollgate_core::policy::{PlannedCharge, RuleMode};
use tollgate_core::{DecisionSource, Evaluation, Limit, LimitStatus, Store, Timestamp};

use super::Limiter;
use super::beside::Beside;
use super::judge::{Judged, Unless};
use super::proof::Proof;
use super::taking::Taking;
use crate::overrides::Effect;

/// What a limit and its candidate each made of one request.
#[derive(Clone, Debug)]
pub struct Trial {
    /// How the limit in force stands by itself.
    pub live: LimitStatus,
    /// How its candidate stands, which counts in counters of its own.
    pub candidate: LimitStatus,
}

/// What is enforced of a plan, and what is only counted.
#[derive(Debug)]
pub struct Shares {
    /// What decides.
    pub enforced: Vec<PlannedCharge>,
    /// What is not enforced for its subject ([`Limit::enforces`]), or only counted by an override.
    pub counted: Vec<PlannedCharge>,
}

/// What was enforced, and what was tried beside it.
pub(super) struct Tried {
    pub(super) judged: Judged,
    /// What the rules in shadow mode made of it, if there are any.
    pub(super) shadow: Option<Evaluation>,
    pub(super) trials: Vec<Trial>,
}

impl<S: Store> Limiter<S> {
    /// Parts what of `planned` is enforced for its subject at `now` from what is only counted. What
    /// an override says of a subject is enforced.
    #[must_use]
    pub fn shares(&self, now: Timestamp, planned: Vec<PlannedCharge>) -> Shares {
        let enforces = |PlannedCharge { limit, subject, .. }: &PlannedCharge| match self
            .overrides
            .find(limit, subject, &self.key, now)
        {
            None => limit.enforces(subject, &self.key),
            Some(said) => said.effect != Effect::Counted,
        };
        if planned.iter().all(enforces) {
            return Shares { enforced: planned, counted: Vec::new() };
        }
        let (enforced, counted) = planned.into_iter().partition(enforces);
        Shares { enforced, counted }
    }

    /// Charges beside what `judged` says what is only tried: `shadowed`, which stop nobody, and
    /// candidates. What that proves is joined to its proof.
    pub(super) async fn try_beside(
        &self,
        id: ChargeId,
        mut judged: Judged,
        shadowed: Option<Vec<PlannedCharge>>,
        taking: Taking,
    ) -> Tried {
        // Later than it came, if it waited.
        let now = judged.evaluation.now;
        let mut shadow = None;
        if let Some(shadowed) = shadowed {
            let taking = taking.on_arrival();
            let beside = self.judge(now, id, RuleMode::Shadow, shadowed, taking, Unless::BESIDE);
            let mut beside = beside.await;
            shadow = Some(beside.evaluation);
            judged.proof = judged.proof.joined(beside.proof);
            judged.beside.append(&mut beside.beside);
            beside.by.retain(|overrule| overrule.said.effect == Effect::Counted);
            judged.by.append(&mut beside.by);
        }
        let mut trials = Vec::new();
        let beside = std::mem::take(&mut judged.beside);
        if !beside.is_empty() {
            let (tried, proof) =
                self.try_candidates(now, id, beside, &judged.evaluation, taking).await;
            trials = tried;
            judged.proof = judged.proof.joined(proof);
        }
        Tried { judged, shadow, trials }
    }

    /// Charges candidates as if all of them were in the places of their limits, which is one call of
    /// the store: every one is charged, or reserved, or none is. Where another limit refused the request, or the
    /// store has no answer, nothing is compared.
    async fn try_candidates(
        &self,
        now: Timestamp,
        id: ChargeId,
        beside: Vec<Beside>,
        enforced: &Evaluation,
        taking: Taking,
    ) -> (Vec<Trial>, Proof) {
        let refuses_alone = |status: &&LimitStatus| status.limit.candidate().is_none();
        if enforced.refusals().any(|one| refuses_alone(&one)) {
            return (Vec::new(), Proof::default());
        }
        let (live, planned): (Vec<_>, Vec<_>) =
            beside.into_iter().map(|one| (one.live, one.candidate)).unzip();
        let Judged { evaluation, source, proof, .. } = self
            .judge(now, id, RuleMode::Shadow, planned, taking.on_arrival(), Unless::BESIDE)
            .await;
        // What stands in for the store says nothing of limits that nobody shares.
        if let DecisionSource::Fallback(_) | DecisionSource::Failure(_) = source {
            return (Vec::new(), proof);
        }
        let trials = live.into_iter().zip(evaluation.statuses);
        (trials.map(|(live, candidate)| Trial { live, candidate }).collect(), proof)
    }
}

impl Trial {
    /// The limit that is in force.
    #[must_use]
    pub const fn limit(&self) -> &Arc<Limit> {
        &self.live.limit
    }
}
