//! Which requests a rule speaks of.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::Cell;

use super::Ambiguity;
use super::host::host_name;
use super::path::{NormalPath, PathPattern};
use crate::attributes::RequestAttributes;

/// Conditions that must all hold; of several values in one, any may. None at all hold for every
/// request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestMatch {
    /// Methods in capitals. Upper and lower case do not differ.
    pub methods: Vec<Box<str>>,
    /// Path patterns.
    pub paths: Vec<PathPattern>,
    /// Hosts, in lower case and without a port; `*.example.com` stands for every name below it.
    pub hosts: Vec<Box<str>>,
    /// Headers that must be there.
    pub headers: Vec<HeaderMatch>,
    /// Dimensions that the request must have a value for; indices into the policy's.
    pub has: Vec<usize>,
    /// Dimensions that it must have none for.
    pub lacks: Vec<usize>,
}

/// A header that must be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderMatch {
    /// Its name in lower case.
    pub name: Box<str>,
    /// The value it must have, white space around it apart; any if none is given.
    pub value: Option<Box<str>>,
}

/// The first condition of a rule that a request does not meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// No path pattern fits.
    Path,
    /// No method fits.
    Method,
    /// No host fits.
    Host,
    /// A header is not there, or has another value; its index in [`RequestMatch::headers`].
    Header(usize),
    /// It has no value for this dimension; an index into the policy's.
    Has(usize),
    /// It has a value for this dimension; an index into the policy's.
    Lacks(usize),
}

/// What matched: for the dimensions that are read from it.
pub(super) struct Matched<'a> {
    pub(super) rule: &'a str,
    pub(super) pattern: Option<&'a PathPattern>,
    pub(super) path: &'a NormalPath<'a>,
    /// The first value that services read in different ways.
    pub(super) ambiguity: &'a Cell<Option<Ambiguity>>,
}

impl Matched<'_> {
    /// Remembers that a value can be read in different ways; the first one stands.
    pub(super) fn note(&self, ambiguity: Ambiguity) {
        self.ambiguity.set(self.ambiguity.get().or(Some(ambiguity)));
    }
}

impl RequestMatch {
    /// Checks what the rule says of the caller: hosts and headers, not method or path.
    pub(super) fn check_caller(&self, attributes: &RequestAttributes<'_>) -> Result<(), Mismatch> {
        let host = || attributes.host.map(host_name);
        let speaks_of_host = self.hosts.is_empty()
            || host().is_some_and(|host| self.hosts.iter().any(|own| host_fits(own, &host)));
        if !speaks_of_host {
            return Err(Mismatch::Host);
        }
        match self.headers.iter().position(|header| !header.fits(attributes)) {
            Some(index) => Err(Mismatch::Header(index)),
            None => Ok(()),
        }
    }

    /// Whether the method fits.
    pub(super) fn matches_method(&self, method: &str) -> bool {
        self.methods.is_empty() || self.methods.iter().any(|own| own.eq_ignore_ascii_case(method))
    }

    /// The pattern that the path fits: `None` if none does, `Some(None)` if there are no patterns.
    pub(super) fn pattern(&self, path: &NormalPath<'_>) -> Option<Option<&PathPattern>> {
        if self.paths.is_empty() {
            return Some(None);
        }
        self.paths.iter().find(|pattern| pattern.matches(path)).map(Some)
    }
}

impl HeaderMatch {
    fn fits(&self, attributes: &RequestAttributes<'_>) -> bool {
        let mut values = (0..).map_while(|index| attributes.headers.value(&self.name, index));
        values.any(|found| {
            self.value.as_ref().is_none_or(|value| found.trim_ascii() == value.as_bytes())
        })
    }
}

fn host_fits(own: &str, host: &str) -> bool {
    match own.strip_prefix('*') {
        Some(below) => host.len() > below.len() && host.ends_with(below),
        None => own == host,
    }
}
