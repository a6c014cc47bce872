//! Converts the key `rules` to rules, with their conditions, their limits and their settings.

mod conditions;
mod queue;
mod uses;
mod values;

use std::collections::HashMap;
use std::sync::Arc;

use tollgate_core::policy::{OnFailure, Rule};

use super::limits::ResolvedLimit;
use super::names::NameTable;
use super::networks::NetworkTable;
use super::{outcomes, refusals};
use crate::decode::{Field, List, Spanned, is_name, quoted};
use crate::raw::{self, PolicyFile, Subject};
use crate::report::Report;
use crate::span::Span;

/// A resolved rule, with its position in the file.
pub(super) struct ResolvedRule {
    pub(super) rule: Rule,
    pub(super) at: Span,
}

/// The subjects, limits and lists of networks to which rules can refer.
pub(super) struct Defined<'d, 'f> {
    pub(super) limits: &'d mut NameTable<'f, raw::Limit>,
    pub(super) subjects: &'d mut NameTable<'f, Subject>,
    pub(super) networks: &'d mut NetworkTable<'f>,
}

/// Returns the rules in file order. An element is `None` if the rule has a mistake, which is
/// reported.
pub(super) fn rules(
    file: &PolicyFile,
    counted: &[Option<ResolvedLimit>],
    defined: &mut Defined<'_, '_>,
    report: &mut Report<'_>,
) -> Vec<Option<ResolvedRule>> {
    let Some(rules) = file.rules.given() else { return Vec::new() };
    let List(raw) = &rules.value;
    if raw.is_empty() {
        report.error(
            rules.at,
            "`rules` is empty",
            "a rule defines which limits apply to which requests",
        );
    }
    let names = names(raw, report);
    let on_failure = default_on_failure(file);
    let rule = |(given, name): (&Spanned<raw::Rule>, String)| {
        let matches = match &given.value.r#match {
            Field::Absent => Some(Default::default()),
            Field::Invalid => None,
            Field::Value(conditions) => conditions::matching(&conditions.value, defined, report),
        };
        let uses = uses::uses(&given.value, counted, defined.limits, report);
        let (uses, metered) = uses?;
        let mut rule = Rule::new(name, matches?, uses);
        rule.metered = metered;
        rule.mode = given.value.mode.value().map(|mode| mode.0).unwrap_or_default();
        rule.queue = queue::queue(&given.value, &rule.limits, counted, rule.mode, report);
        rule.charge = given.value.charge.value().map(|charge| charge.0).unwrap_or_default();
        rule.on_failure = given.value.on_failure.value().map_or(on_failure, |own| own.0);
        rule.refund = outcomes::refund(&given.value.refund, report).map(Arc::new);
        rule.refusal = refusals::refusal(&given.value.refuse, report).map(Arc::new);
        rule.priority = given.value.priority.value().map(|priority| priority.0);
        Some(ResolvedRule { rule, at: given.at })
    };
    let placed = raw.iter().zip(names).map(rule).collect();
    check_parameters(file, report);
    placed
}

/// Returns the fallback of rules that do not set `on_failure`.
pub(super) fn default_on_failure(file: &PolicyFile) -> OnFailure {
    let answers = file.answers.value();
    answers.and_then(|answers| answers.on_failure.value()).map(|word| word.0).unwrap_or_default()
}

/// Returns the names of the rules in file order. A rule without a name is named by its number, such
/// as `rule-1`. Names that occur twice are reported.
fn names(rules: &[Spanned<raw::Rule>], report: &mut Report<'_>) -> Vec<String> {
    let mut lines: HashMap<String, usize> = HashMap::new();
    let mut names = Vec::with_capacity(rules.len());
    for (index, rule) in rules.iter().enumerate() {
        let (name, at) = match rule.value.name.given() {
            Some(given) => (given.value.0.clone(), given.at),
            None => (format!("rule-{}", index + 1), rule.at),
        };
        if !is_name(&name) {
            let message = format_args!("{} is not a valid name", quoted(&name));
            report.error(at, message, "1 to 64 letters, digits, `_`, `-` or `.`");
        }
        if let Some(line) = lines.insert(name.clone(), at.line) {
            let message = format_args!("duplicate rule {}", quoted(&name));
            report.error(at, message, format_args!("first on line {line}"));
        }
        names.push(name);
    }
    names
}

/// Reports subjects that read a path parameter which no path pattern of the file captures.
fn check_parameters(file: &PolicyFile, report: &mut Report<'_>) {
    let Some(subjects) = file.subjects.value() else { return };
    let parameters = conditions::parameters(file);
    for subject in subjects.0.iter().filter_map(|named| named.value.as_ref()) {
        let Some(given) = subject.path_parameter.given() else { continue };
        if !parameters.contains(&*given.value.0) {
            let message = format!("no path pattern has a parameter {}", quoted(&given.value.0));
            report.error_with_suggestion(
                given.at,
                message,
                &given.value.0,
                parameters.iter().copied(),
            );
        }
    }
}
