//! What is answered.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use tollgate::core::{Admission, LimitStatus};
use tollgate::limiter::AppliedOverride;
use tollgate::overrides::{Effect, Override};

use super::{HeaderFields, OverrideDetails};

/// The decision of one charge.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::http) struct DecisionResponse<'a> {
    /// Whether it may pass. Read this, not the status: a refusal is an answer like any other.
    pub(in crate::http) admitted: bool,
    /// Who decided.
    pub(in crate::http) source: Source,
    /// Why the store did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "FailureCause")]
    pub(in crate::http) failure: Option<FailureCause>,
    /// The version of the policy in force.
    pub(in crate::http) policy: &'a str,
    /// The rules that the request met, in the policy's order; none for limits by their names.
    pub(in crate::http) rules: &'a [Arc<str>],
    /// The status of each limit, from the same atomic step as the decision; empty if there is none.
    #[serde(serialize_with = "each")]
    #[schemars(with = "Vec<LimitStatusBody<'_>>")]
    pub(in crate::http) statuses: &'a [LimitStatus],
    /// The names of the limits that refused.
    #[serde(serialize_with = "names_of_refusals")]
    #[schemars(with = "Vec<String>")]
    pub(in crate::http) refused_by: &'a [LimitStatus],
    /// Milliseconds until every limit that refused admits the same charge, if nobody else charges
    /// meanwhile. Left out if it was admitted, or never will be.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub(in crate::http) retry_after_ms: Option<u64>,
    /// What the rules in shadow mode would have said, and limits that are not enforced for these
    /// subjects.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ShadowDecision<'_>")]
    pub(in crate::http) shadow: Option<ShadowDecision<'a>>,
    /// Overrides that replaced limits; left out if none did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<OverriddenLimit<'_>>")]
    pub(in crate::http) overrides: Vec<OverriddenLimit<'a>>,
    /// With it the charge can be given back. Left out if nothing was charged, and of a minimal answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub(in crate::http) receipt: Option<String>,
    /// The header fields that the policy's profiles tell your client, to be added to your answer.
    /// Left out of a minimal answer.
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

/// Who decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::http) enum Source {
    /// The store, or nobody because no limit applies.
    Store,
    /// The deny cache of this node, which knows until when the store or an override refuses.
    DenyCache,
    /// An overflow counter of the full memory store, shared by several subjects: never beyond the quota, but it
    /// may refuse before the quota is reached.
    Overflow,
    /// The local fallback: the store did not answer.
    Fallback,
    /// `on_failure` of the policy: neither the store nor the fallback answered.
    Failure,
}

/// Why the store had no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::http) enum FailureCause {
    /// It has no room for another subject.
    Full,
    /// It cannot be reached.
    Unavailable,
    /// It did not answer in time.
    TimedOut,
    /// It answered what makes no sense.
    Corrupt,
}

/// The status of one limit for one subject.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "LimitStatus")]
pub(in crate::http) struct LimitStatusBody<'a> {
    /// The limit's name in the policy.
    pub(in crate::http) name: &'a str,
    /// The name under which clients see it.
    pub(in crate::http) resource: &'a str,
    /// Whether clients are told of it. Do not tell them of one that is not.
    pub(in crate::http) visible: bool,
    /// Whether it admits the charge by itself.
    pub(in crate::http) admits: bool,
    /// The most units that can be used at one moment.
    pub(in crate::http) limit: u64,
    /// Units used, after the charge if it was admitted.
    pub(in crate::http) used: u64,
    /// Units left.
    pub(in crate::http) remaining: u64,
    /// The second of the Unix epoch from which there is more, rounded up.
    pub(in crate::http) reset: u64,
    /// Units that are reserved and not settled yet; of a limit of concurrency all that is in flight.
    /// Left out if there are none.
    #[serde(skip_serializing_if = "is_nothing")]
    #[schemars(default)]
    pub(in crate::http) reserved: u64,
}

/// The decision of shadow rules, and of limits that are not enforced for these subjects.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::http) struct ShadowDecision<'a> {
    /// Whether they would have admitted it.
    pub(in crate::http) admitted: bool,
    /// The status of their limits.
    #[serde(serialize_with = "each")]
    #[schemars(with = "Vec<LimitStatusBody<'_>>")]
    pub(in crate::http) statuses: &'a [LimitStatus],
}

/// A limit that an override replaced. Do not tell your client.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::http) struct OverriddenLimit<'a> {
    /// The limit's name.
    limit: &'a str,
    /// What was decided instead.
    effect: OverrideEffect,
    /// The second of the Unix epoch at which the override is over, rounded up.
    expires: u64,
    /// The override itself; only administrators are told, where they look at how limits stand.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "OverrideDetails")]
    definition: Option<OverrideDetails>,
}

/// What an override decides.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OverrideEffect {
    /// By another quota.
    Quota,
    /// They pass, and nothing is counted.
    Unlimited,
    /// They do not pass.
    Blocked,
    /// They pass, and are counted.
    Counted,
}

impl<'a> OverriddenLimit<'a> {
    /// An override that replaced a limit. `show` returns what administrators may see of it.
    pub(in crate::http) fn of(
        applied: &'a AppliedOverride,
        show: impl FnOnce(&Override) -> Option<OverrideDetails>,
    ) -> Self {
        let AppliedOverride { limit, said, .. } = applied;
        let effect = match said.effect {
            Effect::Quota { .. } => OverrideEffect::Quota,
            Effect::Unlimited => OverrideEffect::Unlimited,
            Effect::Blocked => OverrideEffect::Blocked,
            Effect::Counted => OverrideEffect::Counted,
        };
        let expires = said.expires_at.as_secs_ceil();
        Self { limit: limit.name(), effect, expires, definition: show(said) }
    }
}

/// The status of limits.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::http) struct SubjectStatusResponse<'a> {
    /// Who says so.
    pub(in crate::http) source: Source,
    /// The version of the policy in force.
    pub(in crate::http) policy: &'a str,
    /// The status of each limit.
    #[serde(serialize_with = "each")]
    #[schemars(with = "Vec<LimitStatusBody<'_>>")]
    pub(in crate::http) statuses: &'a [LimitStatus],
    /// The overrides that say so; only administrators are told. Whom one lets pass unlimited has
    /// no status.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<OverrideDetails>")]
    pub(in crate::http) overrides: Vec<OverrideDetails>,
}

/// What a receipt did.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::http) struct RefundResponse<'a> {
    /// Whether it gave something back.
    pub(in crate::http) outcome: RefundOutcome,
    /// The version of the policy in force.
    pub(in crate::http) policy: &'a str,
    /// Each limit that was charged and still is in the policy; none of an expired receipt.
    pub(in crate::http) limits: Vec<RefundedLimitStatus<'a>>,
}

/// Whether a receipt refunded units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::http) enum RefundOutcome {
    /// It did.
    Refunded,
    /// It did not: it was refunded before, or its windows are over.
    Unchanged,
    /// It did not: all that it proves is over by now.
    Expired,
}

/// The refund of one limit.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::http) struct RefundedLimitStatus<'a> {
    /// Units that were refunded.
    pub(in crate::http) refunded: u64,
    /// Its status after that.
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
    standings: &[LimitStatus],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(standings.iter().map(LimitStatusBody::of))
}

fn names_of_refusals<S: Serializer>(
    standings: &[LimitStatus],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let refusals = standings.iter().filter(|limit_status| limit_status.is_refusal());
    serializer.collect_seq(refusals.map(|limit_status| limit_status.limit.name()))
}
