//! The limiter's decision on one request, and which charges of its plan it evaluated.

mod positions;

use std::sync::Arc;

use tollgate_core::policy::{ChargeOn, OnFailure, PlannedCharge};
use tollgate_core::reading::DecisionSource;
use tollgate_core::{Cost, Evaluation, Limit, LimitStatus, Timestamp};

use crate::overrides::Override;
use crate::receipt::Receipt;
use crate::revision::Revision;

pub(crate) use positions::Evaluated;
pub use positions::{ChargePositions, PlanPosition};

/// The limiter's decision on one request.
#[derive(Debug)]
pub struct Decision {
    /// The policy that decided, from the plan to the receipt. Answer the client by the same policy.
    pub policy: Arc<Revision>,
    /// The names of the rules that matched, in the policy's order.
    pub rules: Vec<Arc<str>>,
    /// The limits that decided. Empty if neither the store nor a fallback answered.
    pub evaluation: Evaluation,
    /// The charges that were counted and cannot reject: rules in shadow mode, and limits that are
    /// not enforced for their subjects.
    pub shadow: Option<Evaluation>,
    /// The candidate of each limit that has one, compared with its limit. Empty if a limit without
    /// a candidate refused the request.
    pub candidates: Vec<CandidateOutcome>,
    /// The overrides that replaced limits. Empty if neither the store nor a fallback answered.
    pub overrides: Vec<AppliedOverride>,
    /// What decided: the store, this node's deny cache, the fallback, or `on_failure`.
    pub source: DecisionSource,
    /// The `on_failure` of its rules: how they decide while the store does not answer.
    pub on_failure: OnFailure,
    /// When its rules charge: on arrival or on completion.
    pub charge: ChargeOn,
    /// The receipt of the charges, if there are any. If the caller reserved
    /// [everything](crate::limiter::Reservation::All), the receipt of the reservation.
    pub receipt: Option<Receipt>,
    /// The receipt of the [metered](crate::limiter::Reservation::Metered) limits that were
    /// reserved, if any: settle it when the response ends.
    pub reserved: Option<Receipt>,
    /// The charges to make once the response is known, if there are any: pass them to
    /// [`Limiter::complete`](crate::Limiter::complete) unless the response is free.
    pub pending: Option<Pending>,
    /// Which charge of the plan each status belongs to: see [`charge_at`](Self::charge_at).
    pub positions: ChargePositions,
}

/// How the limiter evaluated one charge of a plan.
#[derive(Clone, Copy, Debug)]
pub struct EvaluatedCharge<'d> {
    /// Whether the charge could reject the request.
    pub role: ChargeRole,
    /// The status of its limit, if the store or a fallback answered.
    pub status: Option<&'d LimitStatus>,
    /// The override that replaced its limit, if one did.
    pub applied_override: Option<&'d AppliedOverride>,
    /// The comparison with the limit's candidate, if it was evaluated.
    pub candidate: Option<&'d CandidateOutcome>,
}

/// Whether a charge could reject the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChargeRole {
    /// Its limit was enforced.
    Enforced,
    /// It was only counted: its rule is in shadow mode, or its limit is not enforced for its
    /// subject.
    Counted,
    /// It was not sent to the store: an override lifts its limit, or blocks the request.
    Skipped,
}

/// A limit and its candidate, both evaluated for the same request.
#[derive(Clone, Debug)]
pub struct CandidateOutcome {
    /// The charge that both evaluated.
    pub position: PlanPosition,
    /// The status of the limit in force.
    pub live: LimitStatus,
    /// The status of its candidate, which has counters of its own.
    pub candidate: LimitStatus,
}

/// An override that replaced a limit of the policy.
#[derive(Clone, Debug)]
pub struct AppliedOverride {
    /// The charge whose limit it replaced.
    pub position: PlanPosition,
    /// The limit as the policy defines it.
    pub limit: Arc<Limit>,
    /// The override.
    pub said: Arc<Override>,
}

/// Charges that an admitted request still has to pay: its limits were only looked at on arrival.
///
/// Not `Clone`, because a charge is made once. Dropping the value makes no charge, which is correct
/// only if the response is free.
#[derive(Debug)]
#[must_use = "a request that was only looked at is not charged unless it is completed"]
pub struct Pending {
    pub(crate) planned: Vec<PlannedCharge>,
}

