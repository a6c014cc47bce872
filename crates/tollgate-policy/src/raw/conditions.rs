//! The key `match` of a rule: conditions.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::decode::{Decode, List, OneOrMore, Spanned, Text, entries, keys, quoted, unexpected};
use crate::report::Report;
use crate::tree::{Node, NodeKind};

keys! {
    /// Conditions that must all be met. If a condition has several values, one of them must match.
    struct Conditions as "conditions" {
        /// The method, such as `GET`, or a list of methods.
        method: OneOrMore<Text>,
        /// Path patterns: `{id}` in `/users/{id}` captures a segment, `*` matches one segment, and
        /// `**` at the end matches all remaining segments.
        path: OneOrMore<Text>,
        /// Hosts. `*.example.com` matches every subdomain.
        host: OneOrMore<Text>,
        /// Networks of the client's address, such as `10.0.0.0/8`, addresses, and names of lists in
        /// `networks`. A client whose address is unknown is in none of them.
        network: OneOrMore<Text>,
        /// Headers that must be present: a name, or `{ name: value }`. A value is compared with
        /// case, a `*` in it is any characters or none (`curl/*`), and a list has alternatives. If
        /// the header occurs several times, one of them must match.
        header: OneOrMore<WantedValues>,
        /// Parameters of the query that must be present. Their values are decoded and then compared
        /// as for `header`.
        query: OneOrMore<WantedValues>,
        /// Cookies that must be present. Their values are decoded and then compared as for
        /// `header`.
        cookie: OneOrMore<WantedValues>,
        /// Subjects for which the request must have a value.
        has: OneOrMore<Text>,
        /// Subjects for which the request must not have a value.
        lacks: OneOrMore<Text>,
        /// An expression in a part of the Common Expression Language (CEL), such as
        /// `request.method == 'POST' && size(request.query) > 100`. The page of policies lists its
        /// attributes.
        when: Text,
        /// A list of conditions of which at least one must be met. Path patterns in these
        /// conditions have no parameters.
        any: List<Conditions>,
        /// Conditions that must not be met, or a list of such conditions. Path patterns in these
        /// conditions have no parameters.
        not: OneOrMore<Conditions>,
    }
}

keys! {
    /// A value in one form, for texts that have characters of patterns.
    struct ValueForm as "a value" {
        /// The value, with `*` and all other characters as they are.
        exact: Text,
        /// A pattern in which only `*` is special: any characters or none.
        pattern: Text,
    }
}

/// Names of headers, query parameters or cookies, with their wanted values. `None` means any value.
#[derive(Debug)]
pub(crate) struct WantedValues(pub(crate) Vec<(Spanned<String>, Option<OneOrMore<WantedValue>>)>);

/// A wanted value.
#[derive(Debug)]
pub(crate) enum WantedValue {
    Plain(Text),
    Form(ValueForm),
}

impl Decode for WantedValue {
    const EXPECTED: &'static str = "a text, or { exact: TEXT }";

    fn decode(node: &Node, report: &mut Report<'_>) -> Option<Self> {
        match &node.kind {
            NodeKind::Mapping(_) => ValueForm::decode(node, report).map(Self::Form),
            NodeKind::Sequence(_) | NodeKind::Null => {
                unexpected(node, Self::EXPECTED, report);
                None
            }
            _ => Text::decode(node, report).map(Self::Plain),
        }
    }
}

impl Decode for WantedValues {
    const EXPECTED: &'static str = "a name, or { name: value }";

    fn decode(node: &Node, report: &mut Report<'_>) -> Option<Self> {
        if let Some(name) = node.text() {
            let name = Spanned { value: name.to_owned(), at: node.at, key: node.at };
            return Some(Self(vec![(name, None)]));
        }
        let mut wanted = Vec::new();
        for (name, (key, node)) in entries(node, Self::EXPECTED, report)? {
            if matches!(node.kind, NodeKind::Null) {
                let message = format_args!("{} has no value", quoted(name));
                report.error(key.at, message, "for any value, write the name alone");
                continue;
            }
            let values = OneOrMore::decode(node, report);
            let name = Spanned { value: name.to_owned(), at: key.at, key: key.at };
            wanted.extend(values.map(|values| (name, Some(values))));
        }
        Some(Self(wanted))
    }
}

impl JsonSchema for WantedValue {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "WantedValue".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (text, form) =
            (generator.subschema_for::<Text>(), generator.subschema_for::<ValueForm>());
        json_schema!({ "anyOf": [text, form] })
    }
}

impl JsonSchema for WantedValues {
    fn schema_name() -> Cow<'static, str> {
        "WantedValues".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let values = generator.subschema_for::<OneOrMore<WantedValue>>();
        json_schema!({
            "description": "A name that must be present, or names with their values.",
            "anyOf": [
                { "type": "string" },
                { "type": "object", "additionalProperties": values },
            ],
        })
    }
}
