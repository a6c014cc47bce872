//! Compiles the calls of a builder to a policy, or returns every mistake in the calls.

use std::sync::Arc;

use tollgate_core::policy::{
    AddressHeader, Dimension, Forwarding, LimitBinding, LimitRef, MatchMode, Network, PathPattern,
    RequestMatch, Rule as PolicyRule, RuleMode, SubjectSource,
};
use tollgate_core::{Cost, Policy};

use super::rule::Rule;
use crate::quota::SubjectQuota;

/// The calls that the application made on a builder, in their order.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) subjects: Vec<Dimension>,
    pub(super) limits: Vec<(Box<str>, SubjectQuota)>,
    pub(super) rules: Vec<Rule>,
    pub(super) trusted: Vec<Box<str>>,
}

impl Draft {
    /// Adds the subject `name`, which is read from `source`.
    pub(super) fn define(&mut self, name: &str, source: SubjectSource) {
        self.subjects.push(Dimension { name: name.into(), source });
    }
}

/// Creates the policy that the calls in `draft` describe. The error is the list of all mistakes in
/// the calls.
pub(super) fn compile(draft: &Draft) -> Result<Policy, Vec<String>> {
    let mut mistakes = Vec::new();
    let subjects = subjects(&draft.subjects, &mut mistakes);
    let limits = limits(&draft.limits, &subjects, &mut mistakes);
    let names: Vec<&str> = draft.limits.iter().map(|(name, _)| &**name).collect();
    let rules = rules(&draft.rules, &names, &mut mistakes);
    let forwarding = forwarding(&draft.trusted, &mut mistakes);
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    let policy = Policy::new(subjects, limits, rules, MatchMode::FirstMatch);
    let policy = policy.ok_or_else(|| vec!["the limits and rules do not fit together".to_owned()]);
    Ok(policy?.with_forwarding(forwarding))
}

/// Returns the built-in subjects and the subjects of the draft. A subject of the draft replaces a
/// built-in subject of the same name. Adds wrong definitions to `mistakes`.
fn subjects(defined: &[Dimension], mistakes: &mut Vec<String>) -> Vec<Dimension> {
    let mut all: Vec<Dimension> = Vec::new();
    for dimension in defined {
        if dimension.name.is_empty() {
            mistakes.push("a subject needs a name".to_owned());
        }
        if all.iter().any(|other| other.name == dimension.name) {
            mistakes.push(format!("subject `{}`: it is defined twice", dimension.name));
        }
        all.push(dimension.clone());
    }
    for known in known_subjects() {
        if all.iter().all(|own| own.name != known.name) {
            all.push(known);
        }
    }
    all
}

fn limits(
    drafts: &[(Box<str>, SubjectQuota)],
    subjects: &[Dimension],
    mistakes: &mut Vec<String>,
) -> Vec<LimitBinding> {
    if drafts.is_empty() {
        mistakes.push("a limiter needs at least one limit: call `limit`".to_owned());
    }
    let mut bindings = Vec::new();
    for (index, (name, SubjectQuota { quota, per })) in drafts.iter().enumerate() {
        if drafts[..index].iter().any(|(other, _)| other == name) {
            mistakes.push(format!("limit `{name}`: it is defined twice"));
        }
        let mut indices: Vec<usize> = Vec::new();
        for subject in per {
            match subjects.iter().position(|known| known.name == *subject) {
                Some(known) if indices.contains(&known) => {
                    mistakes
                        .push(format!("limit `{name}`: the subject `{subject}` is named twice"));
                }
                Some(known) => indices.push(known),
                None => {
                    let names = quoted(subjects.iter().map(|known| &*known.name));
                    mistakes.push(format!(
                        "limit `{name}`: there is no subject `{subject}`; the subjects are {names}"
                    ));
                }
            }
        }
        match quota.to_named_limit(name) {
            Ok(limit) => bindings.push(LimitBinding { limit: Arc::new(limit), per: indices }),
            Err(error) => mistakes.push(error.to_string()),
        }
    }
    bindings
}

/// Returns the rules in `drafts`, and a last rule for the requests that none of them matches.
/// `limits` has the names of all limits. Adds wrong rules to `mistakes`.
fn rules(drafts: &[Rule], limits: &[&str], mistakes: &mut Vec<String>) -> Vec<PolicyRule> {
    let mut rules: Vec<_> = drafts
        .iter()
        .enumerate()
        .map(|(index, draft)| rule(index + 1, draft, limits, mistakes))
        .collect();
    let all = |limit| LimitRef { limit, cost: Cost::ONE };
    let all = (0..limits.len()).map(all).collect();
    rules.push(PolicyRule::new("others", RequestMatch::default(), all));
    rules
}

fn rule(number: usize, draft: &Rule, limits: &[&str], mistakes: &mut Vec<String>) -> PolicyRule {
    let mut paths = Vec::new();
    for text in &draft.paths {
        match PathPattern::parse(text) {
            Ok(pattern) => paths.push(pattern),
            Err(error) => mistakes.push(format!("rule {number}: path `{text}`: {error}")),
        }
    }
    let cost = draft.cost.unwrap_or(1);
    let cost = Cost::new(cost).filter(|cost| *cost != Cost::PEEK).unwrap_or_else(|| {
        mistakes.push(format!("rule {number}: the cost {cost} must be from 1 to 2^53 - 1"));
        Cost::ONE
    });
    let mut charged: Vec<LimitRef> = Vec::new();
    match &draft.limits {
        None => charged.extend((0..limits.len()).map(|limit| LimitRef { limit, cost })),
        Some(names) => {
            for name in names {
                match limits.iter().position(|known| **known == **name) {
                    Some(limit) if charged.iter().any(|other| other.limit == limit) => {
                        mistakes.push(format!("rule {number}: the limit `{name}` is named twice"));
                    }
                    Some(limit) => charged.push(LimitRef { limit, cost }),
                    None => mistakes.push(format!(
                        "rule {number}: there is no limit `{name}`; the limits are {}",
                        quoted(limits.iter().copied())
                    )),
                }
            }
        }
    }
    let (methods, hosts) = (draft.methods.clone(), draft.hosts.clone());
    let matches = RequestMatch { methods, paths, hosts, ..RequestMatch::default() };
    let mut rule = PolicyRule::new(format!("rule-{number}"), matches, charged);
    if draft.shadow {
        rule.mode = RuleMode::Shadow;
    }
    rule
}

/// Returns the names in backquotes, with commas between them: `` `a`, `b` ``.
fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Returns the settings with which the proxies in `trusted` are trusted to report the client's
/// address. Adds the mistakes in `trusted` to `mistakes`.
fn forwarding(trusted: &[Box<str>], mistakes: &mut Vec<String>) -> Forwarding {
    let mut networks = Vec::new();
    for text in trusted {
        match Network::parse(text) {
            Ok(network) => networks.push(network),
            Err(error) => mistakes.push(format!("trusted proxy `{text}`: {error}")),
        }
    }
    Forwarding { trusted: networks, header: AddressHeader::default(), hops: None }
}

/// Returns the dimensions that every limiter has without a definition: `ip`, `host`, `method` and
/// `route`.
fn known_subjects() -> Vec<Dimension> {
    let address = SubjectSource::ClientAddress { ipv4_prefix: 32, ipv6_prefix: 64 };
    let known = [
        ("ip", address),
        ("host", SubjectSource::Host),
        ("method", SubjectSource::Method),
        ("route", SubjectSource::Route),
    ];
    known.map(|(name, source)| Dimension { name: name.into(), source }).into()
}