/// The result of a charge on completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// Every limit was charged.
    Charged,
    /// Other requests filled a limit in the meantime. The limiter left that limit as it is and
    /// charged the others.
    Overrun,
}

/// Whether a response makes its request free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// The request costs the units that its limits charge.
    Charged,
    /// The request costs nothing.
    Free,
}

impl Decision {
    /// Whether the request is admitted.
    #[must_use]
    pub fn is_admitted(&self) -> bool {
        match self.source {
            DecisionSource::Store
            | DecisionSource::DenyCache
            | DecisionSource::Overflow
            | DecisionSource::Fallback(_) => self.evaluation.is_admitted(),
            DecisionSource::Failure(_) => self.on_failure != OnFailure::Deny,
        }
    }

    /// Whether neither the store nor a fallback answered.
    pub(crate) fn is_unanswered(&self) -> bool {
        matches!(self.source, DecisionSource::Failure(_)) && self.evaluation.statuses.is_empty()
    }

    /// Returns how the limiter evaluated the charge at `position` of the plan.
    ///
    /// A plan from [`Policy::plan_named`](tollgate_core::Policy::plan_named) or one that the caller
    /// made has the same order: position `Enforced(0)` is the first element of
    /// [`Plan::enforced`](tollgate_core::policy::Plan::enforced).
    #[must_use]
    pub fn charge_at(&self, position: PlanPosition) -> EvaluatedCharge<'_> {
        let (role, status) = match self.positions.find(position) {
            None => (ChargeRole::Skipped, None),
            Some(Evaluated::Enforced(index)) => {
                (ChargeRole::Enforced, self.evaluation.statuses.get(index))
            }
            Some(Evaluated::Counted(index)) => {
                let shadow = self.shadow.as_ref();
                (ChargeRole::Counted, shadow.and_then(|shadow| shadow.statuses.get(index)))
            }
        };
        let mut overrides = self.overrides.iter();
        let mut candidates = self.candidates.iter();
        EvaluatedCharge {
            role,
            status,
            applied_override: overrides.find(|applied| applied.position == position),
            candidate: candidates.find(|outcome| outcome.position == position),
        }
    }

    /// Returns the index in [`evaluation`](Self::evaluation) of the status of the charge at `position`,
    /// if its limit decided and the store or a fallback answered.
    #[must_use]
    pub fn status_index(&self, position: PlanPosition) -> Option<usize> {
        match self.positions.find(position)? {
            Evaluated::Enforced(index) => (index < self.evaluation.statuses.len()).then_some(index),
            Evaluated::Counted(_) => None,
        }
    }

    /// Updates the evaluation of an admitted request to the status that its client receives with
    /// the response, which is known at `now`.
    ///
    /// Computed from the decision's own readings, without a second store call: adds charges that
    /// turned out free, and subtracts charges that were looked at and are made now. Never below 0.
    pub fn settle(&mut self, settlement: Settlement, now: Timestamp) {
        let charge = self.charge;
        let settled =
            |status: LimitStatus| match (is_charged_later(charge, &status.limit), settlement) {
                (false, Settlement::Free) => status.refunded(),
                (true, Settlement::Charged) => status.charged(now),
                (false, Settlement::Charged) | (true, Settlement::Free) => status,
            };
        let statuses = std::mem::take(&mut self.evaluation.statuses);
        self.evaluation.statuses = statuses.into_iter().map(settled).collect();
    }
}

impl CandidateOutcome {
    /// The limit in force.
    #[must_use]
    pub const fn limit(&self) -> &Arc<Limit> {
        &self.live.limit
    }
}

impl Pending {
    /// Returns the charges `planned`; `None` if none of them costs anything.
    pub(crate) fn new(mut planned: Vec<PlannedCharge>) -> Option<Self> {
        planned.retain(|planned| planned.cost != Cost::PEEK);
        (!planned.is_empty()).then_some(Self { planned })
    }
}

/// Whether `limit` is only looked at on arrival and charged when the response is known.
pub(crate) fn is_charged_later(charge: ChargeOn, limit: &Limit) -> bool {
    charge == ChargeOn::Completion && !limit.is_charged_on_arrival()
}
