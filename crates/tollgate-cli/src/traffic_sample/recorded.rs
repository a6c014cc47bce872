//! The parts of a request that a policy reads, which are the parts that a sample records.

use std::collections::BTreeMap;

use tollgate::model::policy::{Attribute, Dimension, Policy, RequestMatch, SubjectSource};

use crate::simulate::log::HEADERS_MAX;

/// The names that a policy reads, and for each name whether its values are credentials.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Recorded {
    /// The names of the headers in lower case, each with whether its values are credentials. There
    /// are at most [`HEADERS_MAX`], of which the last one is reserved for cookies.
    pub(super) headers: BTreeMap<Box<str>, bool>,
    pub(super) cookies: BTreeMap<Box<str>, bool>,
    /// Whether a credential may be in the query.
    pub(super) is_query_secret: bool,
}

/// Headers that are not recorded like the other headers, because the record has a field of its own
/// for them, or because they must never be recorded unchanged.
const OTHER_FIELDS: [&str; 4] = ["host", "referer", "user-agent", "cookie"];

/// Headers that always contain credentials, whatever a policy reads from them.
const CREDENTIALS: [&str; 2] = ["authorization", "proxy-authorization"];

impl Recorded {
    /// Returns the parts that `policy` reads.
    pub(super) fn of(policy: &Policy) -> Self {
        let mut recorded = Self::default();
        for dimension in policy.dimensions() {
            recorded.add_source(&dimension.source);
        }
        for rule in policy.rules() {
            recorded.add_match(&rule.matches);
        }
        while recorded.headers.len() >= HEADERS_MAX {
            recorded.headers.pop_last();
        }
        recorded
    }

    fn add_source(&mut self, source: &SubjectSource) {
        self.is_query_secret |= source.is_secret_in_query();
        match source {
            SubjectSource::Credential { header } => self.add_header(header, true),
            SubjectSource::Header { header } => self.add_header(header, false),
            SubjectSource::Cookie { cookie } => self.add_cookie(cookie, true),
            SubjectSource::FirstOf { dimensions } => {
                dimensions.iter().for_each(|Dimension { source, .. }| self.add_source(source));
            }
            SubjectSource::Claim(claim) => self.add_source(&claim.token),
            SubjectSource::Expression { text, is_secret, .. } => {
                text.attributes(&mut |attribute| self.add_attribute(attribute, *is_secret));
            }
            _ => {}
        }
    }

    fn add_match(&mut self, matches: &RequestMatch) {
        for header in &matches.headers {
            self.add_header(&header.name, false);
        }
        for cookie in &matches.cookies {
            self.add_cookie(&cookie.name, false);
        }
        if let Some(when) = &matches.when {
            when.condition.attributes(&mut |attribute| self.add_attribute(attribute, false));
        }
        for nested in matches.nested() {
            self.add_match(nested);
        }
    }

    fn add_attribute(&mut self, attribute: &Attribute, is_secret: bool) {
        match attribute {
            Attribute::Header(header) => self.add_header(header, is_secret),
            Attribute::Cookie(cookie) => self.add_cookie(cookie, is_secret),
            _ => {}
        }
    }

    fn add_header(&mut self, header: &str, is_secret: bool) {
        if !OTHER_FIELDS.contains(&header) {
            let is_secret = is_secret || CREDENTIALS.contains(&header);
            *self.headers.entry(header.into()).or_default() |= is_secret;
        }
    }

    fn add_cookie(&mut self, cookie: &str, is_secret: bool) {
        *self.cookies.entry(cookie.into()).or_default() |= is_secret;
    }
}
