//! The key `billing_day`: a day of the month, or a day for each value of a subject.

use std::borrow::Cow;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::decode::{Decode, Field, Integer, Text, keys};
use crate::report::Report;
use crate::span::Span;
use crate::tree::{Node, NodeKind};

/// The day of the month on which windows begin: the same day for all requests, or a day that is
/// read from the request.
#[derive(Clone, Debug)]
pub(crate) enum BillingDay {
    Known(Integer),
    BySubject(Arc<DayBySubject>),
}

keys! {
    /// A billing day for each value of a subject: windows begin on the day that is the value, from
    /// `1` to `31`. All these days use the same counters, and an open window keeps its end if the
    /// value changes.
    struct DayBySubject as "a billing day by subject", requires "by", "default" {
        /// The subject whose value is the day. Clients must not be able to choose the value: see
        /// `trusted` of the subject.
        by: Text,
        /// The day for requests with another value, or without one.
        default: Integer,
    }
}

impl BillingDay {
    /// Returns the default day. It applies to all requests, or, if the day depends on a subject, to
    /// requests without a valid value of the subject.
    pub(crate) fn default(&self) -> Option<u64> {
        match self {
            Self::Known(day) => Some(day.0),
            Self::BySubject(by_subject) => Some(by_subject.default.value()?.0),
        }
    }

    /// Returns the position, in the file, of the day that [`default`](Self::default) returns.
    pub(crate) fn span(field: &Field<Self>) -> Option<Span> {
        let given = field.given()?;
        match &given.value {
            Self::Known(_) => Some(given.at),
            Self::BySubject(by_subject) => by_subject.default.given().map(|day| day.at),
        }
    }
}

impl Decode for BillingDay {
    const EXPECTED: &'static str = Integer::EXPECTED;

    fn decode(node: &Node, report: &mut Report<'_>) -> Option<Self> {
        match node.kind {
            NodeKind::Mapping(_) => {
                Some(Self::BySubject(Arc::new(DayBySubject::decode(node, report)?)))
            }
            _ => Integer::decode(node, report).map(Self::Known),
        }
    }
}

impl JsonSchema for BillingDay {
    fn schema_name() -> Cow<'static, str> {
        "BillingDay".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (known, by_subject) =
            (generator.subschema_for::<Integer>(), generator.subschema_for::<DayBySubject>());
        json_schema!({
            "description": "The day of the month on which windows begin: the same for all requests, or read from them.",
            "anyOf": [known, by_subject],
        })
    }
}
