//! The value types for lists.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::{Decode, Spanned, unexpected, unexpected_but};
use crate::report::Report;
use crate::tree::{Node, NodeKind};

/// A list, possibly of one element or empty.
#[derive(Debug)]
pub(crate) struct List<T>(pub(crate) Vec<Spanned<T>>);

/// One value, or a list of values. A single value is treated as a list of one element.
#[derive(Debug)]
pub(crate) struct OneOrMore<T>(pub(crate) Vec<Spanned<T>>);

impl<T: Decode> Decode for List<T> {
    const EXPECTED: &'static str = "a list";

    fn decode(node: &Node, report: &mut Report<'_>) -> Option<Self> {
        let NodeKind::Sequence(nodes) = &node.kind else {
            match node.kind {
                NodeKind::Mapping(_) => {
                    unexpected_but(node, Self::EXPECTED, "begin each element with `- `", report);
                }
                _ => unexpected(node, Self::EXPECTED, report),
            }
            return None;
        };
        Some(Self(nodes.iter().filter_map(|node| Spanned::decode(node, report)).collect()))
    }
}

impl<T: Decode> Decode for OneOrMore<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn decode(node: &Node, report: &mut Report<'_>) -> Option<Self> {
        match &node.kind {
            NodeKind::Sequence(_) => List::decode(node, report).map(|List(given)| Self(given)),
            _ => Spanned::decode(node, report).map(|given| Self(vec![given])),
        }
    }
}

impl<T: JsonSchema> JsonSchema for List<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("ListOf{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "array", "items": generator.subschema_for::<T>() })
    }
}

impl<T: JsonSchema> JsonSchema for OneOrMore<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("OneOrMore{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [one, { "type": "array", "items": one }] })
    }
}
