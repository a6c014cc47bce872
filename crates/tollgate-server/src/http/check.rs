//! Serves `POST /v1/check`, `/v1/check/batch` and `/v1/peek`: decisions, and peeks that charge
//! nothing.

use std::sync::Arc;

use futures_util::future::join_all;
use tollgate::limiter::{Decision, Peek};
use tollgate::model::policy::{ChargeOn, NameError, Named, NamedPlan};
use tollgate::model::{Policy, Store, Timestamp};
use tollgate::{DecisionRequest, Limiter, Revision, trace};
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

impl<S: Store + 'static> App<S> {
    /// Makes the decision that a request for `/v1/check` asks for, and returns the JSON document of
    /// the decision.
    pub(super) async fn check(&self, body: &[u8], detail: Detail) -> Answer {
        let mut document = Vec::with_capacity(json::USUAL_BYTES);
        self.check_at(self.limiter.now(), body, detail, &mut document).await?;
        Ok(document.into())
    }

    /// Makes one decision at the time `now`, and appends the JSON document of the decision to
    /// `out`.
    pub(super) async fn check_at(
        &self,
        now: Timestamp,
        body: &[u8],
        detail: Detail,
        out: &mut Vec<u8>,
    ) -> Result<(), Problem> {
        let policy = self.limiter.policy();
        let mut request = self.plan_request(now, &policy, &json::read(body)?)?;
        let mut decision = match self.limiter.decide_at_once(&mut request) {
            Some(decision) => decision,
            None => self.limiter.decide_or_release(request).await,
        };
        Ok(json::write_to(out, &self.decision_answer(&mut decision, detail))?)
    }

    /// Makes several decisions, each of them separately. If one of the checks is invalid, none of
    /// them is charged.
    pub(super) async fn check_batch(&self, body: &[u8], detail: Detail) -> Answer {
        let BatchRequest { checks } = json::read(body)?;
        if !(1..=MAX_CHECKS).contains(&checks.len()) {
            let message = format!("a batch has 1 to {MAX_CHECKS} checks, not {}", checks.len());
            return Err(Fault::at("/checks", message).into());
        }
        let (now, policy) = (self.limiter.now(), self.limiter.policy());
        let within = |(index, Object(request)): (usize, &Object<_>)| {
            let request = self.plan_request(now, &policy, request);
            request.map_err(|problem| problem.within(&format!("/checks/{index}")))
        };
        let requests = checks.iter().enumerate().map(within).collect::<Result<Vec<_>, _>>()?;
        let decisions = requests.into_iter().map(|request| {
            // Each decision has a span of its own, because a span has the attributes of one
            // decision.
            let span = trace::child(trace::SpanKind::Internal, "check");
            let decision = span.run(self.limiter.decide_or_release(request));
            async move { Unanswered { decision: decision.await, limiter: &self.limiter } }
        });
        let mut decisions = join_all(decisions).await;
        let answers = decisions.iter_mut().map(|it| self.decision_answer(&mut it.decision, detail));
        let decisions = answers.collect();
        Ok(json::write(&BatchResponse { decisions })?)
    }

    /// Reports whether a request would be admitted. Charges nothing.
    pub(super) async fn peek(&self, body: &[u8], detail: Detail, caller: Caller) -> Answer {
        let (now, policy) = (self.limiter.now(), self.limiter.policy());
        let DecisionRequest { plan, .. } = self.plan_request(now, &policy, &json::read(body)?)?;
        let rules: Vec<_> = plan.rules.iter().map(|rule| Arc::clone(&rule.name)).collect();
        let Peek { evaluation, source, overrides, .. } =
            self.limiter.peek_at(now, plan.enforced).await?;
        let shown = |applied| {
            let is_admin = caller == Caller::Admin;
            OverriddenLimit::of(applied, |text| is_admin.then(|| self.shown_override(text)))
        };
        let overrides = overrides.iter().map(shown).collect();
        let looked = peek_answer(&policy, &rules, &evaluation, source, detail);
        Ok(json::write(&DecisionResponse { overrides, ..looked })?)
    }

    /// Plans the charges of a check. The check names limits, or it describes a request, for which
    /// the limits of the matching rules are charged.
    pub(super) fn plan_request<'p>(
        &self,
        now: Timestamp,
        policy: &'p Arc<Revision>,
        request: &CheckRequest<'_>,
    ) -> Result<DecisionRequest<'p>, Problem> {
        match request {
            CheckRequest { limits: Some(limits), request: None } => {
                self.by_name(now, policy, limits)
            }
            CheckRequest { limits: None, request: Some(Object(request)) } => {
                self.by_rules(now, policy, request)
            }
            _ => Err(Fault::at("", "give either \"limits\" or \"request\"").into()),
        }
    }

    /// Plans the charges of the rules that match. Rules that charge on completion are charged on
    /// arrival too, because this listener does not see the response. If the caller finds that the
    /// request should not have been charged, the caller refunds the receipt.
    ///
    /// # Errors
    /// A [`Problem`] if the request can be read in more than one way. The caller should refuse such
    /// a request.
    fn by_rules<'p>(
        &self,
        now: Timestamp,
        policy: &'p Arc<Revision>,
        request: &RequestFacts<'_>,
    ) -> Result<DecisionRequest<'p>, Problem> {
        let plan = self.limiter.plan_at(now, policy, &request.facts());
        if let Some(ambiguity) = plan.ambiguity {
            self.limiter.report_ambiguous(now, ambiguity);
            return Err(Problem::new(Kind::InvalidRequest, ambiguity.detail()).at("/request"));
        }
        let request = DecisionRequest::new(now, policy, plan);
        Ok(DecisionRequest { charge: ChargeOn::Arrival, ..request })
    }

    fn by_name<'p>(
        &self,
        now: Timestamp,
        policy: &'p Arc<Revision>,
        limits: &[Object<LimitCharge<'_>>],
    ) -> Result<DecisionRequest<'p>, Problem> {
        if !(1..=MAX_LIMITS).contains(&limits.len()) {
            let message = format!("a charge has 1 to {MAX_LIMITS} limits, not {}", limits.len());
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
        Ok(DecisionRequest::of_charges(now, policy, planned, on_failure))
    }
}

/// A decision of a batch that is not in a response yet. If this value is dropped while the decision
/// has a receipt, because the client disconnected, the permits of the receipt are released.
struct Unanswered<'l, S: Store + 'static> {
    decision: Decision,
    limiter: &'l Arc<Limiter<S>>,
}

impl<S: Store + 'static> Drop for Unanswered<'_, S> {
    fn drop(&mut self) {
        if let Some(receipt) = self.decision.receipt.take() {
            self.limiter.release_in_background(receipt);
        }
    }
}

/// Returns the problem for a name that the policy does not have. The message suggests a similar
/// name, if one is known.
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
