//! `POST /v1/check`, `/v1/check/batch` and `/v1/peek`.

use std::sync::Arc;

use futures_util::future::join_all;
use tollgate::core::policy::{
    ChargeOn, NameError, Named, NamedPlan, OnFailure, Plan, PlannedCharge,
};
use tollgate::core::{Policy, Store, Timestamp};
use tollgate::limiter::Terms;
use tollgate::{Decision, Revision, trace};
use tollgate_policy::suggest;

use super::answer::peek_answer;
use super::app::App;
use super::auth::Caller;
use super::json::{self, Fault, Object};
use super::prefer::Detail;
use super::problem::{Kind, Problem};
use super::respond::Answer;
use super::wire::{
    BatchRequest, BatchResponse, CheckRequest, DecisionResponse, LimitCharge, MAX_CHECKS,
    MAX_LIMITS, OverriddenLimit, RequestFacts,
};

/// What a check asks, understood and not carried out yet.
pub(super) struct PlannedCheck<'p> {
    pub(super) policy: &'p Arc<Revision>,
    pub(super) plan: Plan<'p>,
    pub(super) terms: Terms,
}

impl<S: Store> App<S> {
    /// Charges once.
    pub(super) async fn check(&self, body: &[u8], detail: Detail) -> Answer {
        let (now, policy) = (self.limiter.now(), self.limiter.policy());
        let requested = self.plan_request(now, &policy, &json::read(body)?)?;
        let mut decision = self.charge(now, requested).await;
        Ok(json::write(&self.decision_answer(&mut decision, detail))?)
    }

    /// Charges several times, each for itself. One that cannot be understood refuses them all.
    pub(super) async fn check_batch(&self, body: &[u8], detail: Detail) -> Answer {
        let BatchRequest { checks } = json::read(body)?;
        if !(1..=MAX_CHECKS).contains(&checks.len()) {
            let message = format!("a batch has 1 to {MAX_CHECKS} checks, not {}", checks.len());
            return Err(Fault::at("/checks", message).into());
        }
        let (now, policy) = (self.limiter.now(), self.limiter.policy());
        let within = |(index, Object(request)): (usize, &Object<_>)| {
            let requested = self.plan_request(now, &policy, request);
            requested.map_err(|problem| problem.within(&format!("/checks/{index}")))
        };
        let requested = checks.iter().enumerate().map(within).collect::<Result<Vec<_>, _>>()?;
        let charges = requested.into_iter().map(|requested| {
            // One span has room for one decision.
            trace::child(trace::SpanKind::Internal, "check").run(self.charge(now, requested))
        });
        let mut decisions = join_all(charges).await;
        let decisions =
            decisions.iter_mut().map(|decision| self.decision_answer(decision, detail)).collect();
        Ok(json::write(&BatchResponse { decisions })?)
    }

    /// Whether it would be admitted; charges nothing.
    pub(super) async fn peek(&self, body: &[u8], detail: Detail, caller: Caller) -> Answer {
        let (now, policy) = (self.limiter.now(), self.limiter.policy());
        let PlannedCheck { plan, .. } = self.plan_request(now, &policy, &json::read(body)?)?;
        let rules: Vec<_> = plan.rules.iter().map(|rule| Arc::clone(&rule.name)).collect();
        let requested = plan.enforced.clone();
        let enforced = self.limiter.shares(now, plan.enforced).enforced;
        let (evaluation, source) = self.limiter.look_at(now, &enforced).await?;
        let overrides = self.active_overrides(&requested, now, caller);
        let looked = peek_answer(&policy, &rules, &evaluation, source, detail);
        Ok(json::write(&DecisionResponse { overrides, ..looked })?)
    }

