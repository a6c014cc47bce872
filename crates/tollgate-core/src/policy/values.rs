//! Conditions on headers, query parameters and cookies.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::credential::cookie_values;
use super::pattern::Pattern;
use super::query;
use crate::attributes::{Headers, RequestAttributes};

/// A condition on a header, a query parameter or a cookie, which must be present. If a request has
/// several with the same name, at least one of them must match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueMatch {
    /// The name of the header, the query parameter or the cookie. The name of a header is in lower
    /// case.
    pub name: Box<str>,
    /// The accepted values, of which one must match. If the list is empty, every value matches.
    pub values: Vec<ValuePattern>,
}

/// A value, or a pattern of values. Both comparisons are case-sensitive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValuePattern {
    /// The value of the request must be this value. White space around the value is ignored.
    Exact(Box<str>),
    /// The value of the request must match this pattern, in which `*` matches any number of
    /// characters.
    Pattern(Pattern),
}

impl ValueMatch {
    fn fits(&self, found: &[u8]) -> bool {
        self.values.is_empty() || self.values.iter().any(|value| value.fits(found))
    }

    pub(super) fn fits_header(&self, headers: &dyn Headers) -> bool {
        let mut values = (0..).map_while(|index| headers.value(&self.name, index));
        values.any(|found| self.fits(found.trim_ascii()))
    }

    pub(super) fn fits_query(&self, attributes: &RequestAttributes<'_>) -> bool {
        let mut values = query::values(attributes.query.unwrap_or_default(), &self.name);
        values.any(|sent| query::with_decoded(sent, |found| self.fits(found.trim_ascii())))
    }

    pub(super) fn fits_cookie(&self, headers: &dyn Headers) -> bool {
        // In a cookie, `+` is an ordinary character and not an encoded space.
        cookie_values(headers, &self.name).any(|sent| match sent.contains(&b'%') {
            true => self.fits(&super::path::percent_decoded(sent)),
            false => self.fits(sent),
        })
    }
}

impl ValuePattern {
    fn fits(&self, found: &[u8]) -> bool {
        match self {
            Self::Exact(value) => found == value.as_bytes(),
            Self::Pattern(pattern) => pattern.matches(found),
        }
    }

    /// Returns the value or the pattern as it is written in the policy.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Exact(value) => value,
            Self::Pattern(pattern) => pattern.as_str(),
        }
    }
}
