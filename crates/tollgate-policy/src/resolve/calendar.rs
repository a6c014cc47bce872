//! Converts the key `window` of a limit to windows of one length, or to the periods of a calendar.

use tollgate_calendar::{CalendarError, Period};
use tollgate_core::Millis;
use tollgate_core::algo::{Anchor, Schedule};

use crate::decode::{CalendarUnit, Field, Spanned, WindowLength};
use crate::raw::{self, BillingDay, Kind};
use crate::report::Report;
use crate::span::Span;

const DAY: u64 = 86_400_000;

/// The time zone of calendar windows if the limit sets no time zone.
pub(super) const UTC: &str = "UTC";

/// The windows of a limit.
pub(super) enum Windows {
    /// All windows have this length.
    Fixed(Millis),
    /// The windows are periods of a calendar.
    Scheduled(Schedule),
}

/// Returns the windows that the key `window` of a limit defines, together with keys such as
/// `timezone`. Returns `None` after reporting a mistake.
pub(super) fn windows(
    kind: Kind,
    window: &Spanned<WindowLength>,
    raw: &raw::Limit,
    report: &mut Report<'_>,
) -> Option<Windows> {
    match window.value {
        WindowLength::Duration(length) => {
            let is_plain = without_calendar_keys(raw, report);
            warn_of_uneven_days(window.at, length, raw, report);
            is_plain.then_some(Windows::Fixed(length))
        }
        WindowLength::Calendar(unit) => {
            let at = window.at;
            schedule(kind, unit, at, raw, report).map(Windows::Scheduled)
        }
    }
}

/// Returns the windows of a calendar, as the keys of the limit define them. Returns `None` after
/// reporting a mistake.
fn schedule(
    kind: Kind,
    unit: CalendarUnit,
    at: Span,
    raw: &raw::Limit,
    report: &mut Report<'_>,
) -> Option<Schedule> {
    let is_right = has_only_calendar_keys(kind, unit, at, raw, report);
    let week_start = raw.week_start.or_default(|day| day.0, Default::default())?;
    let billing_day = raw.billing_day.or_default(BillingDay::default, Some(1))??;
    let zone = raw.timezone.or_default(|zone| zone.0.clone(), UTC.to_owned());
    let period = match unit {
        CalendarUnit::Day => Period::Day,
        CalendarUnit::Week => Period::Week { first: week_start },
        CalendarUnit::Month => {
            Period::Month { first_day: u8::try_from(billing_day).unwrap_or(u8::MAX) }
        }
        CalendarUnit::Year => Period::Year,
    };
    if !is_right {
        return None;
    }
    let refused = |error: CalendarError| match (&error, BillingDay::span(&raw.billing_day)) {
        (CalendarError::NoSuchDay(_), Some(day)) => {
            let message = format_args!("a month has no day {billing_day}");
            let hint = "1 to 31: in a shorter month, 31 is its last day";
            report.error(day, message, hint);
        }
        _ => report.plain_error(at, error),
    };
    // A mistake in the time zone is already reported. The function continues, to report a mistake
    // in the period as well.
    let zone_or_utc = zone.as_deref().unwrap_or(UTC);
    tollgate_calendar::schedule(period, zone_or_utc)
        .map_err(refused)
        .ok()
        .filter(|_| zone.is_some())
}

/// Reports an algorithm and keys that have no meaning with calendar windows of `unit`. Returns
/// whether the limit has none of them.
fn has_only_calendar_keys(
    kind: Kind,
    unit: CalendarUnit,
    at: Span,
    raw: &raw::Limit,
    report: &mut Report<'_>,
) -> bool {
    let word = unit.word();
    let mut is_right = true;
    if kind != Kind::FixedWindow {
        let message = format_args!("`window: {word}` has no meaning for {}", kind.word());
        let hint =
            "calendar windows belong to fixed_window; others have a length such as 1d or 30d";
        report.error(at, message, hint);
        is_right = false;
    }
    let misplaced = [
        (key(&raw.anchor), true, "the window begins with the period, in `timezone`"),
        (key(&raw.week_start), unit != CalendarUnit::Week, "it belongs to window: week"),
        (key(&raw.billing_day), unit != CalendarUnit::Month, "it belongs to window: month"),
    ];
    let names = ["anchor", "week_start", "billing_day"];
    for ((given, is_wrong, hint), name) in misplaced.into_iter().zip(names) {
        if let (Some(given), true) = (given, is_wrong) {
            let message = format_args!("`{name}` has no meaning with `window: {word}`");
            report.error(given, message, hint);
            is_right = false;
        }
    }
    is_right
}

/// Reports keys that have an effect only with a calendar window. Returns whether the limit has none
/// of these keys.
fn without_calendar_keys(raw: &raw::Limit, report: &mut Report<'_>) -> bool {
    let keys = [
        ("timezone", key(&raw.timezone)),
        ("week_start", key(&raw.week_start)),
        ("billing_day", key(&raw.billing_day)),
    ];
    let mut is_right = true;
    for (name, given) in keys {
        if let Some(given) = given {
            let message = format_args!("`{name}` needs a calendar window");
            report.error(given, message, "window: day, week, month or year");
            is_right = false;
        }
    }
    is_right
}

/// Warns of windows that begin at multiples of their length since 1970, if they do not divide a
/// day. Shorter windows then begin at another time on each day, and longer windows begin with no
/// week, month or year.
fn warn_of_uneven_days(at: Span, length: Millis, raw: &raw::Limit, report: &mut Report<'_>) {
    let is_aligned = raw.anchor.value().is_some_and(|anchor| anchor.0 == Anchor::Calendar);
    if !is_aligned || DAY.is_multiple_of(length.get()) {
        return;
    }
    if length.get() < DAY {
        let message = format_args!("windows of {length} do not divide a day");
        let hint =
            "with `anchor: calendar` they begin at another time on each day: 6h or 8h divide it";
        report.warning(at, message, hint);
    } else {
        let message = format_args!("windows of {length} begin with no week, month or year");
        let hint = "`anchor: calendar` counts them from 1970-01-01, a Thursday: window: week, month or year follow the calendar";
        report.warning(at, message, hint);
    }
}

fn key<T>(field: &Field<T>) -> Option<Span> {
    field.given().map(|given| given.key)
}
