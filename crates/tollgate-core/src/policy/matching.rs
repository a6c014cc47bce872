//! The conditions of a rule.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::Cell;

use super::Ambiguity;
use super::address::Forwarding;
use super::expression::{Attribute, Condition};
use super::host::host_name;
use super::networks::NetworkList;
use super::path::{NormalPath, PathPattern};
use super::values::ValueMatch;
use crate::attributes::RequestAttributes;

/// The deepest nesting of conditions in `not` and `any`.
pub const MAX_CONDITION_DEPTH: usize = 4;

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
    pub headers: Vec<ValueMatch>,
    /// Query parameters that must be present.
    pub query: Vec<ValueMatch>,
    /// Cookies that must be present.
    pub cookies: Vec<ValueMatch>,
    /// Dimensions for which the request must have a value; indices into the policy's dimensions.
    pub has: Vec<usize>,
    /// Dimensions for which the request must have no value.
    pub lacks: Vec<usize>,
    /// An expression that must be met.
    pub when: Option<Box<WrittenCondition>>,
    /// Sets of conditions of which at least one must be met, if there are any. Their path patterns
    /// capture no parameters.
    pub any: Vec<Self>,
    /// Sets of conditions of which none may be met.
    pub not: Vec<Self>,
}

/// An expression, and the text that it was written as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenCondition {
    /// The text.
    pub text: Box<str>,
    /// The expression.
    pub condition: Condition,
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
    /// A query parameter is missing or has another value; its index in [`RequestMatch::query`].
    Query(usize),
    /// A cookie is missing or has another value; its index in [`RequestMatch::cookies`].
    Cookie(usize),
    /// The request has no value for this dimension; an index into the policy's dimensions.
    Has(usize),
    /// The request has a value for this dimension; an index into the policy's dimensions.
    Lacks(usize),
    /// The expression is not met.
    When,
    /// None of the conditions in [`RequestMatch::any`] is met.
    Any,
    /// The conditions with this index in [`RequestMatch::not`] are met.
    Not(usize),
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
        let nested = self.nested().flat_map(Self::network_lists);
        self.networks.iter().chain(nested).collect()
    }

    /// Returns the path patterns in the conditions.
    #[must_use]
    pub fn path_patterns(&self) -> Vec<&PathPattern> {
        self.paths.iter().chain(self.nested().flat_map(Self::path_patterns)).collect()
    }

    /// Returns the conditions in `any` and in `not`.
    pub fn nested(&self) -> impl Iterator<Item = &Self> {
        self.any.iter().chain(&self.not)
    }

    /// Returns whether all dimensions are below `dimensions`, and the nesting is not deeper than
    /// [`MAX_CONDITION_DEPTH`].
    pub(super) fn is_whole(&self, dimensions: usize, depth: usize) -> bool {
        depth <= MAX_CONDITION_DEPTH
            && self.has.iter().chain(&self.lacks).all(|index| *index < dimensions)
            && self.when.iter().all(|one| refers_below(&one.condition, dimensions))
            && self.nested().all(|nested| nested.is_whole(dimensions, depth + 1))
    }

    /// Makes path patterns match without regard to upper and lower case.
    pub(super) fn ignore_path_case(&mut self) {
        let patterns = core::mem::take(&mut self.paths).into_iter();
        self.paths = patterns.map(PathPattern::ignoring_case).collect();
        self.any.iter_mut().chain(&mut self.not).for_each(Self::ignore_path_case);
    }

    /// Returns whether conditions may be about the method, the path or the query.
    pub(super) fn is_about_operation(&self) -> bool {
        let is_empty = self.methods.is_empty() && self.paths.is_empty() && self.query.is_empty();
        !(is_empty && self.when.is_none())
    }

    /// Checks the conditions on the query.
    pub(super) fn check_query(&self, attributes: &RequestAttributes<'_>) -> Result<(), Mismatch> {
        match self.query.iter().position(|wanted| !wanted.fits_query(attributes)) {
            Some(index) => Err(Mismatch::Query(index)),
            None => Ok(()),
        }
    }

    /// Checks the conditions about the caller: hosts, networks, headers and cookies, not method,
    /// path or query.
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
        let headers = attributes.headers;
        if let Some(index) = self.headers.iter().position(|wanted| !wanted.fits_header(headers)) {
            return Err(Mismatch::Header(index));
        }
        match self.cookies.iter().position(|wanted| !wanted.fits_cookie(headers)) {
            Some(index) => Err(Mismatch::Cookie(index)),
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

/// Returns whether all dimensions in the condition are below `dimensions`.
fn refers_below(condition: &Condition, dimensions: usize) -> bool {
    let mut is_below = true;
    condition.attributes(&mut |attribute| {
        is_below &= !matches!(attribute, Attribute::Dimension(index) if *index >= dimensions);
    });
    is_below
}

fn host_fits(own: &str, host: &str) -> bool {
    match own.strip_prefix('*') {
        Some(below) => host.len() > below.len() && host.ends_with(below),
        None => own == host,
    }
}
