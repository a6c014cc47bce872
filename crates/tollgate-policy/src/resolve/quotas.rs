//! Converts quotas and bursts that depend on the value of a subject to one limit for each value.

use std::sync::Arc;

use tollgate_core::policy::quotas::MAX_QUOTA_VALUES;
use tollgate_core::policy::{Dimension, PathCase, QuotasByValue, SubjectSource};
use tollgate_core::{Limit, LimitError};

use super::algorithm::ZERO_QUOTA;
use super::names::NameTable;
use crate::decode::{Field, Integer, Spanned, Text, quoted};
use crate::raw::{self, Amount, ByValue, Subject};
use crate::report::Report;

/// The subjects of the file, and the dimensions of the policy to which they were converted.
pub(super) struct Subjects<'m, 'f> {
    pub(super) table: &'m mut NameTable<'f, Subject>,
    pub(super) dimensions: &'m [Option<Dimension>],
    /// The word by which the key `by` refers to the plan of the tenant. `None` means that the file
    /// has no tenants.
    pub(super) tenant_plan: Option<&'f str>,
    /// Whether paths are case-sensitive.
    pub(super) path_case: PathCase,
}

/// Returns the quotas by value of `limit`, the limit with the index `index`. Returns `Some(None)`
/// if the limit has the same quota for all requests, and `None` after reporting a mistake.
pub(super) fn quotas(
    (limit, index): (&Limit, usize),
    raw: &raw::Limit,
    subjects: &mut Subjects<'_, '_>,
    report: &mut Report<'_>,
) -> Option<Option<QuotasByValue>> {
    let (quota, burst) = (Amount::by_value(&raw.quota), Amount::by_value(&raw.burst));
    let Some(first) = quota.or(burst) else { return Some(None) };
    if let Some(candidate) = raw.candidate.given() {
        let hint = "remove it, or give the limit one quota while the candidate is evaluated";
        report.error(candidate.key, "a limit with quotas by subject has no candidate", hint);
        return None;
    }
    let by = first.by.given()?;
    if let Some(other) = burst.and_then(|burst| burst.by.given())
        && other.value.0 != by.value.0
    {
        let message = format_args!("the quota depends on {}", quoted(&by.value.0));
        report.error(other.at, message, "use the same subject for the quota and the burst");
        return None;
    }
    let is_by_tenant = subjects.tenant_plan == Some(&*by.value.0);
    let is_subject = subjects.table.all().iter().any(|named| *named.name.value == *by.value.0);
    let dimension = if is_by_tenant && !is_subject {
        None
    } else {
        let dimension = subjects.table.index(&by.value.0, by.at, report)?;
        is_trusted(dimension, by, "quota", subjects, report)?;
        Some(dimension)
    };
    let names = names([quota, burst]);
    if names.is_empty() || names.len() > MAX_QUOTA_VALUES {
        let message = format_args!("{} values", names.len());
        let hint = format_args!("expected 1 to {MAX_QUOTA_VALUES}, such as {{ free: 60 }}");
        report.error(first.values.given()?.at, message, hint);
        return None;
    }
    if let Some(dimension) = dimension.filter(|_| !is_by_tenant) {
        check_values(&names, dimension, subjects, report);
    }
    let mut limits = Vec::with_capacity(names.len());
    for name in names {
        limits.extend(of_value(limit, name, raw, report).map(Arc::new));
    }
    match dimension {
        Some(dimension) if !is_by_tenant => QuotasByValue::new(index, dimension, limits),
        _ => QuotasByValue::by_tenant(index, dimension, limits),
    }
    .map(Some)
}

/// Returns the values of the subject for which the file sets a quota or a burst. Each value occurs
/// once.
fn names(amounts: [Option<&ByValue>; 2]) -> Vec<&Spanned<String>> {
    let mut names: Vec<&Spanned<String>> = Vec::new();
    let values = amounts.into_iter().flatten().filter_map(|amount| amount.values.value());
    for named in values.flat_map(|values| &values.0) {
        if names.iter().all(|name| name.value != named.name.value) {
            names.push(&named.name);
        }
    }
    names
}

