//! Decodes the YAML tree of a policy file. Contains the value types that several keys of a policy
//! file use.
//!
//! Decoding continues after a mistake with the rest of the file. All mistakes are therefore
//! reported together.

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
pub(crate) use number::Integer;
pub(crate) use percent::Percent;
pub(crate) use size::Size;
pub(crate) use status::StatusRange;
pub(crate) use window::{CalendarUnit, WindowLength, Zone};
pub(crate) use word::{Choice, Flag, Present, Text, choice_schema, choices, read_choice};

pub(crate) use crate::quote::quoted;
use crate::report::Report;
use crate::span::Span;
use crate::tree::{Node, NodeKind};

/// A type that can be decoded from a node of the YAML tree.
pub(crate) trait Decode: JsonSchema + Sized {
    /// The name of the type in messages, with an article. An example of a value can follow the
    /// name.
    const EXPECTED: &'static str;

    /// Decodes the value of `node`. Returns `None` after reporting why `node` does not have a value
    /// of this type.
    fn decode(node: &Node, report: &mut Report<'_>) -> Option<Self>;
}

/// A value with its position in the file.
#[derive(Clone, Debug)]
pub(crate) struct Spanned<T> {
    pub(crate) value: T,
    pub(crate) at: Span,
    /// The position of the key that has this value. For a value without a key, such as an element
    /// of a list, the position of the value itself.
    pub(crate) key: Span,
}

/// The result of reading a key that a mapping can have.
#[derive(Clone, Debug, Default)]
pub(crate) enum Field<T> {
    /// The mapping does not contain the key.
    #[default]
    Absent,
    /// The mapping contains the key, but its value has a mistake, which is already reported.
    Invalid,
    Value(Spanned<T>),
}

impl<T: Clone> Field<T> {
    /// Returns this field if its key is present, even if the value is invalid. Returns a copy of
    /// `other` if the key is absent.
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

    /// Returns the value of the key, converted by the function `value`. Returns `default` if the
    /// key is absent, and `None` if its value has a mistake, which is already reported.
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

    /// Returns whether the key is present with a value that has a mistake. The mistake is already
    /// reported.
    pub(crate) fn is_invalid(&self) -> bool {
        matches!(self, Self::Invalid)
    }
}

impl<T: Decode> Spanned<T> {
    /// Decodes a value that has no key, such as an element of a list. Returns `None` after
    /// reporting a mistake.
    pub(crate) fn decode(node: &Node, report: &mut Report<'_>) -> Option<Self> {
        let value = T::decode(node, report)?;
        Some(Self { value, at: node.at, key: node.at })
    }
}

/// Reports that `node` is not a value of the type that `what` names.
pub(crate) fn unexpected(node: &Node, what: &str, report: &mut Report<'_>) {
    report.plain_error(node.at, format_args!("expected {what}, found {}", found(node)));
}

/// Reports, with the hint `hint`, that `node` is not a value of the type that `what` names.
pub(crate) fn unexpected_but(node: &Node, what: &str, hint: &str, report: &mut Report<'_>) {
    report.error(node.at, format_args!("expected {what}, found {}", found(node)), hint);
}

/// Returns a description of the value of `node`, for a message that states what was found in the
/// file.
fn found(node: &Node) -> String {
    match &node.kind {
        NodeKind::Null => "nothing".to_owned(),
        NodeKind::Plain(text) | NodeKind::Quoted(text) => quoted(text),
        NodeKind::Sequence(_) => "a list".to_owned(),
        NodeKind::Mapping(_) => "keys with values".to_owned(),
    }
}
