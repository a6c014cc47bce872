//! Mappings with a fixed set of keys. The keys are declared once. The reader and the schema are
//! both generated from that declaration.

use std::collections::HashMap;

use schemars::{Schema, json_schema};
use serde_json::{Map, Value};

use super::{Decode, Field, Spanned, quoted, renamed, unexpected, unexpected_but};
use crate::report::Report;
use crate::span::Span;
use crate::tree::{Node, NodeKind};

/// Declares a struct for a mapping with a fixed set of keys. Each field of the struct is a key of
/// the mapping. The doc comment of a field is the description of the key in the schema and in the
/// reference.
macro_rules! keys {
    (
        $(#[doc = $doc:literal])*
        struct $name:ident as $what:literal $(, requires $($required:literal),+)?
        { $( $(#[doc = $key_doc:literal])* $key:ident: $type:ty, )* }
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Default)]
        pub(crate) struct $name {
            $( $(#[doc = $key_doc])* pub(crate) $key: $crate::decode::Field<$type>, )*
        }

        impl $crate::decode::Decode for $name {
            const EXPECTED: &'static str = $what;

            fn decode(node: &$crate::tree::Node, report: &mut $crate::report::Report<'_>) -> Option<Self> {
                let known = &[$( $crate::decode::key_name(stringify!($key)) ),*];
                let required = &[$( $($required),+ )?];
                let mut keys = $crate::decode::Keys::open(node, $what, known, required, report)?;
                $( let $key = keys.take($crate::decode::key_name(stringify!($key)), report); )*
                Some(Self { $( $key ),* })
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let properties = [$( $crate::decode::Property {
                    name: $crate::decode::key_name(stringify!($key)),
                    about: concat!("", $($key_doc),*),
                    schema: generator.subschema_for::<$type>(),
                } ),*];
                $crate::decode::object_schema(concat!("", $($doc),*), properties, &[$( $($required),+ )?])
            }
        }
    };
}
pub(crate) use keys;

/// Returns the key that belongs to a field: the name of the field without `r#`.
pub(crate) const fn key_name(field: &'static str) -> &'static str {
    match field.as_bytes() {
        [b'r', b'#', ..] => field.split_at(2).1,
        _ => field,
    }
}

/// The name, in messages, of a value that states the source of a secret. If the file has a text in
/// place of such a value, the text might be the secret itself, so messages must not show it.
const SECRET: &str = "a secret";

/// The keys of one mapping that are not read yet. Each key can be read once.
pub(crate) struct Keys<'n> {
    values: HashMap<&'n str, (&'n Node, &'n Node)>,
    /// The required keys that are absent, for which a mistake is already reported.
    reported: Vec<&'static str>,
}

impl<'n> Keys<'n> {
    /// Returns the keys of the mapping `node`, which can have the `known` keys and must have the
    /// `required` keys. Reports keys that are unknown, duplicate or missing. Returns `None` after
    /// reporting that `node` is not a mapping. `what` is the name of the mapping in messages.
    pub(crate) fn open(
        node: &'n Node,
        what: &str,
        known: &[&'static str],
        required: &[&'static str],
        report: &mut Report<'_>,
    ) -> Option<Self> {
        if !matches!(node.kind, NodeKind::Mapping(_)) {
            let hint = format!("its keys are {}", known.join(", "));
            if what == SECRET {
                let message = "expected where the secret comes from, found a text";
                report.hidden_mistake(node.at, message, hint);
                return None;
            }
            unexpected_but(node, what, &hint, report);
            return None;
        }
        let mut keys = Self { values: HashMap::new(), reported: Vec::new() };
        for (key, (key_node, value)) in entries(node, what, report)? {
            if known.contains(&key) {
                keys.values.insert(key, (key_node, value));
            } else {
                // A misspelt required key is reported once: as unknown, and not also as missing.
                keys.reported.extend(unknown_key(key, key_node.at, what, known, report));
            }
        }
        for missing in required {
            if !keys.values.contains_key(missing) && !keys.reported.contains(missing) {
                report.plain_error(node.at, format_args!("{what} needs `{missing}`"));
                keys.reported.push(missing);
            }
        }
        Some(keys)
    }

    /// Removes `key` and decodes its value. Reports a mistake in the value.
    pub(crate) fn take<T: Decode>(&mut self, key: &str, report: &mut Report<'_>) -> Field<T> {
        let Some((key_node, value)) = self.values.remove(key) else {
            return if self.reported.contains(&key) { Field::Invalid } else { Field::Absent };
        };
        if matches!(value.kind, NodeKind::Null) {
            let message = format_args!("`{key}` has no value");
            report.error(key_node.at, message, format_args!("expected {}", T::EXPECTED));
            return Field::Invalid;
        }
        match T::decode(value, report) {
            Some(read) => Field::Value(Spanned { value: read, at: value.at, key: key_node.at }),
            None => Field::Invalid,
        }
    }
}

/// Returns the keys and values of a mapping in file order. Reports and leaves out duplicate keys,
/// and keys that are not words. Returns `None` after reporting that `node` is not a mapping.
pub(crate) fn entries<'n>(
    node: &'n Node,
    what: &str,
    report: &mut Report<'_>,
) -> Option<Vec<(&'n str, (&'n Node, &'n Node))>> {
    let NodeKind::Mapping(pairs) = &node.kind else {
        unexpected(node, what, report);
        return None;
    };
    let mut first_spans: HashMap<&str, Span> = HashMap::new();
    let mut entries = Vec::with_capacity(pairs.len());
    for (key, value) in pairs {
        let Some(name) = key.text() else {
            unexpected(key, "a key", report);
            continue;
        };
        match first_spans.get(name) {
            Some(first) => {
                let hint = format!("first {}", report.location(*first, key.at));
                report.error(key.at, format_args!("duplicate key {}", quoted(name)), hint);
            }
            None => {
                first_spans.insert(name, key.at);
                entries.push((name, (key, value)));
            }
        }
    }
    Some(entries)
}

/// The keys that belong into the `match` of a rule. Authors often write these keys directly in the
/// rule by mistake.
const CONDITIONS: [&str; 12] = [
    "method", "path", "host", "network", "header", "query", "cookie", "has", "lacks", "when",
    "any", "not",
];

/// Reports the unknown key `key` of the mapping `what`. Returns the known key that the author
/// probably meant, if there is one.
fn unknown_key(
    key: &str,
    at: Span,
    what: &str,
    known: &[&'static str],
    report: &mut Report<'_>,
) -> Option<&'static str> {
    let message = format!("unknown key {} in {what}", quoted(key));
    if key == "<<" {
        report.error(at, message, "merge keys are not YAML 1.2: write the keys out");
        return None;
    }
    if let Some(new) = renamed::key(key, known) {
        report.error(at, message, format_args!("it was renamed to `{new}`"));
        return Some(new);
    }
    if known.contains(&"match") && CONDITIONS.contains(&key) {
        report.error(at, message, format_args!("it belongs to `match`: match: {{ {key}: … }}"));
        return None;
    }
    report.error_with_suggestion(at, message, key, known.iter().copied())
}

/// A key of a mapping, with the description and the schema of its value.
pub(crate) struct Property {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) schema: Schema,
}

/// Returns the JSON schema of a mapping that can have only the `properties`. `about` is the
/// description of the mapping.
pub(crate) fn object_schema(
    about: &str,
    properties: impl IntoIterator<Item = Property>,
    required: &[&str],
) -> Schema {
    let mut described = Map::new();
    for Property { name, about, mut schema } in properties {
        schema.insert("description".to_owned(), about.trim().into());
        described.insert(name.to_owned(), schema.to_value());
    }
    let mut schema = json_schema!({
        "description": about.trim(),
        "type": "object",
        "properties": Value::Object(described),
        "additionalProperties": false,
    });
    if !required.is_empty() {
        schema.insert("required".to_owned(), required.into());
    }
    schema
}
