//! What is answered.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use tollgate::core::{Admission, Limit, LimitStatus};
use tollgate::limiter::Overrule;
use tollgate::overrides::{Effect, Override};

use super::{HeaderFields, OverrideShown};

/// What became of one charge.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::http) struct VerdictAnswer<'a> {
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
    /// How each limit stands, from the same atomic step as the verdict; none if nobody could say.
    #[serde(serialize_with = "each")]
    #[schemars(with = "Vec<LimitStanding<'_>>")]
    pub(in crate::http) standings: &'a [LimitStatus],
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
    #[schemars(with = "ShadowVerdict<'_>")]
    pub(in crate::http) shadow: Option<ShadowVerdict<'a>>,
    /// Overrides that decided in the place of limits; left out if none did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<OverruledLimit<'_>>")]
    pub(in crate::http) overrides: Vec<OverruledLimit<'a>>,
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

/// What became of several charges.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::http) struct BatchAnswer<'a> {
    /// One verdict for each charge, in the order in which they were asked.
    pub(in crate::http) verdicts: Vec<VerdictAnswer<'a>>,
}

/// Who decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::http) enum Source {
    /// The store, or nobody because no limit applies.
    Store,
    /// This node, which remembers until when the store refused, or until when nobody may pass.
    Remembered,
    /// What stands in for the store, which had no answer.
    Fallback,
    /// The policy's word for when nothing has an answer.
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

/// How one limit stands for one subject.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::http) struct LimitStanding<'a> {
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
    pub(in crate::http) held: u64,
}

/// What those would have said that only count.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::http) struct ShadowVerdict<'a> {
    /// Whether they would have admitted it.
    pub(in crate::http) admitted: bool,
    /// How their limits stand.
    #[serde(serialize_with = "each")]
    #[schemars(with = "Vec<LimitStanding<'_>>")]
    pub(in crate::http) standings: &'a [LimitStatus],
}

/// A limit in whose place an override decided. Do not tell your client.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::http) struct OverruledLimit<'a> {
    /// The limit's name.
    limit: &'a str,
    /// What was decided instead.
    effect: OverrideEffect,
    /// The second of the Unix epoch at which the override is over, rounded up.
    expires: u64,
    /// The override itself; only administrators are told, where they look at how limits stand.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "OverrideShown")]
    said: Option<OverrideShown>,
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

impl<'a> OverruledLimit<'a> {
    pub(in crate::http) fn of(overrule: &'a Overrule) -> Self {
        Self::by(&overrule.limit, &overrule.said, None)
    }

    /// That `found` decides in the place of `limit`; whoever may know it is told what was `said`.
    pub(in crate::http) fn by(
        limit: &'a Limit,
        found: &Override,
        said: Option<OverrideShown>,
    ) -> Self {
        let effect = match found.effect {
            Effect::Quota { .. } => OverrideEffect::Quota,
            Effect::Unlimited => OverrideEffect::Unlimited,
            Effect::Blocked => OverrideEffect::Blocked,
            Effect::Counted => OverrideEffect::Counted,
        };
        Self { limit: limit.name(), effect, expires: found.expires_at.as_secs_ceil(), said }
    }
}

/// How limits stand.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::http) struct StandingAnswer<'a> {
    /// Who says so.
    pub(in crate::http) source: Source,
    /// The version of the policy in force.
    pub(in crate::http) policy: &'a str,
    /// How each limit stands.
    #[serde(serialize_with = "each")]
    #[schemars(with = "Vec<LimitStanding<'_>>")]
    pub(in crate::http) standings: &'a [LimitStatus],
    /// The overrides that say so; only administrators are told. OverrideTarget one lets pass unlimited has
    /// no limit_status.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<OverrideShown>")]
    pub(in crate::http) overrides: Vec<OverrideShown>,
}

/// What a receipt did.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::http) struct RefundAnswer<'a> {
    /// Whether it gave something back.
    pub(in crate::http) outcome: Outcome,
    /// The version of the policy in force.
    pub(in crate::http) policy: &'a str,
    /// Each limit that was charged and still is in the policy; none of an expired receipt.
    pub(in crate::http) limits: Vec<RefundedLimit<'a>>,
}

/// Whether a receipt gave something back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::http) enum Outcome {
    /// It did.
    GivenBack,
    /// It did not: it was given back before, or its windows are over.
    Unchanged,
    /// It did not: all that it proves is over by now.
    Expired,
}

/// What one limit got back.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::http) struct RefundedLimit<'a> {
    /// Units that it got back.
    pub(in crate::http) given_back: u64,
    /// How it stands after that.
    #[serde(flatten)]
    pub(in crate::http) limit_status: LimitStanding<'a>,
}

impl<'a> LimitStanding<'a> {
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
            held: limit_status.reserved,
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
    serializer.collect_seq(standings.iter().map(LimitStanding::of))
}

fn names_of_refusals<S: Serializer>(
    standings: &[LimitStatus],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let refusals = standings.iter().filter(|limit_status| limit_status.is_refusal());
    serializer.collect_seq(refusals.map(|limit_status| limit_status.limit.name()))
}
