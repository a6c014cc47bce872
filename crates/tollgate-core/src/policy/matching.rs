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

/// Conditions on a request that must all be met. If a condition has several values, one of the
/// values is enough. An empty set of conditions matches every request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestMatch {
    /// Methods in capitals. The comparison with the method of a request ignores case.
    pub methods: Vec<Box<str>>,
    /// Path patterns, of which at least one must match the path of the request.
    pub paths: Vec<PathPattern>,
    /// Hosts, in lower case and without a port. `*.example.com` matches every name below
    /// `example.com`.
    pub hosts: Vec<Box<str>>,
    /// Lists of networks. One of them must contain the client's address. If the address is unknown,
    /// the condition is not met.
    pub networks: Vec<Arc<NetworkList>>,
    /// Conditions on headers. All of them must be met.
    pub headers: Vec<ValueMatch>,
    /// Conditions on query parameters. All of them must be met.
    pub query: Vec<ValueMatch>,
    /// Conditions on cookies. All of them must be met.
    pub cookies: Vec<ValueMatch>,
    /// Dimensions for which the request must have a value, as indices into the policy's dimensions.
    pub has: Vec<usize>,
    /// Dimensions for which the request must have no value, as indices into the policy's
    /// dimensions.
    pub lacks: Vec<usize>,
    /// An expression that the request must meet, or `None`.
    pub when: Option<Box<WrittenCondition>>,
    /// Sets of conditions. If there are any, at least one of these sets must be met. Path patterns
    /// in these sets capture no parameters.
    pub any: Vec<Self>,
    /// Sets of conditions. The rule matches only if none of these sets is met.
    pub not: Vec<Self>,
}

/// An expression, and its text in the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenCondition {
    /// The text of the expression in the policy file.
    pub text: Box<str>,
    /// The compiled expression.
    pub condition: Condition,
}

/// The first condition of a rule that a request does not meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// None of the path patterns of the rule matches the request.
    Path,
    /// The method of the request is none of those that the rule names.
    Method,
    /// The host of the request matches none of those that the rule names.
    Host,
    /// The client's address is in none of the networks, or unknown.
    Network,
    /// The header with this index in [`RequestMatch::headers`] is missing or has another value.
    Header(usize),
    /// The query parameter with this index in [`RequestMatch::query`] is missing or has another
    /// value.
    Query(usize),
    /// The cookie with this index in [`RequestMatch::cookies`] is missing or has another value.
    Cookie(usize),
    /// The request has no value for the dimension with this index in the policy's dimensions.
    Has(usize),
    /// The request has a value for the dimension with this index in the policy's dimensions.
    Lacks(usize),
    /// The request does not meet the expression in [`RequestMatch::when`].
    When,
    /// None of the conditions in [`RequestMatch::any`] is met.
    Any,
    /// The conditions with this index in [`RequestMatch::not`] are met.
    Not(usize),
}

/// A matching rule, with the parts of the request from which the dimensions of subjects read their
/// values.
pub(super) struct Matched<'a> {
    pub(super) rule: &'a str,
    pub(super) pattern: Option<&'a PathPattern>,
    pub(super) path: &'a NormalPath<'a>,
    /// The ambiguity of the first value that was read and is ambiguous, or `None` so far.
    pub(super) ambiguity: &'a Cell<Option<Ambiguity>>,
}

impl Matched<'_> {
    /// Records an ambiguity, unless an earlier one is recorded already.
    pub(super) fn note(&self, ambiguity: Ambiguity) {
        self.ambiguity.set(self.ambiguity.get().or(Some(ambiguity)));
    }
}

impl RequestMatch {
    /// Returns all lists of networks in the conditions, including those in `any` and `not`.
    #[must_use]
    pub fn network_lists(&self) -> Vec<&Arc<NetworkList>> {
        let nested = self.nested().flat_map(Self::network_lists);
        self.networks.iter().chain(nested).collect()
    }

    /// Returns all path patterns in the conditions, including those in `any` and `not`.
    #[must_use]
    pub fn path_patterns(&self) -> Vec<&PathPattern> {
        self.paths.iter().chain(self.nested().flat_map(Self::path_patterns)).collect()
    }

    /// Returns the sets of conditions in `any` and in `not`.
    pub fn nested(&self) -> impl Iterator<Item = &Self> {
        self.any.iter().chain(&self.not)
    }

    /// Returns whether the conditions are valid: all indices of dimensions are below `dimensions`,
    /// and the nesting is not deeper than [`MAX_CONDITION_DEPTH`].
    pub(super) fn is_complete(&self, dimensions: usize, depth: usize) -> bool {
        depth <= MAX_CONDITION_DEPTH
            && self.has.iter().chain(&self.lacks).all(|index| *index < dimensions)
            && self.when.iter().all(|one| refers_below(&one.condition, dimensions))
            && self.nested().all(|nested| nested.is_complete(dimensions, depth + 1))
    }

    /// Changes the path patterns to ignore the difference between upper and lower case.
    pub(super) fn ignore_path_case(&mut self) {
        let patterns = core::mem::take(&mut self.paths).into_iter();
        self.paths = patterns.map(PathPattern::ignoring_case).collect();
        self.any.iter_mut().chain(&mut self.not).for_each(Self::ignore_path_case);
    }

    /// Returns whether the conditions can depend on the method, the path or the query. An
    /// expression in `when` always counts as such a condition.
    pub(super) fn is_about_operation(&self) -> bool {
        let is_empty = self.methods.is_empty() && self.paths.is_empty() && self.query.is_empty();
        !(is_empty && self.when.is_none())
    }

    /// Returns the first condition on a query parameter that the request does not meet, as an
    /// error.
    pub(super) fn check_query(&self, attributes: &RequestAttributes<'_>) -> Result<(), Mismatch> {
        match self.query.iter().position(|wanted| !wanted.fits_query(attributes)) {
            Some(index) => Err(Mismatch::Query(index)),
            None => Ok(()),
        }
    }

    /// Returns the first condition on the host, the network, a header or a cookie that the request
    /// does not meet, as an error. These conditions are about the client. The conditions on the
    /// method, the path and the query are not checked.
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

    /// Returns whether the conditions contain `method`, regardless of case, or no method at all.
    pub(super) fn matches_method(&self, method: &str) -> bool {
        self.methods.is_empty() || self.methods.iter().any(|own| own.eq_ignore_ascii_case(method))
    }

    /// Returns the first path pattern that matches `path`. Returns `Some(None)` if the conditions
    /// contain no path patterns, so every path matches. Returns `None` if none of the path patterns
    /// matches.
    pub(super) fn pattern(&self, path: &NormalPath<'_>) -> Option<Option<&PathPattern>> {
        if self.paths.is_empty() {
            return Some(None);
        }
        self.paths.iter().find(|pattern| pattern.matches(path)).map(Some)
    }
}

/// Returns whether all indices of dimensions in the condition are below `dimensions`.
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
