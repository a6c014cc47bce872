//! Candidates: a limit's definition with other numbers.

use tollgate_core::Algorithm;

use super::algorithm::{algorithm, misplaced};
use crate::read::{Field, Given, quoted};
use crate::report::Report;
use crate::written::{self, Kind};

/// What is tried beside the limit `name` that is written as `limit` and means `live`; `None` if it is
/// wrong, which is reported.
pub(super) fn candidate(
    given: &Given<written::Candidate>,
    name: &Given<String>,
    (limit, kind, live): (&written::Limit, Kind, &Algorithm),
    report: &mut Report<'_>,
) -> Option<Algorithm> {
    let written::Candidate { algorithm: own, quota, window, burst, precision, anchor, lease } =
        &given.value;
    let own_kind = match own {
        Field::Absent => kind,
        Field::Wrong => return None,
        Field::Given(given) => given.value.0,
    };
    let said = written::Limit {
        quota: quota.clone(),
        window: window.clone(),
        burst: burst.clone(),
        precision: precision.clone(),
        anchor: anchor.clone(),
        lease: lease.clone(),
        ..written::Limit::default()
    };
    misplaced(own_kind, &said, report);
    // The numbers of another algorithm mean nothing to this one.
    let of_kind = if own_kind == kind { limit } else { &written::Limit::default() };
    let whole = written::Limit {
        quota: said.quota.or(&limit.quota),
        window: said.window.or(&limit.window),
        burst: said.burst.or(&of_kind.burst),
        precision: said.precision.or(&of_kind.precision),
        anchor: said.anchor.or(&of_kind.anchor),
        lease: said.lease.or(&of_kind.lease),
        ..written::Limit::default()
    };
    let built = algorithm(own_kind, name, &whole, report)?;
    if built == *live {
        let message =
            format_args!("the candidate of {} is what it is already", quoted(&name.value));
        report.mistake(given.key, message, "say what is to be tried, such as another quota");
        return None;
    }
    Some(built)
}
