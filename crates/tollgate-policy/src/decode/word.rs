//! The value types for words: free text, and choices from a fixed set of words.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use super::{Decode, quoted, renamed, unexpected, unexpected_but};
use crate::report::Report;
use crate::tree::{Node, NodeKind};

/// Declares a type for a key with one word of a fixed set as its value. Each word has a meaning: a
/// value of another type.
macro_rules! choices {
    (
        $(#[doc = $doc:literal])*
        struct $name:ident($type:ty) as $what:literal
        { $( $(#[doc = $word_doc:literal])* $word:literal => $value:expr, )+ }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name(pub(crate) $type);

        impl $crate::decode::Decode for $name {
            const EXPECTED: &'static str = $what;

            fn decode(node: &$crate::tree::Node, report: &mut $crate::report::Report<'_>) -> Option<Self> {
                let choices = [$( $crate::decode::Choice { word: $word, value: $value } ),+];
                $crate::decode::read_choice(node, $what, choices, report).map(Self)
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let choices = [$( ($word, concat!("", $($word_doc),*)) ),+];
                $crate::decode::choice_schema(concat!("", $($doc),*), &choices)
            }
        }
    };
}
pub(crate) use choices;

/// A word that can be chosen, and the value that it means.
pub(crate) struct Choice<T> {
    pub(crate) word: &'static str,
    pub(crate) value: T,
}

/// Returns the value of the word in `node`, which must be one of `choices`. Returns `None` after
/// reporting that it is another word. `what` is the name of the choice in messages.
pub(crate) fn read_choice<T, const N: usize>(
    node: &Node,
    what: &str,
    choices: [Choice<T>; N],
    report: &mut Report<'_>,
) -> Option<T> {
    let Some(text) = node.text() else {
        unexpected(node, what, report);
        return None;
    };
    let known = choices.each_ref().map(|word| word.word);
    if let Some(word) = choices.into_iter().find(|word| word.word == text) {
        return Some(word.value);
    }
    let kind = what.split_once(' ').map_or(what, |(_article, kind)| kind);
    let message = format!("unknown {kind} {}", quoted(text));
    match renamed::word(text, &known) {
        Some(new) => report.error(node.at, message, format_args!("it was renamed to `{new}`")),
        None => {
            let synonym = SYNONYMS.iter().find(|(word, _)| *word == text);
            match synonym.filter(|(_, own)| known.contains(own)) {
                Some((_, own)) => {
                    report.error(node.at, message, format_args!("use `{own}`, which is the same"));
                }
                None => {
                    report.error_with_suggestion(node.at, message, text, known.into_iter());
                }
            }
        }
    }
    None
}

/// Names of algorithms in other rate limiters. The second element of a pair is the name of the same
/// algorithm in a policy file. Hints contain it.
const SYNONYMS: [(&str, &str); 3] =
    [("leaky_bucket", "token_bucket"), ("gcra", "token_bucket"), ("sliding_counter", "two_bucket")];

/// Returns the JSON schema of a choice. `about` describes the choice, and `choices` are pairs of a
/// word and its description.
pub(crate) fn choice_schema(about: &str, choices: &[(&str, &str)]) -> Schema {
    let choices: Vec<Value> = choices
        .iter()
        .map(|(word, about)| json!({ "const": word, "description": about.trim() }))
        .collect();
    json_schema!({ "description": about.trim(), "oneOf": choices })
}

/// A text, with or without quotes.
#[derive(Clone, Debug)]
pub(crate) struct Text(pub(crate) String);

impl Decode for Text {
    const EXPECTED: &'static str = "a text";

    fn decode(node: &Node, report: &mut Report<'_>) -> Option<Self> {
        match node.text() {
            Some("") => {
                unexpected_but(node, Self::EXPECTED, "the text is empty", report);
                None
            }
            Some(text) => Some(Self(text.to_owned())),
            None => {
                unexpected(node, Self::EXPECTED, report);
                None
            }
        }
    }
}

impl JsonSchema for Text {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // Unquoted values that YAML reads as a number or boolean are also accepted as texts.
        json_schema!({ "type": ["string", "number", "boolean"] })
    }
}

/// `true` or `false`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flag(pub(crate) bool);

impl Decode for Flag {
    const EXPECTED: &'static str = "true or false";

    fn decode(node: &Node, report: &mut Report<'_>) -> Option<Self> {
        match &node.kind {
            NodeKind::Plain(text) if **text == *"true" => Some(Self(true)),
            NodeKind::Plain(text) if **text == *"false" => Some(Self(false)),
            _ => {
                unexpected(node, Self::EXPECTED, report);
                None
            }
        }
    }
}

impl JsonSchema for Flag {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Flag".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "boolean" })
    }
}

/// The value of a key that is only present or absent and has no settings: `{}` or `true`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Present;

impl Decode for Present {
    const EXPECTED: &'static str = "{} or true";

    fn decode(node: &Node, report: &mut Report<'_>) -> Option<Self> {
        match &node.kind {
            NodeKind::Plain(text) if **text == *"true" => Some(Self),
            NodeKind::Mapping(pairs) if pairs.is_empty() => Some(Self),
            _ => {
                unexpected(node, Self::EXPECTED, report);
                None
            }
        }
    }
}

impl JsonSchema for Present {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Present".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "enum": [{}, true] })
    }
}
