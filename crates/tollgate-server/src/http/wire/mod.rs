//! The JSON documents that the HTTP API reads and writes: their members, without the code that uses
//! them.

mod charge;
mod decision;
mod facts;
mod fields;
mod overrides;
mod reservation;
mod tenants;
mod units;

pub(in crate::http) use charge::{
    BatchRequest, CheckRequest, LimitCharge, MAX_CHECKS, MAX_LIMITS, RefundRequest, ReleaseRequest,
};
pub(in crate::http) use decision::{
    BatchResponse, DecisionResponse, FailureCause, LimitStatusBody, OverriddenLimit, RefundOutcome,
    RefundResponse, RefundedLimitStatus, ShadowDecision, Source, SubjectStatusResponse,
};
pub(in crate::http) use facts::RequestFacts;
pub(in crate::http) use fields::HeaderFields;
pub(in crate::http) use overrides::{
    OverrideDetails, OverrideLocation, OverrideRequest, OverrideResponse, OverridesResponse,
};
pub(in crate::http) use reservation::{
    ActualCost, ExtendOutcome, ExtendRequest, ExtendResponse, ReserveRequest, SettleOutcome,
    SettleRequest, SettleResponse, SettledLimitStatus,
};
pub(in crate::http) use tenants::{
    ImportResponse, TenantDetails, TenantLine, TenantLocation, TenantRequest, TenantResponse,
    TenantsResponse,
};
pub(in crate::http) use units::Units;

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};

/// A text that borrows from the document if it contains no escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// Deserializes a member that is optional but must not be `null`.
pub(in crate::http) fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}
