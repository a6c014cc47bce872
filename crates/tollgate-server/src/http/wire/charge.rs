//! What is asked.

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

/// One charge, all or nothing: either limits by their names, or the attributes of a request that
/// the policy's rules match.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [{ "required": ["limits"] }, { "required": ["request"] }]))]
pub(in crate::http) struct CheckRequest<'a> {
    /// Limits by their names, charged together or not at all.
    #[serde(borrow, default, deserialize_with = "given")]
    #[schemars(with = "Vec<LimitCharge<'_>>", length(min = 1, max = 32))]
    pub(in crate::http) limits: Option<Vec<Object<LimitCharge<'a>>>>,
    /// A request as the policy's rules see it.
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
    /// Whole units; 1 if it is left out. 0 changes nothing.
    #[serde(default)]
    pub(in crate::http) cost: Units,
    /// Who is limited: a value for each subject that the limit counts by.
    #[serde(borrow, default)]
    pub(in crate::http) subject: SubjectValues<'a>,
}

/// Names and values; `null` is the value of all who have none.
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

/// Several charges, each for itself.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct BatchRequest<'a> {
    /// The charges. They are decided at the same time, in no order that could be relied on.
    #[serde(borrow)]
    #[schemars(length(min = 1, max = 64))]
    pub(in crate::http) checks: Vec<Object<CheckRequest<'a>>>,
}

/// A charge that is given back.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct RefundRequest<'a> {
    /// The receipt, as the charge's answer gave it.
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

/// The most names of one subject: policies have a handful.
const MAX_VALUES: usize = 64;
