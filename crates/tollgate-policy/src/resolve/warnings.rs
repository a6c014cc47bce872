//! Warnings about settings that work, but probably not as intended.

use tollgate_core::policy::{Attribute, MatchMode, RequestMatch, Rule, SubjectSource, Text};
use tollgate_core::{Limit, Policy};

use super::mode::warn_of_idle_leases;
use super::names::NameTable;
use crate::decode::quoted;
use crate::raw::{self, Subject};
use crate::report::Report;
use crate::span::Span;

/// Warns of unused names, of rules that never decide, and of counters that unrelated clients share.
pub(super) fn warn(
    policy: &Policy,
    subjects: &NameTable<'_, Subject>,
    limits: &NameTable<'_, raw::Limit>,
    rule_spans: &[Span],
    report: &mut Report<'_>,
) {
    for name in limits.unused() {
        let message = format_args!("nothing uses the limit {}", quoted(&name.value));
        report.warning(name.at, message, "it applies only to callers that name it");
    }
    for name in subjects.unused() {
        let message = format_args!("nothing uses the subject {}", quoted(&name.value));
        report.warning(name.at, message, "name it in a limit's `per`, or in `has` or `lacks`");
    }
    warn_of_idle_leases(policy, limits, report);
    for (index, at) in rule_spans.iter().enumerate() {
        shadowed_rule(policy, index, *at, report);
        shared_counters(policy, index, *at, report);
    }
}

/// Warns of the rule with the index `index` if it never decides, because an earlier rule matches
/// all of its requests. `at` is the position of the rule.
fn shadowed_rule(policy: &Policy, index: usize, at: Span, report: &mut Report<'_>) {
    if policy.match_mode() != MatchMode::FirstMatch {
        return;
    }
    let rules = policy.rules();
    let rule = &rules[index];
    if let Some(earlier) =
        rules[..index].iter().find(|earlier| covers(&earlier.matches, &rule.matches))
    {
        let message = format_args!("the rule {} never decides", quoted(&rule.name));
        let hint =
            format_args!("{} comes first and matches all of its requests", quoted(&earlier.name));
        report.warning(at, message, hint);
    }
}

/// Returns whether `earlier` matches every request that `later` matches.
fn covers(earlier: &RequestMatch, later: &RequestMatch) -> bool {
    fn any_of<T: PartialEq>(earlier: &[T], later: &[T]) -> bool {
        earlier.is_empty() || (!later.is_empty() && later.iter().all(|one| earlier.contains(one)))
    }
    fn all_of<T: PartialEq>(earlier: &[T], later: &[T]) -> bool {
        earlier.iter().all(|one| later.contains(one))
    }
    let takes_every_path = earlier.paths.iter().any(|path| path.as_str() == "/**");
    any_of(&earlier.methods, &later.methods)
        && (takes_every_path || any_of(&earlier.paths, &later.paths))
        && any_of(&earlier.hosts, &later.hosts)
        && any_of(&earlier.networks, &later.networks)
        && all_of(&earlier.headers, &later.headers)
        && all_of(&earlier.query, &later.query)
        && all_of(&earlier.cookies, &later.cookies)
        && (earlier.when.is_none() || earlier.when == later.when)
        && (earlier.any.is_empty() || earlier.any == later.any)
        && all_of(&earlier.not, &later.not)
        && all_of(&earlier.has, &later.has)
        && all_of(&earlier.lacks, &later.lacks)
}

/// Warns of limits of the rule with the index `index` that count by a subject which some requests
/// of the rule may lack. All clients without a value of the subject share one counter.
fn shared_counters(policy: &Policy, index: usize, at: Span, report: &mut Report<'_>) {
    let rule = &policy.rules()[index];
    for binding in rule.limits.iter().map(|used| &policy.limits()[used.limit]) {
        for dimension in &binding.per {
            let subject = &policy.dimensions()[*dimension];
            let may_be_absent = may_be_absent(&subject.source, rule);
            if may_be_absent && !rule.matches.has.contains(dimension) {
                shared_counter(&binding.limit, &rule.name, &subject.name, at, report);
            }
        }
    }
}

/// Returns whether the text of an expression is non-empty for every request.
fn is_never_empty(text: &Text) -> bool {
    match text {
        Text::Literal(text) => !text.is_empty(),
        Text::Of(attribute) => {
            use Attribute::{Address, Host, Method, Path};
            matches!(attribute, Method | Path | Host | Address)
        }
        Text::Joined(all) => all.iter().any(is_never_empty),
        Text::Chosen(chosen) => is_never_empty(&chosen.1) && is_never_empty(&chosen.2),
    }
}

/// Returns whether some requests that `rule` matches may have no value for a subject with this
/// source.
fn may_be_absent(source: &SubjectSource, rule: &Rule) -> bool {
    match source {
        SubjectSource::Credential { .. }
        | SubjectSource::Header { .. }
        | SubjectSource::Cookie { .. }
        | SubjectSource::Query { .. }
        | SubjectSource::Json { .. }
        | SubjectSource::TlsClient { .. }
        | SubjectSource::Claim(_) => true,
        SubjectSource::Expression { text, .. } => !is_never_empty(text),
        SubjectSource::PathParameter { parameter } => {
            let paths = &rule.matches.paths;
            paths.is_empty() || !paths.iter().all(|path| path.has_parameter(parameter))
        }
        SubjectSource::PathSegment { number } => {
            let paths = &rule.matches.paths;
            paths.is_empty() || !paths.iter().all(|path| path.min_segments() >= *number)
        }
        SubjectSource::FirstOf { dimensions } => {
            dimensions.iter().all(|one| may_be_absent(&one.source, rule))
        }
        _ => false,
    }
}

fn shared_counter(limit: &Limit, rule: &str, subject: &str, at: Span, report: &mut Report<'_>) {
    let limit = quoted(limit.name());
    let message = format_args!(
        "in the rule {}, all requests without the subject {subject} share one counter of {limit}",
        quoted(rule)
    );
    report.warning(
        at,
        message,
        format_args!("match: {{ has: {subject} }} leaves them to another rule"),
    );
}
