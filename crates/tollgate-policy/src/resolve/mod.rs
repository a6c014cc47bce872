//! Resolves a file: converts its raw keys to a policy. Names become indices, words become values,
//! and contradictions are reported.

mod algorithm;
mod answers;
mod billing_days;
mod calendar;
mod candidate;
mod chain;
mod cross_shard;
mod descriptors;
mod expression;
mod field_name;
mod fits;
mod forwarding;
pub(crate) mod jwt;
mod limits;
mod memcached_clock;
mod memcached_pairs;
mod metered;
mod mode;
mod names;
pub(crate) mod networks;
mod outcomes;
mod parts;
mod paths;
mod pointer;
mod quotas;
mod refusals;
mod reservations;
mod rules;
mod secret;
mod serve;
mod shedding;
mod store;
mod subjects;
mod tenants;
mod traces;
mod warnings;

use tollgate_core::Policy;

use crate::files::Files;
use crate::raw::PolicyFile;
use crate::report::Report;
use crate::settings::Settings;
use crate::span::Span;
use jwt::TokenSource;
use names::NameTable;
use networks::NetworkTable;
use parts::PolicyParts;
use rules::Defined;

/// Returns the policy and the settings of `file`, or `None` after reporting a mistake.
pub(crate) fn resolve(
    file: &PolicyFile,
    files: &mut Files<'_>,
    report: &mut Report<'_>,
) -> Option<(Policy, Settings)> {
    let mut subjects = NameTable::new(&file.subjects, "subject");
    let mut limits = NameTable::new(&file.limits, "limit");
    let tokens = TokenSource::new(file, files, report);
    let dimensions = subjects::dimensions(&mut subjects, &tokens, report);
    let mut of_subjects = quotas::Subjects {
        table: &mut subjects,
        dimensions: dimensions.as_slice(),
        tenant_plan: tenants::plan(file),
        path_case: paths::case(file),
    };
    let tenants = tenants::tenants(file, &mut of_subjects, report);
    let counted = limits::limits(&limits, &mut of_subjects, report);
    let mut networks = NetworkTable::new(file, files, report);
    let mut defined =
        Defined { limits: &mut limits, subjects: &mut subjects, networks: &mut networks };
    let rules = rules::rules(file, &counted, &mut defined, report);
    let domains = descriptors::domains(file, &counted, &mut limits, report);
    warn_if_nothing_is_limited(file, report);
    let forwarding = forwarding::forwarding(file, report);
    let paths = paths::paths(file, &rules, report);
    let answers = answers::answers(file.answers.value(), report);
    let shed = shedding::shed(file, counted.len(), report);
    let key = secret::key(file, report);
    let serve = serve::serve(file, report);
    let traces = traces::traces(file, report);
    let store = store::store(file, &mut subjects, report);
    fits::check(&limits, &counted, store.as_ref(), report);
    memcached_clock::check(&limits, store.as_ref(), report);
    if !report.is_clean() {
        return None;
    }
    let rule_spans: Vec<_> = rules.iter().flatten().map(|rule| rule.at).collect();
    let parts = PolicyParts {
        dimensions,
        limits: counted,
        rules,
        match_mode: file.rules_apply.value().map(|order| order.0).unwrap_or_default(),
        forwarding,
        paths,
        answers,
        domains,
        shed,
        tenants,
    };
    let policy = parts.compose()?;
    outcomes::warn(file, &limits, report);
    networks.warn_of_unused(report);
    jwt::warn_if_unused(file, policy.dimensions(), report);
    warnings::warn(&policy, &subjects, &limits, &rule_spans, report);
    let settings = Settings {
        key: key?,
        store: store?,
        serve: serve?,
        traces: traces?,
        revealed: store::revealed::names(file),
    };
    cross_shard::warn(&policy, file, &settings.store, &rule_spans, report);
    memcached_pairs::warn(&policy, file, &settings.store, &rule_spans, report);
    Some((policy, settings))
}

/// Reports a mistake if the file has neither rules nor descriptors.
fn warn_if_nothing_is_limited(file: &PolicyFile, report: &mut Report<'_>) {
    if file.rules.is_absent() && file.descriptors.is_absent() {
        let hint = "rules define which limits apply to which requests";
        report.error(Span::START, "a policy needs `rules`, or `descriptors`", hint);
    }
}
