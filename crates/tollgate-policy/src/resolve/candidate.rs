//! Candidates: a second definition of a limit with other numbers.

use tollgate_core::Algorithm;

use super::algorithm::{algorithm, misplaced};
use crate::decode::{Field, Spanned, quoted};
use crate::raw::{self, Kind};
use crate::report::Report;

/// Returns the candidate of the limit `name`, which is written as `limit` and resolved to `live`,
/// or `None` after reporting a mistake.
pub(super) fn candidate(
    given: &Spanned<raw::Candidate>,
    name: &Spanned<String>,
    (limit, kind, live): (&raw::Limit, Kind, &Algorithm),
    report: &mut Report<'_>,
) -> Option<Algorithm> {
    let raw::Candidate { algorithm: own, quota, window, burst, precision, anchor, permit_ttl } =
        &given.value;
    let own_kind = match own {
        Field::Absent => kind,
        Field::Invalid => return None,
        Field::Value(given) => given.value.0,
    };
    let text = raw::Limit {
        quota: quota.clone(),
        window: window.clone(),
        burst: burst.clone(),
        precision: precision.clone(),
        anchor: anchor.clone(),
        permit_ttl: permit_ttl.clone(),
        ..raw::Limit::default()
    };
    misplaced(own_kind, &text, report);
    // Numbers of the limit's algorithm do not apply to another algorithm.
    let of_kind = if own_kind == kind { limit } else { &raw::Limit::default() };
    let whole = raw::Limit {
        quota: text.quota.or(&limit.quota),
        window: text.window.or(&limit.window),
        burst: text.burst.or(&of_kind.burst),
        precision: text.precision.or(&of_kind.precision),
        anchor: text.anchor.or(&of_kind.anchor),
        permit_ttl: text.permit_ttl.or(&of_kind.permit_ttl),
        ..raw::Limit::default()
    };
    let built = algorithm(own_kind, name, &whole, report)?;
    if built == *live {
        let message =
            format_args!("the candidate of {} is the same as the limit", quoted(&name.value));
        report.error(given.key, message, "set what is different, such as the quota");
        return None;
    }
    Some(built)
}
