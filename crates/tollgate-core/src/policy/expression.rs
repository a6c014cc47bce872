//! Expressions about a request: conditions, and texts that can be a subject.
//!
//! A policy file writes them in a part of the Common Expression Language. This is their compiled
//! form: it cannot fail, contains no loops, and an attribute that the request lacks is an empty text.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// A condition on a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Always or never met.
    Constant(bool),
    /// All conditions are met.
    All(Vec<Self>),
    /// At least one condition is met.
    Any(Vec<Self>),
    /// The condition is not met.
    Not(Box<Self>),
    /// Both texts are the same bytes.
    Equal(Text, Text),
    /// The first text begins with the second.
    StartsWith(Text, Text),
    /// The first text ends with the second.
    EndsWith(Text, Text),
    /// The first text contains the second.
    Contains(Text, Text),
    /// The text is one of the others.
    OneOf(Text, Vec<Text>),
    /// The length of the text in bytes is at least this.
    IsAtLeast(Text, u64),
    /// The request has the attribute.
    Has(Attribute),
}

/// A text made from attributes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Text {
    /// These bytes.
    Literal(Box<str>),
    /// The value of the attribute, or an empty text if the request lacks it.
    Of(Attribute),
    /// All texts, one after the other.
    Joined(Vec<Self>),
    /// The first text if the condition is met, otherwise the second.
    Chosen(Box<(Condition, Self, Self)>),
}

/// An attribute of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attribute {
    /// The method, in capitals.
    Method,
    /// The normalized path without the query.
    Path,
    /// The query as it was sent, without `?`.
    Query,
    /// The requested host, in lower case and without a port.
    Host,
    /// The client's address.
    Address,
    /// A header's value; its name in lower case. A repeated header has none.
    Header(Box<str>),
    /// A parameter of the query, decoded.
    Parameter(Box<str>),
    /// A cookie, decoded.
    Cookie(Box<str>),
    /// The value of a dimension; an index into the policy's dimensions.
    Dimension(usize),
}

/// Returns the value of an attribute, `None` if the request lacks it.
pub(super) type Read<'r, 'a> = &'r dyn Fn(&'a Attribute) -> Option<Cow<'a, [u8]>>;

impl Condition {
    /// Returns whether the condition is met.
    pub(super) fn is_met<'a>(&'a self, read: Read<'_, 'a>) -> bool {
        match self {
            Self::Constant(is_met) => *is_met,
            Self::All(all) => all.iter().all(|one| one.is_met(read)),
            Self::Any(all) => all.iter().any(|one| one.is_met(read)),
            Self::Not(one) => !one.is_met(read),
            Self::Equal(one, other) => one.value(read) == other.value(read),
            Self::StartsWith(one, other) => one.value(read).starts_with(&other.value(read)),
            Self::EndsWith(one, other) => one.value(read).ends_with(&other.value(read)),
            Self::Contains(one, other) => contains(&one.value(read), &other.value(read)),
            Self::OneOf(one, all) => {
                let value = one.value(read);
                all.iter().any(|other| other.value(read) == value)
            }
            Self::IsAtLeast(one, length) => one.value(read).len() as u64 >= *length,
            Self::Has(attribute) => read(attribute).is_some(),
        }
    }

    /// Calls `visit` with every attribute in the condition.
    pub fn attributes<'a>(&'a self, visit: &mut dyn FnMut(&'a Attribute)) {
        match self {
            Self::Constant(_) => {}
            Self::All(all) | Self::Any(all) => all.iter().for_each(|one| one.attributes(visit)),
            Self::Not(one) => one.attributes(visit),
            Self::Equal(one, other)
            | Self::StartsWith(one, other)
            | Self::EndsWith(one, other)
            | Self::Contains(one, other) => {
                one.attributes(visit);
                other.attributes(visit);
            }
            Self::OneOf(one, all) => {
                one.attributes(visit);
                all.iter().for_each(|other| other.attributes(visit));
            }
            Self::IsAtLeast(one, _) => one.attributes(visit),
            Self::Has(attribute) => visit(attribute),
        }
    }
}

impl Text {
    /// Returns the value in a request.
    pub(super) fn value<'a>(&'a self, read: Read<'_, 'a>) -> Cow<'a, [u8]> {
        match self {
            Self::Literal(text) => Cow::Borrowed(text.as_bytes()),
            Self::Of(attribute) => read(attribute).unwrap_or_default(),
            Self::Joined(all) => {
                let values = all.iter().map(|one| one.value(read));
                Cow::Owned(values.fold(Vec::new(), |joined, value| [&joined[..], &value].concat()))
            }
            Self::Chosen(chosen) => {
                let (condition, one, other) = &**chosen;
                if condition.is_met(read) { one.value(read) } else { other.value(read) }
            }
        }
    }

    /// Calls `visit` with every attribute in the text.
    pub fn attributes<'a>(&'a self, visit: &mut dyn FnMut(&'a Attribute)) {
        match self {
            Self::Literal(_) => {}
            Self::Of(attribute) => visit(attribute),
            Self::Joined(all) => all.iter().for_each(|one| one.attributes(visit)),
            Self::Chosen(chosen) => {
                let (condition, one, other) = &**chosen;
                condition.attributes(visit);
                one.attributes(visit);
                other.attributes(visit);
            }
        }
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    part.is_empty() || text.windows(part.len()).any(|window| window == part)
}