/// Reports each of the values `names` that no request has, such as `Acme` in a path whose case is
/// ignored. `dimension` is the index of the subject.
fn check_values(
    names: &[&Spanned<String>],
    dimension: usize,
    subjects: &Subjects<'_, '_>,
    report: &mut Report<'_>,
) {
    let Some(Some(dimension)) = subjects.dimensions.get(dimension) else { return };
    for name in names {
        let value = dimension.value_in_requests(&name.value, subjects.path_case);
        if value != name.value {
            let subject = quoted(&dimension.name);
            let message =
                format_args!("no request has the value {} of {subject}", quoted(&name.value));
            report.error(name.at, message, format_args!("requests have {}", quoted(&value)));
        }
    }
}

/// Returns `limit` with the quota and the burst that the file sets for the value `name`. Returns
/// `None` after reporting a mistake.
fn of_value(
    limit: &Limit,
    name: &Spanned<String>,
    raw: &raw::Limit,
    report: &mut Report<'_>,
) -> Option<Limit> {
    let quota = number(&raw.quota, &name.value)?;
    let burst = if raw.burst.is_absent() { quota } else { number(&raw.burst, &name.value)? };
    let limit_result = limit.for_value(&name.value, quota, Some(burst));
    let refused = |error: LimitError| match error {
        LimitError::Zero("quota") => report.error(name.at, error, ZERO_QUOTA),
        _ => report.plain_error(name.at, error),
    };
    limit_result.map_err(refused).ok()
}

/// Returns the number that the file sets for requests with `value`. Returns `None` if the number
/// has a mistake, which is already reported.
fn number(field: &Field<Amount>, value: &str) -> Option<u64> {
    let known = Amount::by_value(field).and_then(|by_value| by_value.values.value());
    let named = known.and_then(|known| known.0.iter().find(|named| named.name.value == value));
    match named {
        Some(named) => named.value.map(|Integer(number)| number),
        None => field.value()?.default(),
    }
}

/// Returns `Some` if the values of the subject with the index `index` may select numbers, such as
/// quotas. Returns `None` after reporting that they may not: clients can choose the value, or only
/// the hash of the value is stored. `by` is the key that names the subject, and `what` names the
/// numbers that the subject would select.
pub(super) fn is_trusted(
    index: usize,
    by: &Spanned<Text>,
    what: &str,
    subjects: &Subjects<'_, '_>,
    report: &mut Report<'_>,
) -> Option<()> {
    // A mistake in the subject itself is already reported.
    let dimension = subjects.dimensions.get(index)?.as_ref()?;
    let parts = match &dimension.source {
        SubjectSource::FirstOf { dimensions } => dimensions.as_slice(),
        _ => std::slice::from_ref(dimension),
    };
    for part in parts {
        if part.source.is_secret() {
            let message = format_args!("the values of {} are hashed", quoted(&part.name));
            let hint = format_args!(
                "a {what} depends on a value in clear text: {{ header: x-plan, trusted: true }}"
            );
            report.error(by.at, message, hint);
            return None;
        }
        let named = subjects.table.all().iter().find(|named| *named.name.value == *part.name);
        let raw = named.and_then(|named| named.value.as_ref());
        let is_trusted = raw.and_then(|raw| raw.trusted.value()).is_some_and(|trusted| trusted.0);
        if can_be_chosen(&part.source) && !is_trusted {
            let message = format_args!("clients can choose the value of {}", quoted(&part.name));
            let hint = "add `trusted: true` to the subject if a gateway sets the value and removes \
                        the client's own";
            report.error(by.at, message, hint);
            return None;
        }
    }
    Some(())
}

/// Returns whether clients can choose the value of a subject with this source, without requesting
/// another operation.
pub(super) fn can_be_chosen(source: &SubjectSource) -> bool {
    match source {
        SubjectSource::Header { .. }
        | SubjectSource::Query { .. }
        | SubjectSource::Json { .. }
        | SubjectSource::PathParameter { .. }
        | SubjectSource::PathSegment { .. }
        | SubjectSource::Expression { .. }
        | SubjectSource::Host => true,
        SubjectSource::Claim(claim) => !claim.reader.is_verified(),
        _ => false,
    }
}
