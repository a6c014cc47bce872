//! Expressions about a request: conditions, and texts that can be the value of a subject.
//!
//! A policy file contains expressions in a subset of the Common Expression Language (CEL). This
//! module defines their compiled form. The evaluation of a compiled expression cannot fail and
//! contains no loops. If the request lacks an attribute, the attribute is an empty text.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// A condition on a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// A constant: the condition is always met or never met.
    Constant(bool),
    /// The condition that all conditions in the list are met.
    All(Vec<Self>),
    /// The condition that at least one of the conditions in the list is met.
    Any(Vec<Self>),
    /// The condition that the condition in the box is not met.
    Not(Box<Self>),
    /// The condition that both texts have the same bytes.
    Equal(Text, Text),
    /// The condition that the first text begins with the second.
    StartsWith(Text, Text),
    /// The condition that the first text ends with the second.
    EndsWith(Text, Text),
    /// The condition that the first text contains the second.
    Contains(Text, Text),
    /// The condition that the first text equals one of the texts in the list.
    OneOf(Text, Vec<Text>),
    /// The condition that the text has at least the given number of bytes.
    IsAtLeast(Text, u64),
    /// The condition that the request has the attribute.
    Has(Attribute),
}

/// A text made from attributes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Text {
    /// A constant text.
    Literal(Box<str>),
    /// The value of an attribute, or an empty text if the request lacks the attribute.
    Of(Attribute),
    /// The concatenation of all texts.
    Joined(Vec<Self>),
    /// The first text if the condition is met, otherwise the second text.
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
    /// The value of the header field with this name. The name is in lower case. A field that occurs
    /// more than once counts as missing.
    Header(Box<str>),
    /// The decoded value of the query parameter with this name.
    Parameter(Box<str>),
    /// The decoded value of the cookie with this name.
    Cookie(Box<str>),
    /// The value of the dimension with this index in the policy's dimensions.
    Dimension(usize),
}

/// A function that returns the value of an attribute, or `None` if the request lacks the attribute.
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
    /// Returns the text for a request. `read` returns the request's attributes.
    pub(super) fn value<'a>(&'a self, read: Read<'_, 'a>) -> Cow<'a, [u8]> {
        match self {
            Self::Literal(text) => Cow::Borrowed(text.as_bytes()),
            Self::Of(attribute) => read(attribute).unwrap_or_default(),
            Self::Joined(all) => {
                let mut joined = Vec::new();
                all.iter().for_each(|one| joined.extend_from_slice(&one.value(read)));
                Cow::Owned(joined)
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

/// The longest search text, in bytes, that [`contains`] compares at every position. For a longer
/// search text, [`contains`] uses another algorithm.
const SHORT_PART: usize = 16;

/// Returns whether `text` contains `part`. Both can be long and come from the client, so the
/// function takes time linear in their lengths.
fn contains(text: &[u8], part: &[u8]) -> bool {
    if part.len() <= SHORT_PART {
        return part.is_empty() || text.windows(part.len()).any(|window| window == part);
    }
    if text.len() < part.len() {
        return false;
    }
    // This is the algorithm of Knuth, Morris and Pratt.
    let borders = borders(part);
    let mut met = 0;
    for byte in text {
        while met > 0 && part[met] != *byte {
            met = borders[met - 1];
        }
        met += usize::from(part[met] == *byte);
        if met == part.len() {
            return true;
        }
    }
    false
}

/// Returns, for each prefix of `part`, the length of its longest border: the longest proper prefix
/// of the prefix that is also a suffix of the prefix.
fn borders(part: &[u8]) -> Vec<usize> {
    let mut borders = alloc::vec![0; part.len()];
    let mut border = 0;
    for index in 1..part.len() {
        while border > 0 && part[index] != part[border] {
            border = borders[border - 1];
        }
        border += usize::from(part[index] == part[border]);
        borders[index] = border;
    }
    borders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_parts_are_found_where_short_ones_would_be() {
        let mut drawn = 1_u64;
        let mut draw = |below: usize| {
            drawn = drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (drawn >> 33) as usize % below
        };
        let mut found = 0;
        for _ in 0..20_000 {
            let text: Vec<u8> = (0..draw(120)).map(|_| b"ab"[usize::from(draw(8) == 0)]).collect();
            let part: Vec<u8> = (0..draw(40)).map(|_| b"ab"[usize::from(draw(12) == 0)]).collect();
            let expected = part.is_empty() || text.windows(part.len()).any(|window| window == part);
            assert_eq!(contains(&text, &part), expected, "{text:?} {part:?}");
            found += usize::from(expected && part.len() > SHORT_PART);
        }
        assert!(found > 100, "{found}");
    }

    #[test]
    fn a_text_that_nearly_contains_the_part_everywhere_takes_linear_time() {
        let text = alloc::vec![b'a'; 4 << 20];
        let mut part = alloc::vec![b'a'; 2 << 20];
        *part.last_mut().unwrap() = b'b';
        // A search that compares the part at every position would take 4,400,000,000,000
        // comparisons of bytes.
        assert!(!contains(&text, &part));
    }
}
