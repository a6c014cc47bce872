//! The limiter's decision on one request, with the status of each charge that the limiter
//! evaluated.

mod positions;

use std::sync::Arc;

use tollgate_core::policy::ResponseTerms;
pub use tollgate_core::policy::outcome::Settlement;
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
    /// The version of the policy with which the limiter made the decision. Build the response to
    /// the client with the same version.
    pub policy: Arc<Revision>,
    /// The names of the rules that matched, in the policy's order.
    pub rules: Vec<Arc<str>>,
    /// The statuses of the limits that decided. Empty if neither the store nor a fallback answered.
    pub evaluation: Evaluation,
    /// The statuses of charges that are counted and cannot refuse the request: charges of rules in
    /// shadow mode, and charges on limits that are not enforced for their subjects.
    pub shadow: Option<Evaluation>,
    /// For each limit that has a candidate, the comparison of the limit with the candidate. Empty
    /// if a limit without a candidate refused the request.
    pub candidates: Vec<CandidateOutcome>,
    /// The overrides that replaced limits. Empty if neither the store nor a fallback answered.
    pub overrides: Vec<AppliedOverride>,
    /// The component that decided: the store, this node's deny cache, the fallback, or
    /// `on_failure`.
    pub source: DecisionSource,
    /// Whether the request is refused whatever the status of its limits, for example because one of
    /// its descriptors is blocked.
    pub is_blocked: bool,
    /// The `on_failure` of the request's rules, which decides while the store does not answer.
    pub on_failure: OnFailure,
    /// When the request's rules charge: when the request arrives, or when the request is completed.
    pub charge: ChargeOn,
    /// The receipt of the charges, if there are any. If the caller reserved
    /// [everything](crate::limiter::Reservation::All), this is the receipt of the reservation.
    pub receipt: Option<Receipt>,
    /// The receipt of the units that were reserved on
    /// [metered](crate::limiter::Reservation::Metered) limits, if there are any. Settle this
    /// receipt when the response ends.
    pub reserved: Option<Receipt>,
    /// The charges to make once the response is known, if there are any. Pass them to
    /// [`Limiter::complete`](crate::Limiter::complete), unless the policy makes the response free.
    pub pending: Option<Pending>,
    /// The mapping from the statuses of this decision to the charges of the plan.
    /// [`charge_at`](Self::charge_at) uses this mapping.
    pub positions: ChargePositions,
    /// The planned charge of each status in the evaluation. Empty unless at least one of the
    /// charges has a cost that depends on the status code of the response.
    pub conditional: Vec<PlannedCharge>,
}

/// How the limiter evaluated one charge of a plan.
#[derive(Clone, Copy, Debug)]
pub struct EvaluatedCharge<'d> {
    /// Whether the charge could reject the request.
    pub role: ChargeRole,
    /// The status of the charge's limit, if the store or a fallback answered.
    pub status: Option<&'d LimitStatus>,
    /// The override that replaced the charge's limit, if there was such an override.
    pub applied_override: Option<&'d AppliedOverride>,
    /// The comparison of the limit with its candidate, if the candidate was evaluated.
    pub candidate: Option<&'d CandidateOutcome>,
}

/// Whether a charge could reject the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChargeRole {
    /// The limit of the charge was enforced.
    Enforced,
    /// The charge was counted and could not refuse the request, because its rule is in shadow mode
    /// or its limit is not enforced for its subject.
    Counted,
    /// The charge was not sent to the store, because an override lifts its limit or blocks the
    /// request.
    Skipped,
}

/// A limit and its candidate, both evaluated for the same request.
#[derive(Clone, Debug)]
pub struct CandidateOutcome {
    /// The position, in the request's plan, of the charge for which the limit and its candidate
    /// were evaluated.
    pub position: PlanPosition,
    /// The status of the limit in force.
    pub live: LimitStatus,
    /// The status of the limit's candidate, which has counters of its own.
    pub candidate: LimitStatus,
}

/// An override that replaced a limit of the policy.
#[derive(Clone, Debug)]
pub struct AppliedOverride {
    /// The position, in the request's plan, of the charge whose limit the override replaced.
    pub position: PlanPosition,
    /// The limit as the policy defines it.
    pub limit: Arc<Limit>,
    /// The override that replaced the limit.
    pub definition: Arc<Override>,
}

/// Charges that are made when an admitted request is completed. When the request arrived, the
/// limiter only read the status of their limits.
///
/// Not `Clone`, because a charge is made once. Dropping the value makes no charge, which is correct
/// only if the response is free.
#[derive(Debug)]
#[must_use = "a request that was only looked at is not charged unless it is completed"]
pub struct Pending {
    pub(crate) planned: Vec<PlannedCharge>,
}

/// The result of making a request's charges when the request is completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// Every limit was charged.
    Charged,
    /// Other requests filled a limit while the request was in flight. The limiter did not charge
    /// that limit, and charged the other limits. If a further limit was filled before the limiter
    /// charged the other limits, no limit was charged.
    Overrun,
}

impl Decision {
    /// Returns whether the request is admitted.
    #[must_use]
    pub fn is_admitted(&self) -> bool {
        if self.is_blocked {
            return false;
        }
        match self.source {
            DecisionSource::Store
            | DecisionSource::DenyCache
            | DecisionSource::Overflow
            | DecisionSource::Fallback(_) => self.evaluation.is_admitted(),
            DecisionSource::Failure(_) => self.on_failure != OnFailure::Deny,
        }
    }

