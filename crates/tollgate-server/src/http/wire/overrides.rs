//! Overrides as documents.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate::overrides::SheddingTarget;

use super::charge::SubjectValues;
use super::given;
use super::units::Units;
use crate::http::redaction::RedactedSubject;

/// An override that is to be set: of a subject, a group, everybody, a rule or shedding, and a quota, unlimited, blocked or counted.
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
    /// The name of the only limit that it is about; every limit that counts these if it is left out.
    #[serde(borrow, default, deserialize_with = "given")]
    #[schemars(with = "String", length(min = 1, max = 64))]
    pub(in crate::http) limit: Option<Cow<'a, str>>,
    /// One subject: a value for each that the limit counts by, or the value's keyed hash, `#` and
    /// 32 hexadecimal digits.
    #[serde(borrow, default, deserialize_with = "given")]
    #[schemars(with = "SubjectValues<'_>")]
    pub(in crate::http) subject: Option<SubjectValues<'a>>,
    /// All subjects with this one value, or with an address in this network.
    #[serde(borrow, default, deserialize_with = "given")]
    #[schemars(with = "SubjectValues<'_>")]
    pub(in crate::http) group: Option<SubjectValues<'a>>,
    /// Every subject: a switch of the limit itself.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "bool", extend("const" = true))]
    pub(in crate::http) everybody: Option<bool>,
    /// Every request that the rule of this name matches: a switch of the rule, with `unlimited` or
    /// `counted`.
    #[serde(borrow, default, deserialize_with = "given")]
    #[schemars(with = "String", length(min = 1, max = 64))]
    pub(in crate::http) rule: Option<Cow<'a, str>>,
    /// Every request that this sheds: a switch of load shedding, with `unlimited` or `counted`.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "ShedderName")]
    pub(in crate::http) shedding: Option<ShedderName>,
    /// Units per window, of one limit.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Units")]
    pub(in crate::http) quota: Option<Units>,
    /// What a token bucket holds.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Units")]
    pub(in crate::http) burst: Option<Units>,
    /// They pass, and nothing is counted.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "bool", extend("const" = true))]
    pub(in crate::http) unlimited: Option<bool>,
    /// They do not pass.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "bool", extend("const" = true))]
    pub(in crate::http) blocked: Option<bool>,
    /// They pass, and are counted as by a rule in shadow mode.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "bool", extend("const" = true))]
    pub(in crate::http) counted: Option<bool>,
    /// How long it lasts: a number of seconds, minutes, hours or days such as `90s`, `15m`, `12h`
    /// or `7d`; at most 366 days.
    #[serde(borrow)]
    #[schemars(regex(pattern = "^[1-9][0-9]{0,7}[smhd]$"))]
    pub(in crate::http) expires_in: Cow<'a, str>,
    /// Why, for those who run it. Clients are never told.
    #[serde(borrow)]
    #[schemars(length(min = 1, max = 500))]
    pub(in crate::http) reason: Cow<'a, str>,
}

/// What sheds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::http) enum ShedderName {
    /// Everything that does.
    All,
    /// The fleet, by what all nodes have in flight together.
    Fleet,
    /// Each node, by its own load.
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
    /// The only limit that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub(in crate::http) limit: Option<Box<str>>,
    /// The subject, its values as their keyed hashes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RedactedSubject")]
    pub(in crate::http) subject: Option<RedactedSubject>,
    /// The value that all of them have, as its keyed hash, or the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RedactedSubject")]
    pub(in crate::http) group: Option<RedactedSubject>,
    /// True where it is about every subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub(in crate::http) everybody: Option<bool>,
    /// The rule that it switches.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub(in crate::http) rule: Option<Box<str>>,
    /// What of load shedding it switches.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ShedderName")]
    pub(in crate::http) shedding: Option<ShedderName>,
    /// Units per window.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub(in crate::http) quota: Option<u64>,
    /// What a token bucket holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub(in crate::http) burst: Option<u64>,
    /// True where they pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub(in crate::http) unlimited: Option<bool>,
    /// True where they do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub(in crate::http) blocked: Option<bool>,
    /// True where they pass and are counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub(in crate::http) counted: Option<bool>,
    /// The second of the Unix epoch at which it is over, rounded up.
    pub(in crate::http) expires: u64,
    /// Why it was set.
    pub(in crate::http) reason: Box<str>,
}

/// All overrides that are in force.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::http) struct OverridesResponse {
    /// Where they are kept.
    pub(in crate::http) location: OverrideLocation,
    /// Why this node could not read them the last time; the last ones that it read are in force.
    pub(in crate::http) failure: Option<String>,
    /// How many changes led to them.
    pub(in crate::http) version: u64,
    /// The oldest first.
    pub(in crate::http) overrides: Vec<OverrideDetails>,
}

/// Where overrides are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::http) enum OverrideLocation {
    /// In this process: they end with it, and other nodes know nothing of them.
    Process,
    /// In the store, where every node finds them.
    Store,
}

/// What a change of an override made.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::http) struct OverrideResponse {
    /// What was in force of the same target.
    pub(in crate::http) before: Option<OverrideDetails>,
    /// What is in force of it now.
    pub(in crate::http) after: Option<OverrideDetails>,
    /// How many changes led to the overrides that are in force now.
    pub(in crate::http) version: u64,
}
