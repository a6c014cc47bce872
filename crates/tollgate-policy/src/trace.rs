//! The trace of one request: which rules and limits apply, and why the other rules do not.

use std::fmt;

use tollgate_core::policy::{MatchMode, Mismatch, Plan, PlannedCharge, Rule, RuleMode, ValueMatch};
use tollgate_core::{KeyedHash, Policy, RequestAttributes};

use crate::explain::limit;

/// The rules and limits that apply to one request. [`Display`](fmt::Display) writes them line by
/// line.
#[derive(Clone, Debug)]
pub struct Trace<'p> {
    policy: &'p Policy,
    /// What happened with each rule, in the order of the rules.
    pub steps: Vec<RuleTrace<'p>>,
    /// The plan of the request, which contains its charges.
    pub plan: Plan<'p>,
}

/// One rule, and what happened with it for the request.
#[derive(Clone, Copy, Debug)]
pub struct RuleTrace<'p> {
    /// The rule of the policy.
    pub rule: &'p Rule,
    /// What happened with the rule.
    pub outcome: RuleOutcome,
}

/// What happened with a rule for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleOutcome {
    /// The rule matches, so its limits apply to the request.
    Matched,
    /// The rule does not match. The value is the first of its conditions that the request does not
    /// meet.
    Mismatch(Mismatch),
    /// The rule was not evaluated, because an earlier rule decided.
    NotReached,
}

/// Returns the rules and limits of `policy` that apply to a request. Credentials appear only as
/// hashes, which are computed with `key`.
#[must_use]
pub fn trace<'p>(
    policy: &'p Policy,
    attributes: &RequestAttributes<'_>,
    key: &dyn KeyedHash,
) -> Trace<'p> {
    let mut is_decided = false;
    let step = |rule: &'p Rule| {
        let outcome = match policy.first_mismatch(rule, attributes) {
            _ if is_decided => RuleOutcome::NotReached,
            Some(unmet) => RuleOutcome::Mismatch(unmet),
            None => {
                is_decided = policy.match_mode() == MatchMode::FirstMatch;
                RuleOutcome::Matched
            }
        };
        RuleTrace { rule, outcome }
    };
    let steps = policy.rules().iter().map(step).collect();
    Trace { policy, steps, plan: policy.plan(attributes, key) }
}

impl fmt::Display for Trace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.steps.iter().map(|step| step.rule.name.len()).max().unwrap_or(0);
        for RuleTrace { rule, outcome } in &self.steps {
            write!(f, "{:width$}  ", rule.name)?;
            match outcome {
                RuleOutcome::Matched => match rule.mode {
                    RuleMode::Enforce => writeln!(f, "matches")?,
                    RuleMode::Shadow => writeln!(f, "matches, shadow: counted, never refused")?,
                },
                RuleOutcome::NotReached => writeln!(f, "not reached")?,
                RuleOutcome::Mismatch(unmet) => writeln!(f, "no: {}", self.unmet(rule, *unmet))?,
            }
        }
        if let Some(ambiguity) = self.plan.ambiguity {
            return writeln!(
                f,
                "The request is refused with {}: {}",
                ambiguity.status(),
                ambiguity.detail()
            );
        }
        if self.plan.rules.is_empty() {
            return writeln!(f, "No rule matches: the request is not limited.");
        }
        if self.plan.enforced.is_empty() && self.plan.shadowed.is_empty() {
            return writeln!(f, "The request is not charged on any limit.");
        }
        charges(f, "charged, all or none", self.policy, &self.plan.enforced)?;
        charges(f, "counted, never refused", self.policy, &self.plan.shadowed)
    }
}

impl Trace<'_> {
    fn unmet(&self, rule: &Rule, unmet: Mismatch) -> String {
        let matches = &rule.matches;
        let name = |index: usize| self.policy.dimensions().get(index).map_or("?", |one| &*one.name);
        match unmet {
            Mismatch::Path => {
                let paths: Vec<&str> = matches.paths.iter().map(|path| path.as_str()).collect();
                format!("the path is not {}", paths.join(" or "))
            }
            Mismatch::Method => format!("the method is not {}", matches.methods.join(" or ")),
            Mismatch::Host => format!("the host is not {}", matches.hosts.join(" or ")),
            Mismatch::Network => {
                let lists: Vec<&str> = matches.networks.iter().map(|list| &*list.name).collect();
                format!("the client is not from {}", lists.join(" or "))
            }
            Mismatch::Header(index) => wrong_value("header", matches.headers.get(index)),
            Mismatch::Query(index) => wrong_value("query parameter", matches.query.get(index)),
            Mismatch::Cookie(index) => wrong_value("cookie", matches.cookies.get(index)),
            Mismatch::When => {
                let text = matches.when.as_ref().map_or("?", |when| &*when.text);
                format!("the expression is not met: {text}")
            }
            Mismatch::Any => {
                format!("the request meets none of: {}", limit::sets(self.policy, &matches.any))
            }
            Mismatch::Not(index) => match matches.not.get(index) {
                Some(set) => {
                    format!("the request meets: {}", limit::conditions(self.policy, set))
                }
                None => "the request meets what it must not".to_owned(),
            },
            Mismatch::Has(index) => format!("the request has no {}", name(index)),
            Mismatch::Lacks(index) => format!("the request has a value for {}", name(index)),
        }
    }
}

