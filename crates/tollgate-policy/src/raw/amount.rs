//! The keys `quota` and `burst`: a number, or a number for each value of a subject.

use std::borrow::Cow;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::decode::{Decode, Field, Integer, Names, Text, keys};
use crate::report::Report;
use crate::span::Span;
use crate::tree::{Node, NodeKind};

/// A number of units: the same for all requests, or selected by the value of a subject.
#[derive(Clone, Debug)]
pub(crate) enum Amount {
    Known(Integer),
    ByValue(Arc<ByValue>),
}

keys! {
    /// A number for each value of a subject, such as the plan of a client. All these numbers use
    /// the same counters.
    struct ByValue as "a number by subject", requires "by", "values", "default" {
        /// The subject whose value selects the number. Clients must not be able to choose the value:
        /// see `trusted` of the subject.
        by: Text,
        /// The number for each value, such as `{ free: 60, pro: 6_000 }`, at most 1,000.
        values: Names<Integer>,
        /// The number for requests with another value, or without one.
        default: Integer,
    }
}

impl Amount {
    /// Returns the default number. It applies to all requests, or, if the amount depends on a
    /// subject, to requests with a value that the file does not list, or without a value.
    pub(crate) fn default(&self) -> Option<u64> {
        match self {
            Self::Known(number) => Some(number.0),
            Self::ByValue(by_value) => Some(by_value.default.value()?.0),
        }
    }

    /// Returns the numbers by value, if the field has a number for each value of a subject.
    pub(crate) fn by_value(field: &Field<Self>) -> Option<&ByValue> {
        match field.value()? {
            Self::Known(_) => None,
            Self::ByValue(by_value) => Some(by_value),
        }
    }

    /// Returns the position, in the file, of the number that [`default`](Self::default) returns.
    pub(crate) fn span(field: &Field<Self>) -> Option<Span> {
        let given = field.given()?;
        let default = Self::by_value(field).and_then(|by_value| by_value.default.given());
        Some(default.map_or(given.at, |default| default.at))
    }
}

impl Decode for Amount {
    const EXPECTED: &'static str = Integer::EXPECTED;

    fn decode(node: &Node, report: &mut Report<'_>) -> Option<Self> {
        match node.kind {
            NodeKind::Mapping(_) => Some(Self::ByValue(Arc::new(ByValue::decode(node, report)?))),
            _ => Integer::decode(node, report).map(Self::Known),
        }
    }
}

impl JsonSchema for Amount {
    fn schema_name() -> Cow<'static, str> {
        "Amount".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (known, by_value) =
            (generator.subschema_for::<Integer>(), generator.subschema_for::<ByValue>());
        json_schema!({
            "description": "A number of units: the same for all requests, or selected by the value of a subject.",
            "anyOf": [known, by_value],
        })
    }
}
