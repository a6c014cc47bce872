//! Converts the key `candidate` of a limit to a second algorithm, which is evaluated on the same
//! requests.

use tollgate_core::Algorithm;

use super::algorithm::{algorithm, misplaced};
use crate::decode::{CalendarUnit, Field, Integer, Spanned, WindowLength, quoted};
use crate::raw::{self, Amount, BillingDay, Kind};
use crate::report::Report;

/// Returns the algorithm of the candidate `given` of the limit `name`, or `None` after reporting a
/// mistake. `limit` contains the raw keys of the limit, `kind` is the kind of its algorithm, and
/// `live` is its resolved algorithm.
pub(super) fn candidate(
    given: &Spanned<raw::Candidate>,
    name: &Spanned<String>,
    (limit, kind, live): (&raw::Limit, Kind, &Algorithm),
    report: &mut Report<'_>,
) -> Option<Algorithm> {
    let own = &given.value.algorithm;
    let own_kind = match own {
        Field::Absent => kind,
        Field::Invalid => return None,
        Field::Value(given) => given.value.0,
    };
    let text = as_limit(&given.value);
    misplaced(own_kind, &text, report);
    // If the candidate has another algorithm, the numbers of the limit's algorithm do not apply to
    // it.
    let of_kind = if own_kind == kind { limit } else { &raw::Limit::default() };
    let window = text.window.or(&limit.window);
    let (unit, of_window) = (unit(&window), unit(&limit.window));
    // If the candidate has another kind of window, the settings of the limit's window do not apply
    // to it.
    let none = raw::Limit::default();
    let of_calendar = if unit.is_some() { limit } else { &none };
    let of_unit = if unit == of_window { limit } else { &none };
    let of_anchor = if unit.is_none() { of_kind } else { &none };
    let whole = raw::Limit {
        quota: text.quota.or(&limit.quota),
        window,
        timezone: text.timezone.or(&of_calendar.timezone),
        week_start: text.week_start.or(&of_unit.week_start),
        billing_day: text.billing_day.or(&of_unit.billing_day),
        burst: text.burst.or(&of_kind.burst),
        precision: text.precision.or(&of_kind.precision),
        anchor: text.anchor.or(&of_anchor.anchor),
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

/// Converts the keys of a candidate to the keys of a limit, so that both are resolved by the same
/// code.
fn as_limit(given: &raw::Candidate) -> raw::Limit {
    raw::Limit {
        quota: map(&given.quota, Amount::Known),
        window: given.window.clone(),
        timezone: given.timezone.clone(),
        week_start: given.week_start.clone(),
        billing_day: map(&given.billing_day, BillingDay::Known),
        burst: map(&given.burst, Amount::Known),
        precision: given.precision.clone(),
        anchor: given.anchor.clone(),
        permit_ttl: given.permit_ttl.clone(),
        ..raw::Limit::default()
    }
}

fn map<T>(field: &Field<Integer>, known: fn(Integer) -> T) -> Field<T> {
    match field {
        Field::Absent => Field::Absent,
        Field::Invalid => Field::Invalid,
        Field::Value(Spanned { value, at, key }) => {
            Field::Value(Spanned { value: known(*value), at: *at, key: *key })
        }
    }
}

/// Returns the calendar period of `window`, such as a month. Returns `None` if the window is not a
/// calendar window.
fn unit(window: &Field<WindowLength>) -> Option<CalendarUnit> {
    match window.value()? {
        WindowLength::Calendar(unit) => Some(*unit),
        WindowLength::Duration(_) => None,
    }
}