    /// Returns whether neither the store nor a fallback answered.
    pub(crate) fn is_unanswered(&self) -> bool {
        matches!(self.source, DecisionSource::Failure(_)) && self.evaluation.statuses.is_empty()
    }

    /// Returns how the limiter evaluated the charge at `position` of the plan.
    ///
    /// `position` refers to the plan that the caller passed to the limiter, or to the plan that
    /// [`Policy::plan_named`](tollgate_core::Policy::plan_named) returned. For example,
    /// `Enforced(0)` is the first element of
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

    /// Returns the index in [`evaluation`](Self::evaluation) of the status of the charge at
    /// `position`. Returns `None` if the limit of the charge did not decide, or if neither the
    /// store nor a fallback answered.
    #[must_use]
    pub fn status_index(&self, position: PlanPosition) -> Option<usize> {
        match self.positions.find(position)? {
            Evaluated::Enforced(index) => (index < self.evaluation.statuses.len()).then_some(index),
            Evaluated::Counted(_) => None,
        }
    }

    /// Returns the index in [`shadow`](Self::shadow) of the status of the charge at `position`.
    /// Returns `None` if the charge was not counted, or if neither the store nor a fallback
    /// answered.
    #[must_use]
    pub fn shadow_index(&self, position: PlanPosition) -> Option<usize> {
        match self.positions.find(position)? {
            Evaluated::Enforced(_) => None,
            Evaluated::Counted(index) => {
                (index < self.shadow.as_ref()?.statuses.len()).then_some(index)
            }
        }
    }

    /// Updates the evaluation of an admitted request to the status that its client receives with
    /// the response. `now` is the time at which the response became known.
    ///
    /// The update is computed from the readings of this decision, without a second store call. The
    /// units of charges that turned out to be free are added to the remaining units. The units of
    /// charges that were only read on arrival, and are made on completion, are subtracted. The
    /// remaining units never fall below 0.
    pub fn settle(&mut self, settlement: Settlement, now: Timestamp) {
        let mut conditional = self.conditional.iter();
        let statuses = std::mem::take(&mut self.evaluation.statuses);
        let settled = |mut status: LimitStatus| {
            let (kept, is_later) = match conditional.next() {
                Some(planned) => {
                    (kept_of(planned, settlement), is_planned_later(self.charge, planned))
                }
                None => (
                    settlement.kept(status.cost, &[], &[], |_| None),
                    is_charged_later(self.charge, &status.limit),
                ),
            };
            let refunded = status.cost.get().saturating_sub(kept.get());
            match is_later {
                false => status.refunded_by(refunded),
                true if kept == Cost::PEEK => status,
                true => {
                    status.cost = kept;
                    status.charged(now)
                }
            }
        };
        self.evaluation.statuses = statuses.into_iter().map(settled).collect();
    }

    /// Returns whether a response with the effect `settlement` refunds at least a part of a charge
    /// in the evaluation.
    pub(crate) fn is_refunded(&self, settlement: Settlement) -> bool {
        if self.conditional.is_empty() {
            return !settlement.keeps(&ResponseTerms::default());
        }
        self.conditional.iter().any(|planned| kept_of(planned, settlement) != planned.cost)
    }

    /// Returns the effect that a response with the status code `status` has on the request's
    /// charges. The policy that made this decision determines the effect.
    #[must_use]
    pub fn settlement(&self, status: u16) -> Settlement {
        let is_free = self.policy.answers().refund_statuses.contains(&status);
        Settlement::Status { status, is_free }
    }
}

impl CandidateOutcome {
    /// Returns the limit in force, which is not the candidate.
    #[must_use]
    pub const fn limit(&self) -> &Arc<Limit> {
        &self.live.limit
    }
}

impl Pending {
    /// Creates a value with the charges of `planned` that have a cost. Returns `None` if no charge
    /// has a cost.
    pub(crate) fn new(mut planned: Vec<PlannedCharge>) -> Option<Self> {
        planned.retain(|planned| planned.cost != Cost::PEEK);
        (!planned.is_empty()).then_some(Self { planned })
    }

    /// Returns the charges that are still to be made if the response has the effect `settlement`,
    /// or `None` if no charge is to be made.
    #[must_use]
    pub fn settled(mut self, settlement: Settlement) -> Option<Self> {
        for planned in &mut self.planned {
            planned.cost = kept_of(planned, settlement);
        }
        Self::new(self.planned)
    }
}

/// Returns the units of `planned` that remain charged if the response has the effect `settlement`.
fn kept_of(planned: &PlannedCharge, settlement: Settlement) -> Cost {
    settlement.kept(planned.cost, &planned.estimates, &planned.conditions, |_| None)
}

/// Returns whether the limit of `planned` is only read when the request arrives, and charged when
/// the response is known. A limit that counts statuses is always charged on arrival, so concurrent
/// requests cannot exceed the limit.
pub(crate) fn is_planned_later(charge: ChargeOn, planned: &PlannedCharge) -> bool {
    is_charged_later(charge, &planned.limit) && !planned.counts_statuses()
}

/// Returns whether the rules, which charge at the time `charge`, charge `limit` only when the
/// response is known. In this case the limit is only read when the request arrives.
fn is_charged_later(charge: ChargeOn, limit: &Limit) -> bool {
    charge == ChargeOn::Completion && !limit.is_charged_on_arrival()
}
