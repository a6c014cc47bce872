//! Reservations: what is asked, and what is answered.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate::core::LimitStatus;

use super::charge::LimitCharge;
use super::facts::RequestFacts;
use super::given;
use super::units::Units;
use super::verdict::{LimitStatusBody, each};
use crate::http::json::Object;

/// One charge that is held, all or nothing, as a check says it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [{ "required": ["limits"] }, { "required": ["request"] }]))]
pub(in crate::http) struct ReserveRequest<'a> {
    /// Limits by their names, reserved together or not at all.
    #[serde(borrow, default, deserialize_with = "given")]
    #[schemars(with = "Vec<LimitCharge<'_>>", length(min = 1, max = 32))]
    pub(in crate::http) limits: Option<Vec<Object<LimitCharge<'a>>>>,
    /// A request as the policy's rules see it.
    #[serde(borrow, default, deserialize_with = "given")]
    #[schemars(with = "RequestFacts<'_>")]
    pub(in crate::http) request: Option<Object<RequestFacts<'a>>>,
    /// How many milliseconds the reservation lasts, unless it is settled before. As long as each limit lets it
    /// if it is left out.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Units")]
    pub(in crate::http) ttl_ms: Option<Units>,
}

/// A reservation that is to last longer.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct ExtendRequest<'a> {
    /// The receipt, as the reservation's answer or the last extension's gave it.
    #[serde(borrow)]
    #[schemars(length(min = 1))]
    pub(in crate::http) receipt: Cow<'a, str>,
    /// Milliseconds from now. As long as each limit lets it if it is left out.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Units")]
    pub(in crate::http) ttl_ms: Option<Units>,
}

/// What a request really cost that was reserved.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [{ "required": ["cost"] }, { "required": ["limits"] }]))]
pub(in crate::http) struct SettleRequest<'a> {
    /// The receipt, as the reservation's answer or the last extension's gave it.
    #[serde(borrow)]
    #[schemars(length(min = 1))]
    pub(in crate::http) receipt: Cow<'a, str>,
    /// Whole units, of every limit that was reserved.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Units")]
    pub(in crate::http) cost: Option<Units>,
    /// Limits with their real costs; the others cost what they hold.
    #[serde(borrow, default, deserialize_with = "given")]
    #[schemars(with = "Vec<ActualCost<'_>>", length(min = 1, max = 32))]
    pub(in crate::http) limits: Option<Vec<Object<ActualCost<'a>>>>,
}

/// What a request really cost of one limit.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct ActualCost<'a> {
    /// The limit's name in the policy.
    #[serde(borrow)]
    #[schemars(length(min = 1, max = 64))]
    pub(in crate::http) name: Cow<'a, str>,
    /// Whole units.
    pub(in crate::http) cost: Units,
}

/// What an extension did.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::http) struct ExtendResponse<'a> {
    /// Whether every limit still held it.
    pub(in crate::http) outcome: ExtendOutcome,
    /// The version of the policy in force.
    pub(in crate::http) policy: &'a str,
    /// The millisecond of the Unix epoch at which the first of them ends now. Left out if nothing was
    /// put off.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub(in crate::http) expires_at_ms: Option<u64>,
    /// The receipt to use from now on. Left out if nothing was put off.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub(in crate::http) receipt: Option<&'a str>,
    /// The status of each limit.
    #[serde(serialize_with = "each")]
    #[schemars(with = "Vec<LimitStatusBody<'_>>")]
    pub(in crate::http) statuses: &'a [LimitStatus],
}

/// Whether a reservation was put off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::http) enum ExtendOutcome {
    /// It was.
    Extended,
    /// Not on every limit: it was settled before, or ran out.
    Unchanged,
    /// It was not: the receipt is too old.
    Expired,
}

/// What a settlement did.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::http) struct SettleResponse<'a> {
    /// Whether there was anything to settle.
    pub(in crate::http) outcome: SettleOutcome,
    /// The version of the policy in force.
    pub(in crate::http) policy: &'a str,
    /// Each limit that was reserved and still is in the policy; none of an expired receipt.
    pub(in crate::http) limits: Vec<SettledLimitStatus<'a>>,
}

/// Whether there was anything to settle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::http) enum SettleOutcome {
    /// There was, and it is.
    Settled,
    /// There was not: it was settled before, or ran out.
    Unchanged,
    /// There was not: the receipt is too old.
    Expired,
}

/// What a settlement did to one limit.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::http) struct SettledLimitStatus<'a> {
    /// Units that were refunded of the reservation.
    pub(in crate::http) refunded: u64,
    /// Units that were charged beyond the reservation, as far as the limit and its overdraft allow.
    pub(in crate::http) added: u64,
    /// Its status after that.
    #[serde(flatten)]
    pub(in crate::http) limit_status: LimitStatusBody<'a>,
}
