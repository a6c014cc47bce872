//! The JSON documents in the responses: decisions, the status of limits, and refunds.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use tollgate::limiter::AppliedOverride;
use tollgate::model::{Admission, LimitStatus};
use tollgate::overrides::{Effect, Override};

use super::{HeaderFields, OverrideDetails};

/// The decision of one charge.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::http) struct DecisionResponse<'a> {
    /// Whether the request is admitted. Read this, not the HTTP status: a refusal is a response
    /// with status 200, too.
    pub(in crate::http) admitted: bool,
    /// The source of the decision.
    pub(in crate::http) source: Source,
    /// The reason why the store did not decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "FailureCause")]
    pub(in crate::http) failure: Option<FailureCause>,
    /// The version of the current policy.
    pub(in crate::http) policy: &'a str,
    /// The rules that the request matched, in the policy's order. Empty if the request names
    /// limits.
    pub(in crate::http) rules: &'a [Arc<str>],
    /// The status of each limit, from the same atomic step as the decision. Empty if neither the
    /// store nor the fallback answered.
    #[serde(serialize_with = "each")]
    #[schemars(with = "Vec<LimitStatusBody<'_>>")]
    pub(in crate::http) statuses: &'a [LimitStatus],
    /// The names of the limits that refused.
    #[serde(serialize_with = "names_of_refusals")]
    #[schemars(with = "Vec<String>")]
    pub(in crate::http) refused_by: &'a [LimitStatus],
    /// Milliseconds until every limit that refused would admit the same charge if there are no
    /// other charges until then. Left out if the charge was admitted, or would never be admitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub(in crate::http) retry_after_ms: Option<u64>,
    /// The decision of the rules in shadow mode, and of the limits that are not enforced for these
    /// subjects.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ShadowDecision<'_>")]
    pub(in crate::http) shadow: Option<ShadowDecision<'a>>,
    /// The overrides that replaced limits. Left out if there were none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<OverriddenLimit<'_>>")]
    pub(in crate::http) overrides: Vec<OverriddenLimit<'a>>,
    /// The receipt, to refund the charge. Left out if nothing was charged, and in a minimal
    /// response.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub(in crate::http) receipt: Option<String>,
    /// The header fields of the policy's profiles, to add to your response to the client. Left out
    /// of a minimal response.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "HeaderFields")]
    pub(in crate::http) headers: Option<HeaderFields>,
}

/// The decisions of several charges.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::http) struct BatchResponse<'a> {
    /// One decision for each charge, in the order of the request.
    pub(in crate::http) decisions: Vec<DecisionResponse<'a>>,
}

/// The source of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::http) enum Source {
    /// The store. The source is also `store` if no limit applies to the request.
    Store,
    /// The deny cache of this node, which keeps a refusal of the store or of an override until the
    /// refusal ends.
    DenyCache,
    /// An overflow counter of the full memory store, which several subjects share. It never admits
    /// more than the quota, but it may refuse before the quota of one subject is reached.
    Overflow,
    /// The local fallback: the store did not answer.
    Fallback,
    /// `on_failure` of the policy: neither the store nor the fallback answered.
    Failure,
}

/// The reason why the store did not decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::http) enum FailureCause {
    /// The store has no room for another subject.
    Full,
    /// The store cannot be reached.
    Unavailable,
    /// The store did not answer in time.
    TimedOut,
    /// The response of the store was invalid.
    Corrupt,
}

/// The status of one limit for one subject.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "LimitStatus")]
pub(in crate::http) struct LimitStatusBody<'a> {
    /// The limit's name in the policy.
    pub(in crate::http) name: &'a str,
    /// The name that clients see.
    pub(in crate::http) resource: &'a str,
    /// Whether clients may see the limit. If not, leave it out of your responses.
    pub(in crate::http) visible: bool,
    /// Whether this limit admits the charge. In a status query: whether it would admit one more
    /// unit.
    pub(in crate::http) admits: bool,
    /// The most units that can be used at one moment.
    pub(in crate::http) limit: u64,
    /// Units used, after the charge if it was admitted.
    pub(in crate::http) used: u64,
    /// Units left.
    pub(in crate::http) remaining: u64,
    /// The time from which more units are available, in seconds since the Unix epoch, rounded up.
    pub(in crate::http) reset: u64,
    /// Units that are reserved and not settled yet, or all units in flight for `concurrency`. Left
    /// out if there are none.
    #[serde(skip_serializing_if = "is_nothing")]
    #[schemars(default)]
    pub(in crate::http) reserved: u64,
}

