//! Converts the statuses of responses in a policy file: those that a limit counts, and those for
//! which a rule refunds its charges.

use tollgate_core::StatusSet;
use tollgate_core::{Algorithm, Limit};

use super::names::NameTable;
use crate::decode::{Field, OneOrMore, StatusRange, quoted};
use crate::raw::{self, PolicyFile};
use crate::report::Report;

/// Returns the limit with the statuses of the responses that it counts. Returns `None` after
/// reporting a mistake.
pub(super) fn counted(limit: Limit, raw: &raw::Limit, report: &mut Report<'_>) -> Option<Limit> {
    let Some(count) = raw.count.given() else { return Some(limit) };
    if let Algorithm::Concurrency(_) = limit.algorithm() {
        let hint = "a permit ends with its request: count responses by another algorithm";
        report.error(count.key, "`count` has no meaning for concurrency", hint);
        return None;
    }
    if let Some(refused) = raw.count_refused.given().filter(|refused| refused.value.0) {
        let hint = "a refused request has no response of the service: remove one of them";
        report.error(refused.key, "`count_refused` and `count` exclude each other", hint);
        return None;
    }
    let given = count.value.status.given()?;
    let statuses = set(&given.value, report);
    // The set can be empty because of a mistake in a value, which is already reported.
    if statuses.is_empty() && report.is_clean() {
        let hint = "name at least one status, such as [401, 403, 5xx]";
        report.error(given.at, "the limit counts no response", hint);
        return None;
    }
    Some(limit.with_counted(statuses))
}

/// Returns the set of all statuses in `ranges`. Reports a range if the ranges before it contain all
/// its statuses.
pub(super) fn set(ranges: &OneOrMore<StatusRange>, report: &mut Report<'_>) -> StatusSet {
    let OneOrMore(ranges) = ranges;
    let mut set = StatusSet::default();
    for range in ranges {
        let StatusRange(first, last) = range.value;
        if (first..=last).all(|status| set.contains(status)) {
            report.error(range.at, "duplicate status", "an earlier value of the list contains it");
        }
        set = set.with(first, last);
    }
    set
}

/// Warns of limits that count responses by their status, if the file configures a listener that
/// does not receive the status of responses.
pub(super) fn warn(file: &PolicyFile, limits: &NameTable<'_, raw::Limit>, report: &mut Report<'_>) {
    let Some(serve) = file.serve.value() else { return };
    let listeners = [("gRPC", !serve.grpc.is_absent()), ("Redis", !serve.resp.is_absent())];
    let listeners: Vec<_> =
        listeners.iter().filter(|(_, is_open)| *is_open).map(|(name, _)| *name).collect();
    if listeners.is_empty() {
        return;
    }
    for limit in limits.all() {
        let Some(count) = limit.value.as_ref().and_then(|raw| raw.count.given()) else { continue };
        let message = format_args!(
            "{} counts every request of the {} listener, which receives no status",
            quoted(&limit.name.value),
            listeners.join(" and the ")
        );
        let hint = "use the proxy, the layer, or `/v1/check` with a report of the status";
        report.warning(count.key, message, hint);
    }
}

/// Returns the statuses of responses for which a rule refunds its charges. Returns `None` if the
/// rule does not set such statuses, or if their value has a mistake.
pub(super) fn refund(
    field: &Field<OneOrMore<StatusRange>>,
    report: &mut Report<'_>,
) -> Option<StatusSet> {
    field.given().map(|given| set(&given.value, report))
}
