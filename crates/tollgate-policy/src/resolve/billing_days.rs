//! Converts a `billing_day` that depends on the value of a subject to the windows of each day.

use tollgate_calendar::Period;
use tollgate_core::policy::WindowsByValue;

use super::quotas::{Subjects, is_trusted};
use crate::raw::{self, BillingDay};
use crate::report::Report;

/// The number of days in the longest month.
const DAYS: u8 = 31;

/// Returns the windows of the limit with the index `index`, one for each billing day. Returns
/// `Some(None)` if all requests have the same billing day, and `None` after reporting a mistake.
pub(super) fn billing_days(
    index: usize,
    raw: &raw::Limit,
    zone: &str,
    subjects: &mut Subjects<'_, '_>,
    report: &mut Report<'_>,
) -> Option<Option<WindowsByValue>> {
    let given = raw.billing_day.given();
    let Some(BillingDay::BySubject(by_subject)) = given.map(|given| &given.value) else {
        return Some(None);
    };
    if let Some(candidate) = raw.candidate.given() {
        let hint = "remove it, or give the limit one day while the candidate is evaluated";
        report.error(candidate.key, "a limit with billing days by subject has no candidate", hint);
        return None;
    }
    let by = by_subject.by.given()?;
    let dimension = subjects.table.index(&by.value.0, by.at, report)?;
    is_trusted(dimension, by, "billing day", subjects, report)?;
    let of_day = |first_day: u8| {
        let schedule = tollgate_calendar::schedule(Period::Month { first_day }, zone);
        match schedule {
            Ok(schedule) => Some((first_day.to_string().into(), schedule)),
            Err(error) => {
                report.plain_error(by.at, error);
                None
            }
        }
    };
    let windows = (1..=DAYS).map(of_day).collect::<Option<_>>()?;
    WindowsByValue::new(index, dimension, windows).map(Some)
}