/// Describes a condition that failed because a header, query parameter or cookie is missing or has
/// another value. `kind` states which of these it is.
fn wrong_value(kind: &str, wanted: Option<&ValueMatch>) -> String {
    let Some(wanted) = wanted else { return format!("a {kind} is missing") };
    match limit::values(wanted) {
        Some(values) => format!("the {kind} {} is not {values}", wanted.name),
        None => format!("the {kind} {} is missing", wanted.name),
    }
}

fn charges(
    f: &mut fmt::Formatter<'_>,
    title: &str,
    policy: &Policy,
    charges: &[PlannedCharge],
) -> fmt::Result {
    if charges.is_empty() {
        return Ok(());
    }
    writeln!(f, "{title}")?;
    let width = charges.iter().map(|one| one.limit.name().len()).max().unwrap_or(0);
    for PlannedCharge { limit, subject, cost, .. } in charges {
        let known = policy.limits().iter().find(|known| known.limit.name() == limit.name());
        let text = known.map(|known| limit::charged(policy, known, limit)).unwrap_or_default();
        writeln!(f, "  {:width$}  cost {} for {subject} — {text}", limit.name(), cost.get())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::Headers;

    struct Sum;

    impl KeyedHash for Sum {
        fn hash(&self, bytes: &[u8]) -> [u8; 16] {
            [bytes.iter().fold(0, |sum: u8, byte| sum.wrapping_add(*byte)); 16]
        }
    }

    const POLICY: &str = "
subjects: { token: { header: authorization }, address: { client_address: true } }
limits:
  core: { quota: 5000, window: 1h, per: token }
  points: { quota: 900, window: 1m, per: token, visible: false }
  anonymous: { quota: 60, window: 1h, per: address }
rules:
  - { name: search, match: { path: /search/**, has: token }, limits: core }
  - { name: write, match: { method: POST, has: token }, limits: [core, { points: 5 }] }
  - { name: beta, match: { header: { x-beta: '1' } }, limits: core }
  - { name: partner, match: { host: partner.example }, limits: [] }
  - { name: known, match: { has: token }, limits: core }
  - { name: stranger, match: { lacks: token }, limits: anonymous }
  - { name: rest, limits: [] }
";

    fn traced(method: &str, headers: &dyn Headers) -> String {
        let loaded = crate::parse("shop.yaml", POLICY).unwrap();
        let peer = "192.0.2.1".parse().ok();
        let attributes =
            RequestAttributes { method, path: "/a", query: None, host: None, peer, headers };
        trace(&loaded.policy, &attributes, &Sum).to_string()
    }

    #[test]
    fn every_rule_says_why_it_did_not_match() {
        let expected = "\
search    no: the path is not /search/**
write     no: the method is not POST
beta      no: the header x-beta is not 1
partner   no: the host is not partner.example
known     no: the request has no token
stranger  matches
rest      not reached
charged, all or none
  anonymous  cost 1 for address=192.0.2.1 — 60 requests per 1h for each address
";
        assert_eq!(traced("GET", &()), expected);
    }

    struct Token;

    impl Headers for Token {
        fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
            (name == "authorization" && index == 0).then_some(b"Bearer a")
        }
    }

    #[test]
    fn what_services_read_in_different_ways_is_refused() {
        let loaded = crate::parse("shop.yaml", POLICY).unwrap();
        let path = "/x%2fsearch";
        let attributes = RequestAttributes {
            method: "GET",
            path,
            query: None,
            host: None,
            peer: None,
            headers: &(),
        };
        let traced = trace(&loaded.policy, &attributes, &Sum).to_string();
        let last = traced.lines().last();
        let expected = "The request is refused with 400: The path holds an encoded slash (%2f).";
        assert_eq!(last, Some(expected), "{traced}");
    }

    #[test]
    fn credentials_show_as_hashes() {
        let expected = "\
charged, all or none
  core    cost 1 for token=#6161616161616161 — 5000 requests per 1h for each token
  points  cost 5 for token=#6161616161616161 — 900 requests per 1m for each token; hidden
";
        let traced = traced("POST", &Token);
        assert!(traced.ends_with(expected), "{traced}");
    }
}
