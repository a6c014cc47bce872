//! Mappings whose values can be of any kind, for keys that Tollgate passes on to callers unchanged.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use tollgate_core::policy::descriptors::Metadata;

use super::Decode;
use super::keys::entries;
use crate::report::Report;
use crate::tree::{Node, NodeKind};

/// A mapping whose values can be of any kind.
#[derive(Debug)]
pub(crate) struct Anything(pub(crate) Metadata);

impl Decode for Anything {
    const EXPECTED: &'static str = "keys with values";

    fn decode(node: &Node, report: &mut Report<'_>) -> Option<Self> {
        map(node, report).map(Self)
    }
}

fn map(node: &Node, report: &mut Report<'_>) -> Option<Metadata> {
    let pairs = entries(node, Anything::EXPECTED, report)?;
    let pairs =
        pairs.into_iter().map(|(name, (_, value))| Some((name.into(), any(value, report)?)));
    pairs.collect::<Option<_>>().map(Metadata::Map)
}

fn any(node: &Node, report: &mut Report<'_>) -> Option<Metadata> {
    Some(match &node.kind {
        NodeKind::Null => Metadata::Null,
        NodeKind::Quoted(text) => Metadata::Text((&**text).into()),
        NodeKind::Plain(text) => plain(text),
        NodeKind::Sequence(nodes) => {
            let values = nodes.iter().map(|node| any(node, report));
            Metadata::List(values.collect::<Option<_>>()?)
        }
        NodeKind::Mapping(_) => map(node, report)?,
    })
}

/// Converts a YAML word without quotes to the JSON value that it represents: a boolean, a number or
/// a string.
fn plain(text: &str) -> Metadata {
    let begins_as_number = text.trim_start_matches(['-', '+', '.']).starts_with(|first: char| {
        // JSON has no `inf` and no `nan`, so these words stay strings.
        first.is_ascii_digit()
    });
    match (text, text.parse::<f64>()) {
        ("true", _) => Metadata::Bool(true),
        ("false", _) => Metadata::Bool(false),
        (_, Ok(number)) if begins_as_number && number.is_finite() => Metadata::Number(number),
        _ => Metadata::Text(text.into()),
    }
}

impl JsonSchema for Anything {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Anything".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object" })
    }
}
