//! Mappings with keys that the author of the file chooses, such as the names of limits.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use tollgate_core::limit::MAX_NAME;

use super::keys::entries;
use super::{Decode, Spanned, quoted, unexpected_but};
use crate::report::Report;
use crate::tree::{Node, NodeKind};

/// Names with their values, in file order. No name occurs twice.
#[derive(Debug)]
pub(crate) struct Names<T>(pub(crate) Vec<Named<T>>);

/// A name that the author of the file chose, with its value.
#[derive(Debug)]
pub(crate) struct Named<T> {
    pub(crate) name: Spanned<String>,
    /// The value that belongs to the name, or `None` if the value has a mistake. The name is kept,
    /// because other keys can still refer to it.
    pub(crate) value: Option<T>,
}

impl<T: Decode> Decode for Names<T> {
    const EXPECTED: &'static str = "names with their values";

    fn decode(node: &Node, report: &mut Report<'_>) -> Option<Self> {
        if matches!(node.kind, NodeKind::Sequence(_)) {
            unexpected_but(
                node,
                Self::EXPECTED,
                "write each as `name: value`, without `- `",
                report,
            );
            return None;
        }
        let mut names = Vec::new();
        for (name, (key, node)) in entries(node, Self::EXPECTED, report)? {
            if !is_name(name) {
                let hint =
                    format_args!("a name is 1 to {MAX_NAME} letters, digits, `_`, `-` or `.`");
                report.error(key.at, format_args!("{} is not a valid name", quoted(name)), hint);
            }
            let value = if matches!(node.kind, NodeKind::Null) {
                let hint = format_args!("expected {}", T::EXPECTED);
                report.error(key.at, format_args!("{} has no value", quoted(name)), hint);
                None
            } else {
                T::decode(node, report)
            };
            let name = Spanned { value: name.to_owned(), at: key.at, key: key.at };
            names.push(Named { name, value });
        }
        Some(Self(names))
    }
}

/// Returns whether `text` is a valid name of a subject, limit or rule.
pub(crate) fn is_name(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    !text.is_empty() && text.len() <= MAX_NAME && text.bytes().all(fits)
}

impl<T: JsonSchema> JsonSchema for Names<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("NamesOf{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "propertyNames": { "pattern": format!("^[A-Za-z0-9_.-]{{1,{MAX_NAME}}}$") },
            "additionalProperties": generator.subschema_for::<T>(),
        })
    }
}
