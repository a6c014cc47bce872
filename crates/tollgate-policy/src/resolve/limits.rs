//! Converts the key `limits` to limits, with their algorithms, their subjects, and the settings
//! that clients see.

use std::sync::Arc;

use tollgate_core::policy::{LimitBinding, QuotasByValue, WindowsByValue};
use tollgate_core::{Algorithm, Limit, OnChange, Percent, Refusals, Visibility};

use super::algorithm::{algorithm, misplaced};
use super::billing_days::billing_days;
use super::calendar::UTC;
use super::candidate::candidate;
use super::metered::{ResolvedCost, price};
use super::mode::decided;
use super::names::NameTable;
use super::outcomes::counted;
use super::quotas::{Subjects, quotas};
use super::refusals::refused;
use super::reservations::reserved;
use crate::decode::{Field, Named, Spanned, is_name, quoted};
use crate::raw::{self, Kind, Subject};
use crate::report::Report;

/// A resolved limit, with everything that its rules need.
pub(super) struct ResolvedLimit {
    pub(super) limit: LimitBinding,
    /// The limit's quotas by the value of a subject.
    pub(super) quotas: Option<QuotasByValue>,
    /// The limit's windows by the value of a subject.
    pub(super) windows: Option<WindowsByValue>,
    /// The cost of a request if its rule does not set one.
    pub(super) price: ResolvedCost,
}

/// Returns the limits in file order. An element is `None` if the limit has a mistake, which is
/// reported.
pub(super) fn limits(
    limits: &NameTable<'_, raw::Limit>,
    subjects: &mut Subjects<'_, '_>,
    report: &mut Report<'_>,
) -> Vec<Option<ResolvedLimit>> {
    let limits = limits.all().iter().enumerate();
    limits.map(|(index, named)| resolve_limit(index, named, subjects, report)).collect()
}

fn resolve_limit(
    index: usize,
    named: &Named<raw::Limit>,
    subjects: &mut Subjects<'_, '_>,
    report: &mut Report<'_>,
) -> Option<ResolvedLimit> {
    let raw = named.value.as_ref()?;
    let per = per(raw, subjects.table, report);
    let kind = match &raw.algorithm {
        Field::Absent => Kind::default(),
        Field::Invalid => return None,
        Field::Value(given) => given.value.0,
    };
    misplaced(kind, raw, report);
    let algorithm = algorithm(kind, &named.name, raw, report)?;
    let limit = with_answers(&named.name, algorithm, raw, report)?;
    let limit = decided(limit, raw, report)?;
    let limit = with_candidate(limit, kind, &named.name, raw, report)?;
    let quotas = quotas((&limit, index), raw, subjects, report)?;
    let zone = raw.timezone.value().map_or(UTC, |zone| &zone.0);
    let windows = billing_days(index, raw, zone, subjects, report)?;
    let price = price(&raw.cost, report)?;
    let limit = LimitBinding { limit: Arc::new(limit), per: per? };
    Some(ResolvedLimit { limit, quotas, windows, price })
}

/// Adds the candidate of the limit, and the share of subjects for which the limit is enforced.
/// Returns `None` after reporting a mistake.
fn with_candidate(
    limit: Limit,
    kind: Kind,
    name: &Spanned<String>,
    raw: &raw::Limit,
    report: &mut Report<'_>,
) -> Option<Limit> {
    let enforced = raw.enforce.or_default(|percent| percent.0, Percent::ALL)?;
    let limit = limit.with_enforced(enforced);
    match &raw.candidate {
        Field::Absent => Some(limit),
        Field::Invalid => None,
        Field::Value(given) => {
            let candidate = candidate(given, name, (raw, kind, limit.algorithm()), report)?;
            Some(limit.with_candidate(candidate))
        }
    }
}

/// Returns the indices of the subjects in `per`. The limit has one counter for each combination of
/// their values. Returns `None` after reporting a mistake.
fn per(
    raw: &raw::Limit,
    subjects: &mut NameTable<'_, Subject>,
    report: &mut Report<'_>,
) -> Option<Vec<usize>> {
    let names = raw.per.value().map_or(&[][..], |names| &names.0);
    let mut per = Vec::with_capacity(names.len());
    let mut is_complete = true;
    for name in names {
        match subjects.index(&name.value.0, name.at, report) {
            Some(index) if per.contains(&index) => {
                let message = format_args!("duplicate subject {}", quoted(&name.value.0));
                report.plain_error(name.at, message);
            }
            Some(index) => per.push(index),
            None => is_complete = false,
        }
    }
    is_complete.then_some(per)
}

/// Creates the limit `name` with the settings that clients see, such as its unit. Returns `None`
/// after reporting a mistake.
fn with_answers(
    name: &Spanned<String>,
    algorithm: Algorithm,
    raw: &raw::Limit,
    report: &mut Report<'_>,
) -> Option<Limit> {
    // An invalid name is already reported.
    let mut limit = Limit::new(&name.value, algorithm).ok()?;
    if let Some(resource) = raw.resource.given() {
        if !is_name(&resource.value.0) {
            let message = format_args!("{} is not a valid name", quoted(&resource.value.0));
            report.error(resource.at, message, "letters, digits, `_`, `-` and `.`");
            return None;
        }
        limit = limit.with_resource(&resource.value.0).ok()?;
    }
    if let Some(unit) = raw.unit.value() {
        limit = limit.with_unit(unit.0);
    }
    if let Some(skew_max) = raw.skew_max.value() {
        limit = limit.with_skew_max(skew_max.0);
    }
    let on_change = raw.on_change.or_default(|on_change| on_change.0, OnChange::Keep)?;
    limit = limit.with_on_change(on_change);
    if raw.visible.value().is_some_and(|visible| !visible.0) {
        limit = limit.with_visibility(Visibility::Hidden);
    }
    limit = reserved(limit, raw, report)?;
    limit = counted(limit, raw, report)?;
    limit = refused(limit, raw, report);
    match raw.count_refused.given() {
        Some(count) if count.value.0 => limit
            .with_refusals(Refusals::Counted)
            .map_err(|error| report.plain_error(count.key, error))
            .ok(),
        _ => Some(limit),
    }
}
