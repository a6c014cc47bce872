//! From the tree to keys and values: the forms that every part of a policy file is made of.
//!
//! Reading never stops at a mistake: what can be read is, so that all mistakes are told at once.

mod anything;
mod duration;
mod keys;
mod list;
mod names;
mod number;
mod percent;
mod renamed;
mod size;
mod word;

use schemars::JsonSchema;

pub(crate) use anything::Anything;
pub(crate) use duration::Duration;
pub(crate) use keys::{Keys, Property, key_name, keys, object_schema};
pub(crate) use list::{List, OneOrMore};
pub(crate) use names::{Named, Names, is_name};
pub(crate) use number::Whole;
pub(crate) use percent::Percent;
pub(crate) use size::Size;
pub(crate) use word::{Flag, Present, Text, Word, read_word, word_schema, words};

use crate::report::{Report, is_shown};
use crate::span::Span;
use crate::tree::{Node, NodeKind};

/// What can be read from a node.
pub(crate) trait Decode: JsonSchema + Sized {
    /// What it is, with its article and an example where that helps.
    const WHAT: &'static str;

    /// Reads it; `None` if that cannot be done, which is reported.
    fn decode(node: &Node, report: &mut Report<'_>) -> Option<Self>;
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Spanned<T> {
    pub(crate) value: T,
    pub(crate) at: Span,
    /// Where its key stands, or it itself if it has none.
    pub(crate) key: Span,
}

/// The value of a key.
#[derive(Clone, Debug, Default)]
pub(crate) enum Field<T> {
    /// The key is not there.
    #[default]
    Absent,
    /// It is there, and what is wrong with its value is reported.
    Invalid,
    Value(Spanned<T>),
}

impl<T: Clone> Field<T> {
    /// This one, or `other` where nothing is written.
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

    /// What is written, or the default if nothing is; `None` if what is written is wrong.
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

    /// Whether it is there and cannot be used, which is reported.
    pub(crate) fn is_invalid(&self) -> bool {
        matches!(self, Self::Invalid)
    }
}

impl<T: Decode> Spanned<T> {
    /// Reads what has no key.
    pub(crate) fn decode(node: &Node, report: &mut Report<'_>) -> Option<Self> {
        let value = T::decode(node, report)?;
        Some(Self { value, at: node.at, key: node.at })
    }
}

/// Reports that `node` is not what it should be.
pub(crate) fn unexpected(node: &Node, what: &str, report: &mut Report<'_>) {
    report.plain_error(node.at, format_args!("expected {what}, found {}", found(node)));
}

/// Reports that `node` is not what it should be, and what would be.
pub(crate) fn unexpected_but(node: &Node, what: &str, hint: &str, report: &mut Report<'_>) {
    report.error(node.at, format_args!("expected {what}, found {}", found(node)), hint);
}

/// A node as a message names it.
fn found(node: &Node) -> String {
    match &node.kind {
        NodeKind::Null => "nothing".to_owned(),
        NodeKind::Plain(text) | NodeKind::Quoted(text) => quoted(text),
        NodeKind::Sequence(_) => "a list".to_owned(),
        NodeKind::Mapping(_) => "keys with values".to_owned(),
    }
}

/// A text in quotes, on one line, and not endless.
pub(crate) fn quoted(text: &str) -> String {
    const MAX_QUOTED: usize = 48;
    let mut shown = String::from("\"");
    for letter in text.chars().take(MAX_QUOTED) {
        if is_shown(letter) {
            shown.push(letter);
        } else {
            shown.extend(letter.escape_default());
        }
    }
    shown.push_str(if text.chars().nth(MAX_QUOTED).is_some() { "…\"" } else { "\"" });
    shown
}
