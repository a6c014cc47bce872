//! The JSON documents in the requests and responses of `/v1/overrides`.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate::overrides::SheddingTarget;

use super::charge::SubjectValues;
use super::given;
use super::units::Units;
use crate::http::redaction::RedactedSubject;

/// An override to set: for a subject, a group, all subjects, a rule or load shedding, with a quota,
/// unlimited, blocked or counted.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("allOf" = [
    { "oneOf": [
        { "required": ["subject"] }, { "required": ["group"] }, { "required": ["everybody"] },
        { "required": ["rule"] }, { "required": ["shedding"] },
    ] },
    { "oneOf": [
        { "required": ["quota"] }, { "required": ["unlimited"] },
        { "required": ["blocked"] }, { "required": ["counted"] },
    ] },
]))]
pub(in crate::http) struct OverrideRequest<'a> {
    /// The name of the only limit that the override applies to. Without a name, the override
    /// applies to every limit that counts by these subjects.
    #[serde(borrow, default, deserialize_with = "given")]
    #[schemars(with = "String", length(min = 1, max = 64))]
    pub(in crate::http) limit: Option<Cow<'a, str>>,
    /// One subject: for each subject that the limit counts by, a value or its keyed hash, `#` and
    /// 32 hexadecimal digits.
    #[serde(borrow, default, deserialize_with = "given")]
    #[schemars(with = "SubjectValues<'_>")]
    pub(in crate::http) subject: Option<SubjectValues<'a>>,
    /// All subjects with this one value, or with an address in this network.
    #[serde(borrow, default, deserialize_with = "given")]
    #[schemars(with = "SubjectValues<'_>")]
    pub(in crate::http) group: Option<SubjectValues<'a>>,
    /// All subjects: a kill switch of the limit.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "bool", extend("const" = true))]
    pub(in crate::http) everybody: Option<bool>,
    /// All requests that match the rule of this name: a kill switch of the rule, with `unlimited`
    /// or `counted`.
    #[serde(borrow, default, deserialize_with = "given")]
    #[schemars(with = "String", length(min = 1, max = 64))]
    pub(in crate::http) rule: Option<Cow<'a, str>>,
    /// All requests that this kind of load shedding would refuse: a kill switch, with `unlimited`
    /// or `counted`.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "ShedderName")]
    pub(in crate::http) shedding: Option<ShedderName>,
    /// The quota of one limit, in units per window.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Units")]
    pub(in crate::http) quota: Option<Units>,
    /// The burst of a token bucket.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Units")]
    pub(in crate::http) burst: Option<Units>,
    /// Requests are admitted and not counted.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "bool", extend("const" = true))]
    pub(in crate::http) unlimited: Option<bool>,
    /// Requests are refused.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "bool", extend("const" = true))]
    pub(in crate::http) blocked: Option<bool>,
    /// Requests are admitted and counted, as by a rule in shadow mode.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "bool", extend("const" = true))]
    pub(in crate::http) counted: Option<bool>,
    /// The duration: a number of seconds, minutes, hours or days such as `90s`, `15m`, `12h` or
    /// `7d`, at most 366 days; or `never` for an override without an end.
    #[serde(borrow)]
    #[schemars(regex(pattern = "^([1-9][0-9]{0,7}[smhd]|never)$"))]
    pub(in crate::http) expires_in: Cow<'a, str>,
    /// The reason, for administrators. Clients never see it.
    #[serde(borrow)]
    #[schemars(length(min = 1, max = 500))]
    pub(in crate::http) reason: Cow<'a, str>,
}

/// A kind of load shedding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::http) enum ShedderName {
    /// All kinds.
    All,
    /// Load shedding by the requests in flight of all nodes together.
    Fleet,
    /// Load shedding by the load of each node.
    Worker,
}

impl From<ShedderName> for SheddingTarget {
    fn from(name: ShedderName) -> Self {
        match name {
            ShedderName::All => Self::All,
            ShedderName::Fleet => Self::Fleet,
            ShedderName::Worker => Self::Worker,
        }
    }
}

impl From<SheddingTarget> for ShedderName {
    fn from(shedder: SheddingTarget) -> Self {
        match shedder {
            SheddingTarget::All => Self::All,
            SheddingTarget::Fleet => Self::Fleet,
            SheddingTarget::Worker => Self::Worker,
        }
    }
}

/// An override.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(in crate::http) struct OverrideDetails {
    /// The only limit that the override applies to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub(in crate::http) limit: Option<Box<str>>,
    /// The subject. Its values are keyed hashes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RedactedSubject")]
    pub(in crate::http) subject: Option<RedactedSubject>,
    /// The value of the group as its keyed hash, or the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RedactedSubject")]
    pub(in crate::http) group: Option<RedactedSubject>,
    /// True if the override applies to all subjects.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub(in crate::http) everybody: Option<bool>,
    /// The rule that the override applies to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub(in crate::http) rule: Option<Box<str>>,
    /// The kind of load shedding that the override applies to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ShedderName")]
    pub(in crate::http) shedding: Option<ShedderName>,
    /// Units per window.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub(in crate::http) quota: Option<u64>,
    /// The burst of a token bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub(in crate::http) burst: Option<u64>,
    /// True if requests are admitted and not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub(in crate::http) unlimited: Option<bool>,
    /// True if requests are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub(in crate::http) blocked: Option<bool>,
    /// True if requests are admitted and counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub(in crate::http) counted: Option<bool>,
    /// The end of the override in seconds since the Unix epoch, rounded up; null if it has no end.
    pub(in crate::http) expires: Option<u64>,
    /// The reason why the override was set.
    pub(in crate::http) reason: Box<str>,
    /// True if only this node has the override so far, because the store did not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub(in crate::http) pending: Option<bool>,
}

/// All active overrides.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::http) struct OverridesResponse {
    /// The place where the overrides are stored.
    pub(in crate::http) location: OverrideLocation,
    /// The error of this node's last attempt to read the overrides. The overrides of the last
    /// successful read are in force.
    pub(in crate::http) failure: Option<String>,
    /// The number of changes that only this node has, because the store did not answer. The node
    /// stores them when it answers again.
    pub(in crate::http) pending: u64,
    /// The number of changes that led to these overrides.
    pub(in crate::http) version: u64,
    /// The overrides, oldest first.
    pub(in crate::http) overrides: Vec<OverrideDetails>,
}

/// The place where overrides are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::http) enum OverrideLocation {
    /// This process: the overrides are lost when it ends, and other nodes do not have them.
    Process,
    /// The store, from which every node reads them.
    Store,
}

/// The result of a change of an override.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::http) struct OverrideResponse {
    /// The previous override of the same target.
    pub(in crate::http) before: Option<OverrideDetails>,
    /// The current override of the target.
    pub(in crate::http) after: Option<OverrideDetails>,
    /// The number of changes that led to the current overrides.
    pub(in crate::http) version: u64,
    /// True if the change is in force on this node only, because the store did not accept it.
    /// The node stores it when the store accepts it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub(in crate::http) pending: Option<bool>,
}