/// The decision of shadow rules, and of limits that are not enforced for these subjects.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::http) struct ShadowDecision<'a> {
    /// Whether these rules and limits would have admitted the charge.
    pub(in crate::http) admitted: bool,
    /// The status of the limits of the shadow decision.
    #[serde(serialize_with = "each")]
    #[schemars(with = "Vec<LimitStatusBody<'_>>")]
    pub(in crate::http) statuses: &'a [LimitStatus],
}

/// A limit that an override replaced. Do not show it to your client.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::http) struct OverriddenLimit<'a> {
    /// The limit's name.
    limit: &'a str,
    /// The effect of the override.
    effect: OverrideEffect,
    /// The end of the override in seconds since the Unix epoch, rounded up; null if it has no end.
    expires: Option<u64>,
    /// The override itself. Only administrators see it, in the status of limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "OverrideDetails")]
    definition: Option<OverrideDetails>,
}

/// The effect of an override.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OverrideEffect {
    /// Another quota applies.
    Quota,
    /// Requests are admitted and not counted.
    Unlimited,
    /// Requests are refused.
    Blocked,
    /// Requests are admitted and counted.
    Counted,
}

impl<'a> OverriddenLimit<'a> {
    /// Returns the document of an override that replaced a limit. `show` returns the part of the
    /// document that only administrators may see.
    pub(in crate::http) fn of(
        applied: &'a AppliedOverride,
        show: impl FnOnce(&Override) -> Option<OverrideDetails>,
    ) -> Self {
        let AppliedOverride { limit, definition, .. } = applied;
        let effect = match definition.effect {
            Effect::Quota { .. } => OverrideEffect::Quota,
            Effect::Unlimited => OverrideEffect::Unlimited,
            Effect::Blocked => OverrideEffect::Blocked,
            Effect::Counted => OverrideEffect::Counted,
        };
        let expires = definition.ends_at();
        Self { limit: limit.name(), effect, expires, definition: show(definition) }
    }
}

/// The status of limits.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::http) struct SubjectStatusResponse<'a> {
    /// The source of the status.
    pub(in crate::http) source: Source,
    /// The version of the current policy.
    pub(in crate::http) policy: &'a str,
    /// The status of each limit.
    #[serde(serialize_with = "each")]
    #[schemars(with = "Vec<LimitStatusBody<'_>>")]
    pub(in crate::http) statuses: &'a [LimitStatus],
    /// The overrides behind this status. Only administrators see them. A limit that an override
    /// lifts for this subject (`unlimited`) has no status.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<OverrideDetails>")]
    pub(in crate::http) overrides: Vec<OverrideDetails>,
}

/// The result of a refund or a release.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::http) struct RefundResponse<'a> {
    /// Whether units were refunded.
    pub(in crate::http) outcome: RefundOutcome,
    /// The version of the current policy.
    pub(in crate::http) policy: &'a str,
    /// The limits that were charged and are still in the policy. Empty for an expired receipt.
    pub(in crate::http) limits: Vec<RefundedLimitStatus<'a>>,
}

/// Whether a receipt refunded units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::http) enum RefundOutcome {
    /// Units were refunded.
    Refunded,
    /// Nothing was refunded: the receipt was used before, or the windows of its charges have ended.
    Unchanged,
    /// Nothing was refunded: the receipt has expired.
    Expired,
}

/// The refund of one limit.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::http) struct RefundedLimitStatus<'a> {
    /// Units that were refunded.
    pub(in crate::http) refunded: u64,
    /// The status of the limit after the operation.
    #[serde(flatten)]
    pub(in crate::http) limit_status: LimitStatusBody<'a>,
}

impl<'a> LimitStatusBody<'a> {
    pub(in crate::http) fn of(limit_status: &'a LimitStatus) -> Self {
        let limit = &limit_status.limit;
        Self {
            name: limit.name(),
            resource: limit.resource(),
            visible: limit_status.is_visible(),
            admits: limit_status.admission == Admission::Now,
            limit: limit.capacity(),
            used: limit_status.used,
            remaining: limit_status.remaining,
            reset: limit_status.resets_at.as_secs_ceil(),
            reserved: limit_status.reserved,
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "what is serialized is lent")]
const fn is_nothing(units: &u64) -> bool {
    *units == 0
}

pub(super) fn each<S: Serializer>(
    statuses: &[LimitStatus],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(statuses.iter().map(LimitStatusBody::of))
}

fn names_of_refusals<S: Serializer>(
    statuses: &[LimitStatus],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let refusals = statuses.iter().filter(|limit_status| limit_status.is_refusal());
    serializer.collect_seq(refusals.map(|limit_status| limit_status.limit.name()))
}
