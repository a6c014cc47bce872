//! Counts the results of a policy on the requests of a log, in bounded memory.

mod hours;
mod limits;
mod refusals;
mod subjects;
mod timeline;

use serde::Serialize;
use tollgate::limiter::{ChargeRole, Decision, DecisionSource, PlanPosition};
use tollgate::model::Evaluation;
use tollgate::model::policy::{PlannedCharge, Policy};

use super::request::{Client, Request};
pub(crate) use hours::Hours;
pub(crate) use limits::LimitTally;
pub(crate) use refusals::Episode;
pub(crate) use subjects::SubjectTally;
pub(crate) use timeline::{Point, Timeline};

/// The numbers of requests by their results. `refunded` requests are also counted in `admitted`.
/// `requests` is `admitted` plus `refused`. In the counts of one limit or subject, `requests` also
/// contains the requests that only another limit refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Counts {
    pub(crate) requests: u64,
    pub(crate) admitted: u64,
    pub(crate) refused: u64,
    pub(crate) refunded: u64,
}

/// The result of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestOutcome {
    /// The request was admitted.
    Admitted,
    /// The request was admitted, and its charge was refunded.
    Refunded,
    /// The request was refused.
    Refused,
}

impl Counts {
    /// Counts one request.
    pub(crate) fn add(&mut self, outcome: RequestOutcome) {
        self.requests += 1;
        match outcome {
            RequestOutcome::Admitted => self.admitted += 1,
            RequestOutcome::Refunded => {
                self.admitted += 1;
                self.refunded += 1;
            }
            RequestOutcome::Refused => self.refused += 1,
        }
    }
}

/// All counts of one policy.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) counts: Counts,
    /// The limits, in the order of the policy.
    pub(crate) limits: Vec<LimitTally>,
    pub(crate) timeline: Timeline,
    pub(crate) hours: Hours,
    /// Requests to which no rule or no limit of the policy applies.
    pub(crate) unlimited: u64,
    /// Refused requests that services can interpret in different ways. No limit was charged.
    pub(crate) ambiguous: u64,
    /// Requests for which the store had no room, so `on_failure` of the policy decided.
    pub(crate) undecided: u64,
    /// Requests for which the log has a host name instead of the client's address.
    pub(crate) host_names: u64,
    /// Requests for which the log has the duration.
    pub(crate) durations: u64,
}

/// The decision on a request, as the tally counts it.
#[derive(Clone, Copy, Debug)]
pub(super) struct EvaluatedRequest<'d> {
    pub(super) evaluation: &'d Evaluation,
    pub(super) source: DecisionSource,
    /// The full decision. `None` if the request only made charges and needed no full decision.
    pub(super) decision: Option<&'d Decision>,
}

impl<'d> EvaluatedRequest<'d> {
    pub(super) const fn of(decision: &'d Decision) -> Self {
        let (evaluation, source) = (&decision.evaluation, decision.source);
        Self { evaluation, source, decision: Some(decision) }
    }
}

impl Tally {
    /// Creates a tally for `policy` without counts.
    pub(crate) fn new(policy: &Policy) -> Self {
        Self {
            counts: Counts::default(),
            limits: policy.limits().iter().map(|limit| LimitTally::new(&limit.limit)).collect(),
            timeline: Timeline::default(),
            hours: Hours::default(),
            unlimited: 0,
            ambiguous: 0,
            undecided: 0,
            host_names: 0,
            durations: 0,
        }
    }

    /// Counts an admitted request that no limit can apply to.
    pub(super) fn record_unlimited(&mut self, request: &Request<'_>) {
        self.count(request, RequestOutcome::Admitted);
        self.unlimited += 1;
    }

    /// Counts an ambiguous request, which is refused without a charge.
    pub(super) fn record_ambiguous(&mut self, request: &Request<'_>) {
        self.count(request, RequestOutcome::Refused);
        self.ambiguous += 1;
    }

    fn count(&mut self, request: &Request<'_>, outcome: RequestOutcome) {
        let now = request.entry().time;
        self.counts.add(outcome);
        self.timeline.add(now, outcome);
        self.hours.add(now, outcome);
        self.host_names += u64::from(matches!(request.client(), Client::HostName(_)));
        self.durations += u64::from(request.entry().duration.is_some());
    }

    /// Counts a request with the plan `planned` and the decision `decision`.
    pub(super) fn record(
        &mut self,
        request: &Request<'_>,
        planned: &[PlannedCharge],
        evaluated: EvaluatedRequest<'_>,
        outcome: RequestOutcome,
    ) {
        let EvaluatedRequest { evaluation, source, decision } = evaluated;
        let now = evaluation.now.as_millis();
        self.count(request, outcome);
        self.undecided += u64::from(matches!(source, DecisionSource::Failure(_)));
        let client = request.entry().client().unwrap_or_default();
        let enforced = |(index, _): &(usize, &PlannedCharge)| {
            let position = PlanPosition::Enforced(*index);
            decision.is_none_or(|it| it.charge_at(position).role == ChargeRole::Enforced)
        };
        let mut enforced = planned.iter().enumerate().filter(enforced).peekable();
        self.unlimited += u64::from(enforced.peek().is_none());
        for ((_, planned), status) in enforced.zip(&evaluation.statuses) {
            if let Some(limit) = self.limit(&planned.limit) {
                limit.record(&planned.subject, status, client, now, outcome);
            }
        }
        let Some(decision) = decision else { return };
        for outcome in &decision.candidates {
            if let Some(limit) = self.limit(outcome.limit()) {
                limit.trials.add(outcome);
            }
        }
        let shadow = decision.shadow.iter().flat_map(|evaluation| &evaluation.statuses);
        for status in shadow.filter(|status| status.is_refusal()) {
            if let Some(limit) = self.limit(&status.limit) {
                limit.shadow_refused += 1;
            }
        }
    }

    fn limit(&mut self, limit: &tollgate::model::Limit) -> Option<&mut LimitTally> {
        self.limits.iter_mut().find(|tally| tally.limit.name() == limit.name())
    }
}
