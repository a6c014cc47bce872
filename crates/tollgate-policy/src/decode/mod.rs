//! Decoding of the YAML tree, and the value types that all parts of a policy file use.
//!
//! Decoding continues after a mistake and reads the rest of the file, so all mistakes are reported
//! at once.

mod anything;
mod duration;
mod keys;
mod list;
mod names;
mod number;
mod percent;
mod renamed;
mod size;
mod status;
mod window;
mod word;

use schemars::JsonSchema;

pub(crate) use anything::Anything;
pub(crate) use duration::Duration;
pub(crate) use keys::{Keys, Property, entries, key_name, keys, object_schema};
pub(crate) use list::{List, OneOrMore};
pub(crate) use names::{Named, Names, is_name};
pub(crate) use number::Whole;
pub(crate) use percent::Percent;
pub(crate) use size::Size;
pub(crate) use status::StatusRange;
pub(crate) use window::{CalendarUnit, WindowLength, Zone};
pub(crate) use word::{Flag, Present, Text, Word, read_word, word_schema, words};

pub(crate) use crate::quote::quoted;
use crate::report::Report;
use crate::span::Span;
use crate::tree::{Node, NodeKind};

/// A type that can be decoded from a node of the YAML tree.
pub(crate) trait Decode: JsonSchema + Sized {
    /// The name of the type in messages, with an article, and with an example if one helps.
    const WHAT: &'static str;

    /// Reads the value from `node`. Returns `None` after reporting why `node` does not have such a
    /// value.
    fn decode(node: &Node, report: &mut Report<'_>) -> Option<Self>;
}

/// A value with its position in the file.
#[derive(Clone, Debug)]
pub(crate) struct Spanned<T> {
    pub(crate) value: T,
    pub(crate) at: Span,
    /// The position of the value's key, or of the value itself if it has no key.
    pub(crate) key: Span,
}

/// The value of a key that the file can have.
#[derive(Clone, Debug, Default)]
pub(crate) enum Field<T> {
    /// The file does not have the key.
    #[default]
    Absent,
    /// The file has the key, and the mistake in its value is already reported.
    Invalid,
    Value(Spanned<T>),
}

impl<T: Clone> Field<T> {
    /// Returns this field, or `other` if the key is absent.
    pub(crate) fn or(self, other: &Self) -> Self {
        if self.is_absent() { other.clone() } else { self }
    }
}

impl<T> Field<T> {
    pub(crate) fn given(&self) -> Option<&Spanned<T>> {
        match self {
            Self::Value(given) => Some(given),
            Self::Absent | Self::Invalid => None,
        }
    }

    pub(crate) fn value(&self) -> Option<&T> {
        self.given().map(|given| &given.value)
    }

    /// Returns the converted value, or `default` if the key is absent. Returns `None` if the value
    /// is invalid.
    pub(crate) fn or_default<V>(&self, value: impl Fn(&T) -> V, default: V) -> Option<V> {
        match self {
            Self::Absent => Some(default),
            Self::Invalid => None,
            Self::Value(given) => Some(value(&given.value)),
        }
    }

    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// Returns whether the key has a value with a mistake, which is already reported.
    pub(crate) fn is_invalid(&self) -> bool {
        matches!(self, Self::Invalid)
    }
}

impl<T: Decode> Spanned<T> {
    /// Reads a value that has no key.
    pub(crate) fn decode(node: &Node, report: &mut Report<'_>) -> Option<Self> {
        let value = T::decode(node, report)?;
        Some(Self { value, at: node.at, key: node.at })
    }
}

/// Reports that `node` is not a value of the kind `what`.
pub(crate) fn unexpected(node: &Node, what: &str, report: &mut Report<'_>) {
    report.plain_error(node.at, format_args!("expected {what}, found {}", found(node)));
}

/// Reports that `node` is not a value of the kind `what`, with a hint.
pub(crate) fn unexpected_but(node: &Node, what: &str, hint: &str, report: &mut Report<'_>) {
    report.error(node.at, format_args!("expected {what}, found {}", found(node)), hint);
}

/// Describes a node for a message.
fn found(node: &Node) -> String {
    match &node.kind {
        NodeKind::Null => "nothing".to_owned(),
        NodeKind::Plain(text) | NodeKind::Quoted(text) => quoted(text),
        NodeKind::Sequence(_) => "a list".to_owned(),
        NodeKind::Mapping(_) => "keys with values".to_owned(),
    }
}