    /// The overrides that decide in the place of limits.
    fn active_overrides<'p>(
        &self,
        planned: &'p [PlannedCharge],
        now: Timestamp,
        caller: Caller,
    ) -> Vec<OverriddenLimit<'p>> {
        let (overrides, key) = (self.limiter.overrides(), self.limiter.key());
        let by = |PlannedCharge { limit, subject, .. }: &'p PlannedCharge| {
            let found = overrides.find(limit, subject, key, now)?;
            let is_told = caller == Caller::Admin;
            let definition = is_told.then(|| self.shown_override(&found));
            Some(OverriddenLimit::by(limit, &found, definition))
        };
        planned.iter().filter_map(by).collect()
    }

    fn charge<'s>(
        &'s self,
        now: Timestamp,
        PlannedCheck { policy, plan, terms }: PlannedCheck<'_>,
    ) -> impl Future<Output = Decision> + Send + use<'s, S> {
        self.limiter.check_on_terms_at(now, policy, plan, terms)
    }

    pub(super) fn plan_request<'p>(
        &self,
        now: Timestamp,
        policy: &'p Arc<Revision>,
        request: &CheckRequest<'_>,
    ) -> Result<PlannedCheck<'p>, Problem> {
        match request {
            CheckRequest { limits: Some(limits), request: None } => self.by_name(policy, limits),
            CheckRequest { limits: None, request: Some(Object(request)) } => {
                Ok(self.by_rules(now, policy, request))
            }
            _ => Err(Fault::at("", "give either \"limits\" or \"request\"").into()),
        }
    }

    /// MatchMode that charge on completion charge on arrival here: the answer is never heard of, and
    /// who knows that it is free gives the receipt back.
    fn by_rules<'p>(
        &self,
        now: Timestamp,
        policy: &'p Arc<Revision>,
        request: &RequestFacts<'_>,
    ) -> PlannedCheck<'p> {
        let plan = self.limiter.plan_at(now, policy, &request.facts());
        let terms = Terms { charge: ChargeOn::Arrival, on_failure: plan.on_failure() };
        PlannedCheck { policy, plan, terms }
    }

    fn by_name<'p>(
        &self,
        policy: &'p Arc<Revision>,
        limits: &[Object<LimitCharge<'_>>],
    ) -> Result<PlannedCheck<'p>, Problem> {
        if !(1..=MAX_LIMITS).contains(&limits.len()) {
            let message = format!("a charge is on 1 to {MAX_LIMITS} limits, not {}", limits.len());
            return Err(Fault::at("/limits", message).into());
        }
        let subjects: Vec<_> = limits.iter().flat_map(|charge| charge.0.subject.values()).collect();
        let mut rest = &*subjects;
        let named = limits.iter().map(|Object(LimitCharge { name, cost, subject })| {
            let (subject, after) = rest.split_at(subject.len());
            rest = after;
            Named { limit: name, cost: cost.cost(), subject }
        });
        let planned = policy.plan_named(named, self.limiter.key());
        let message = |(index, error)| unknown_name(policy, &error).at(format!("/limits/{index}"));
        let NamedPlan { planned, on_failure } = planned.map_err(message)?;
        Ok(PlannedCheck::new(policy, planned, on_failure))
    }
}

impl<'p> PlannedCheck<'p> {
    fn new(policy: &'p Arc<Revision>, enforced: Vec<PlannedCharge>, on_failure: OnFailure) -> Self {
        let plan = Plan { enforced, ..Plan::default() };
        Self { policy, plan, terms: Terms { charge: ChargeOn::Arrival, on_failure } }
    }
}

/// What is wrong with a name, and what was probably meant.
pub(super) fn unknown_name(policy: &Policy, error: &NameError) -> Problem {
    let near = match error {
        NameError::Limit(name) => {
            suggest(name, policy.limits().iter().map(|binding| binding.limit.name()))
        }
        NameError::Dimension(name) => {
            suggest(name, policy.dimensions().iter().map(|dimension| &*dimension.name))
        }
        _ => None,
    };
    let near = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
    let kind = match error {
        NameError::Limit(_) => Kind::UnknownLimit,
        _ => Kind::InvalidSubject,
    };
    Problem::new(kind, format!("{error}{near}"))
}
