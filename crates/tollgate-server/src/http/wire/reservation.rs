//! The JSON documents in the requests and responses for reservations.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate::model::LimitStatus;

use super::charge::LimitCharge;
use super::decision::{LimitStatusBody, each};
use super::facts::RequestFacts;
use super::given;
use super::units::Units;
use crate::http::json::Object;

/// One reservation, all or nothing. Its charges have the form of a check.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [{ "required": ["limits"] }, { "required": ["request"] }]))]
pub(in crate::http) struct ReserveRequest<'a> {
    /// Limits by their names. Either all are reserved or none.
    #[serde(borrow, default, deserialize_with = "given")]
    #[schemars(with = "Vec<LimitCharge<'_>>", length(min = 1, max = 32))]
    pub(in crate::http) limits: Option<Vec<Object<LimitCharge<'a>>>>,
    /// The attributes of a request, to which the policy's rules are applied.
    #[serde(borrow, default, deserialize_with = "given")]
    #[schemars(with = "RequestFacts<'_>")]
    pub(in crate::http) request: Option<Object<RequestFacts<'a>>>,
    /// The duration of the reservation in milliseconds, unless it is settled before. By default,
    /// the longest that each limit allows.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Units")]
    pub(in crate::http) ttl_ms: Option<Units>,
}

/// An extension of a reservation.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct ExtendRequest<'a> {
    /// The receipt from the response to the reservation or to its last extension.
    #[serde(borrow)]
    #[schemars(length(min = 1))]
    pub(in crate::http) receipt: Cow<'a, str>,
    /// The new duration in milliseconds from now. By default, the longest that each limit allows.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Units")]
    pub(in crate::http) ttl_ms: Option<Units>,
}

/// The actual cost of a reserved request.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [{ "required": ["cost"] }, { "required": ["limits"] }]))]
pub(in crate::http) struct SettleRequest<'a> {
    /// The receipt from the response to the reservation or to its last extension.
    #[serde(borrow)]
    #[schemars(length(min = 1))]
    pub(in crate::http) receipt: Cow<'a, str>,
    /// The actual cost in whole units. It is the same on every limit of the reservation.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Units")]
    pub(in crate::http) cost: Option<Units>,
    /// Limits with their actual costs. On every other limit, the cost is the units that are
    /// reserved on it.
    #[serde(borrow, default, deserialize_with = "given")]
    #[schemars(with = "Vec<ActualCost<'_>>", length(min = 1, max = 32))]
    pub(in crate::http) limits: Option<Vec<Object<ActualCost<'a>>>>,
}

/// The actual cost of a request on one limit.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct ActualCost<'a> {
    /// The limit's name in the policy.
    #[serde(borrow)]
    #[schemars(length(min = 1, max = 64))]
    pub(in crate::http) name: Cow<'a, str>,
    /// The actual cost on this limit, in whole units.
    pub(in crate::http) cost: Units,
}

/// The result of an extension.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::http) struct ExtendResponse<'a> {
    /// Whether the reservation was still open on every limit.
    pub(in crate::http) outcome: ExtendOutcome,
    /// The version of the current policy.
    pub(in crate::http) policy: &'a str,
    /// The time at which the first of the reservations now ends, in milliseconds since the Unix
    /// epoch. Left out if nothing was extended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub(in crate::http) expires_at_ms: Option<u64>,
    /// The receipt to use from now on. Left out if nothing was extended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub(in crate::http) receipt: Option<&'a str>,
    /// The status of each limit.
    #[serde(serialize_with = "each")]
    #[schemars(with = "Vec<LimitStatusBody<'_>>")]
    pub(in crate::http) statuses: &'a [LimitStatus],
}

/// Whether a reservation was extended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::http) enum ExtendOutcome {
    /// The reservation was extended.
    Extended,
    /// The reservation was not extended on every limit: it was settled before, or has expired.
    Unchanged,
    /// The reservation was not extended: the receipt is too old.
    Expired,
}

/// The result of a settlement.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::http) struct SettleResponse<'a> {
    /// Whether there was a reservation to settle.
    pub(in crate::http) outcome: SettleOutcome,
    /// The version of the current policy.
    pub(in crate::http) policy: &'a str,
    /// The limits that were reserved and are still in the policy. Empty for an expired receipt.
    pub(in crate::http) limits: Vec<SettledLimitStatus<'a>>,
}

/// Whether there was a reservation to settle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::http) enum SettleOutcome {
    /// The reservation is settled.
    Settled,
    /// Nothing was changed: the reservation was settled before, or has expired.
    Unchanged,
    /// Nothing was changed: the receipt is too old.
    Expired,
}

/// The settlement of one limit.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::http) struct SettledLimitStatus<'a> {
    /// Reserved units that were refunded.
    pub(in crate::http) refunded: u64,
    /// Units that were charged beyond the reservation, as far as the limit and its overdraft allow.
    pub(in crate::http) added: u64,
    /// The status of the limit after the operation.
    #[serde(flatten)]
    pub(in crate::http) limit_status: LimitStatusBody<'a>,
}
