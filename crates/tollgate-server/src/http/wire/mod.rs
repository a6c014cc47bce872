//! The documents that go over the wire, and nothing of what they do.

mod charge;
mod facts;
mod fields;
mod overrides;
mod reservation;
mod units;
mod verdict;

pub(in crate::http) use charge::{
    BatchRequest, CheckRequest, LimitCharge, MAX_CHECKS, MAX_LIMITS, RefundRequest,
};
pub(in crate::http) use facts::RequestFacts;
pub(in crate::http) use fields::HeaderFields;
pub(in crate::http) use overrides::{
    KeptIn, OverrideAnswer, OverrideRequest, OverrideShown, OverridesAnswer,
};
pub(in crate::http) use reservation::{
    ExtendAnswer, ExtendOutcome, ExtendRequest, RealCost, ReserveRequest, SettleAnswer,
    SettleOutcome, SettleRequest, SettledAnswer,
};
pub(in crate::http) use units::Units;
pub(in crate::http) use verdict::{
    BatchAnswer, FailureCause, LimitStanding, Outcome, OverruledLimit, RefundAnswer, RefundedLimit,
    ShadowVerdict, Source, StandingAnswer, VerdictAnswer,
};

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};

/// A text that is borrowed from the document unless it holds escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// A member that may be left out, and that is not `null` when it is there.
pub(in crate::http) fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}
