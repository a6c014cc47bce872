//! The JSON documents in the requests for charges, peeks and refunds.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use super::facts::RequestFacts;
use super::units::Units;
use super::{Text, given};
use crate::http::json::Object;

/// The most limits of one charge.
pub(in crate::http) const MAX_LIMITS: usize = 32;

/// The most charges of one batch.
pub(in crate::http) const MAX_CHECKS: usize = 64;

/// One charge, of which either all limits are charged or none. It contains either the names of
/// limits, or the attributes of a request, to which the policy's rules are applied.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [{ "required": ["limits"] }, { "required": ["request"] }]))]
pub(in crate::http) struct CheckRequest<'a> {
    /// Limits by their names. Either all are charged or none.
    #[serde(borrow, default, deserialize_with = "given")]
    #[schemars(with = "Vec<LimitCharge<'_>>", length(min = 1, max = 32))]
    pub(in crate::http) limits: Option<Vec<Object<LimitCharge<'a>>>>,
    /// The attributes of a request, to which the policy's rules are applied.
    #[serde(borrow, default, deserialize_with = "given")]
    #[schemars(with = "RequestFacts<'_>")]
    pub(in crate::http) request: Option<Object<RequestFacts<'a>>>,
}

/// One limit, for one subject.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct LimitCharge<'a> {
    /// The limit's name in the policy.
    #[serde(borrow)]
    #[schemars(length(min = 1, max = 64))]
    pub(in crate::http) name: Cow<'a, str>,
    /// The cost in whole units, 1 by default. 0 charges nothing.
    #[serde(default)]
    pub(in crate::http) cost: Units,
    /// The subject: a value for each subject that the limit counts by.
    #[serde(borrow, default)]
    pub(in crate::http) subject: SubjectValues<'a>,
}

/// Names and values. `null` is the value of all clients that have no value.
#[derive(Clone, Debug, Default)]
pub(in crate::http) struct SubjectValues<'a>(Vec<(Cow<'a, str>, Option<Cow<'a, str>>)>);

impl SubjectValues<'_> {
    pub(in crate::http) fn len(&self) -> usize {
        self.0.len()
    }

    pub(in crate::http) fn values(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.0.iter().map(|(name, value)| (&**name, value.as_deref()))
    }
}

/// Several independent charges.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct BatchRequest<'a> {
    /// The charges. They are decided concurrently, in no defined order.
    #[serde(borrow)]
    #[schemars(length(min = 1, max = 64))]
    pub(in crate::http) checks: Vec<Object<CheckRequest<'a>>>,
}

/// A charge to refund.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct RefundRequest<'a> {
    /// The receipt from the response to the charge.
    #[serde(borrow)]
    #[schemars(length(min = 1))]
    pub(in crate::http) receipt: Cow<'a, str>,
    /// The status of the response to the charged request. Only charges that the policy refunds
    /// after such a response are refunded: the charges on limits that do not count such a response,
    /// and the charges that `refund` of the rule or of `answers` refunds. Without a status,
    /// everything is refunded.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "u16", range(min = 100, max = 599))]
    pub(in crate::http) status: Option<u16>,
}

/// A receipt to release.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct ReleaseRequest<'a> {
    /// The receipt from the response to the charge or the reservation.
    #[serde(borrow)]
    #[schemars(length(min = 1))]
    pub(in crate::http) receipt: Cow<'a, str>,
}

impl JsonSchema for SubjectValues<'_> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "SubjectValues".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "additionalProperties": { "type": ["string", "null"] } })
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for SubjectValues<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(NamesAndValues)
    }
}

struct NamesAndValues;

impl<'de> Visitor<'de> for NamesAndValues {
    type Value = SubjectValues<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of names and values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<SubjectValues<'de>, A::Error> {
        let mut values: Vec<(Cow<'de, str>, Option<Cow<'de, str>>)> = Vec::new();
        while let Some(Text(name)) = members.next_key()? {
            if values.len() == MAX_VALUES {
                return Err(A::Error::custom(format_args!("more than {MAX_VALUES} names")));
            }
            if values.iter().any(|(other, _)| *other == name) {
                return Err(A::Error::custom(format_args!("{name:?} is given twice")));
            }
            let value: Option<Text<'de>> = members.next_value()?;
            values.push((name, value.map(|Text(value)| value)));
        }
        Ok(SubjectValues(values))
    }
}

/// The most values of one subject. The subjects of policies have only a few values.
const MAX_VALUES: usize = 64;
