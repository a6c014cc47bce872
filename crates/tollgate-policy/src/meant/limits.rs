//! Limits: how each counts, of whom, and what clients are told of it.

use std::sync::Arc;

use tollgate_core::policy::LimitFor;
use tollgate_core::{Algorithm, Limit, OnChange, Percent, Refusals, Visibility};

use super::algorithm::{algorithm, misplaced};
use super::candidate::candidate;
use super::holds::reserved;
use super::metered::{Price, price};
use super::mode::decided;
use super::names::Known;
use crate::read::{Field, Given, Named, is_name, quoted};
use crate::report::Report;
use crate::written::{self, Kind, Subject};

/// A limit that rules can use.
pub(super) struct Counted {
    pub(super) limit: LimitFor,
    /// What a request costs where its rule does not say.
    pub(super) price: Price,
}

/// The limits in their order; `None` for what is wrong, which is reported.
pub(super) fn limits(
    limits: &Known<'_, written::Limit>,
    subjects: &mut Known<'_, Subject>,
    report: &mut Report<'_>,
) -> Vec<Option<Counted>> {
    limits.all().iter().map(|named| counted(named, subjects, report)).collect()
}

fn counted(
    named: &Named<written::Limit>,
    subjects: &mut Known<'_, Subject>,
    report: &mut Report<'_>,
) -> Option<Counted> {
    let written = named.value.as_ref()?;
    let per = per(written, subjects, report);
    let kind = match &written.algorithm {
        Field::Absent => Kind::default(),
        Field::Wrong => return None,
        Field::Given(given) => given.value.0,
    };
    misplaced(kind, written, report);
    let algorithm = algorithm(kind, &named.name, written, report)?;
    let limit = told(&named.name, algorithm, written, report)?;
    let limit = decided(limit, written, report)?;
    let limit = tried(limit, kind, &named.name, written, report)?;
    let price = price(&written.cost, report)?;
    Some(Counted { limit: LimitFor { limit: Arc::new(limit), per: per? }, price })
}

/// The limit, with what is tried of it.
fn tried(
    limit: Limit,
    kind: Kind,
    name: &Given<String>,
    written: &written::Limit,
    report: &mut Report<'_>,
) -> Option<Limit> {
    let enforced = written.enforce.or_default(|percent| percent.0, Percent::ALL)?;
    let limit = limit.with_enforced(enforced);
    match &written.candidate {
        Field::Absent => Some(limit),
        Field::Wrong => None,
        Field::Given(given) => {
            let candidate = candidate(given, name, (written, kind, limit.algorithm()), report)?;
            Some(limit.with_candidate(candidate))
        }
    }
}

/// The subjects that a limit counts apart.
fn per(
    written: &written::Limit,
    subjects: &mut Known<'_, Subject>,
    report: &mut Report<'_>,
) -> Option<Vec<usize>> {
    let names = written.per.value().map_or(&[][..], |names| &names.0);
    let mut per = Vec::with_capacity(names.len());
    let mut is_whole = true;
    for name in names {
        match subjects.index(&name.value.0, name.at, report) {
            Some(index) if per.contains(&index) => {
                let message = format_args!("the subject {} is there twice", quoted(&name.value.0));
                report.plain_mistake(name.at, message);
            }
            Some(index) => per.push(index),
            None => is_whole = false,
        }
    }
    is_whole.then_some(per)
}

/// The limit, with what clients are told of it.
fn told(
    name: &Given<String>,
    algorithm: Algorithm,
    written: &written::Limit,
    report: &mut Report<'_>,
) -> Option<Limit> {
    // A name that is none is reported where it is read.
    let mut limit = Limit::new(&name.value, algorithm).ok()?;
    if let Some(resource) = written.resource.given() {
        if !is_name(&resource.value.0) {
            let message = format_args!("{} is no name", quoted(&resource.value.0));
            report.mistake(resource.at, message, "letters, digits, `_`, `-` and `.`");
            return None;
        }
        limit = limit.with_resource(&resource.value.0).ok()?;
    }
    if let Some(unit) = written.unit.value() {
        limit = limit.with_unit(unit.0);
    }
    if let Some(skew_max) = written.skew_max.value() {
        limit = limit.with_skew_max(skew_max.0);
    }
    let on_change = written.on_change.or_default(|on_change| on_change.0, OnChange::Keep)?;
    limit = limit.with_on_change(on_change);
    if written.visible.value().is_some_and(|visible| !visible.0) {
        limit = limit.with_visibility(Visibility::Hidden);
    }
    limit = reserved(limit, written, report)?;
    match written.count_refused.given() {
        Some(count) if count.value.0 => limit
            .with_refusals(Refusals::Counted)
            .map_err(|error| report.plain_mistake(count.key, error))
            .ok(),
        _ => Some(limit),
    }
}
