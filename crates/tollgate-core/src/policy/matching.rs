//! The conditions of a rule.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::Cell;

use super::address::Forwarding;
use super::host::host_name;
use super::networks::NetworkList;
use super::path::{NormalPath, PathPattern};
use super::Ambiguity;
use crate::attributes::RequestAttributes;

/// Conditions that must all be met; a condition with several values is met by any of them. An empty
/// set matches every request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestMatch {
    /// Methods in capitals, compared without regard to case.
    pub methods: Vec<Box<str>>,
    /// Path patterns.
    pub paths: Vec<PathPattern>,
    /// Hosts, in lower case and without a port; `*.example.com` matches every name below it.
    pub hosts: Vec<Box<str>>,
    /// Networks of the client. A client without an address is in none of them.
    pub networks: Vec<Arc<NetworkList>>,
    /// Headers that must be present.
    pub headers: Vec<HeaderMatch>,
    /// Dimensions for which the request must have a value; indices into the policy's dimensions.
    pub has: Vec<usize>,
    /// Dimensions for which the request must have no value.
    pub lacks: Vec<usize>,
}

/// A header that must be present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderMatch {
    /// The name in lower case.
    pub name: Box<str>,
    /// The required value, without surrounding white space; `None` for any value.
    pub value: Option<Box<str>>,
}

/// The first condition of a rule that a request does not meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// No path pattern matches.
    Path,
    /// No method matches.
    Method,
    /// No host matches.
    Host,
    /// The client's address is in none of the networks, or unknown.
    Network,
    /// A header is missing or has another value; its index in [`RequestMatch::headers`].
    Header(usize),
    /// The request has no value for this dimension; an index into the policy's dimensions.
    Has(usize),
    /// The request has a value for this dimension; an index into the policy's dimensions.
    Lacks(usize),
}

/// The match of a rule, from which dimensions are read.
pub(super) struct Matched<'a> {
    pub(super) rule: &'a str,
    pub(super) pattern: Option<&'a PathPattern>,
    pub(super) path: &'a NormalPath<'a>,
    /// The first ambiguous value.
    pub(super) ambiguity: &'a Cell<Option<Ambiguity>>,
}

impl Matched<'_> {
    /// Records an ambiguous value, unless one is recorded already.
    pub(super) fn note(&self, ambiguity: Ambiguity) {
        self.ambiguity.set(self.ambiguity.get().or(Some(ambiguity)));
    }
}

impl RequestMatch {
    /// Returns the lists of networks in the conditions.
    #[must_use]
    pub fn network_lists(&self) -> Vec<&Arc<NetworkList>> {
        self.networks.iter().collect()
    }

    /// Checks the conditions about the caller: hosts, networks and headers, not method or path.
    pub(super) fn check_caller(
        &self,
        attributes: &RequestAttributes<'_>,
        forwarding: &Forwarding,
    ) -> Result<(), Mismatch> {
        let host = || attributes.host.map(host_name);
        let speaks_of_host = self.hosts.is_empty()
            || host().is_some_and(|host| self.hosts.iter().any(|own| host_fits(own, &host)));
        if !speaks_of_host {
            return Err(Mismatch::Host);
        }
        if !self.networks.is_empty() && !self.is_from_networks(attributes, forwarding) {
            return Err(Mismatch::Network);
        }
        match self.headers.iter().position(|header| !header.fits(attributes)) {
            Some(index) => Err(Mismatch::Header(index)),
            None => Ok(()),
        }
    }

    fn is_from_networks(
        &self,
        attributes: &RequestAttributes<'_>,
        forwarding: &Forwarding,
    ) -> bool {
        let client = forwarding.client(attributes);
        let contains = |address| self.networks.iter().any(|list| list.networks.contains(address));
        client.is_some_and(contains)
    }

    /// Returns whether the method matches.
    pub(super) fn matches_method(&self, method: &str) -> bool {
        self.methods.is_empty() || self.methods.iter().any(|own| own.eq_ignore_ascii_case(method))
    }

    /// Returns the pattern that matches the path: `None` if none does, `Some(None)` if there are no
    /// patterns.
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
