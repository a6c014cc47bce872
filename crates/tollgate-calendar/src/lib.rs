//! Calendar windows for rate limits: days, weeks, months and years in a time zone.
//!
//! [`schedule`] returns the windows of a [`Period`] in a time zone, for
//! [`FixedWindow::scheduled`](tollgate_core::algo::FixedWindow::scheduled). With daylight saving
//! time, a day has 23, 24 or 25 hours. The crate contains the rules of the time zones.

mod calendar;
mod error;
mod period;

use std::sync::{Mutex, PoisonError};

use jiff::tz::{TimeZone, TimeZoneDatabase};
use tollgate_core::algo::Schedule;

use calendar::Calendar;
pub use error::{CalendarError, MAX_CALENDARS};
pub use period::{Period, Weekday};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

static CALENDARS: Mutex<Vec<&'static Calendar>> = Mutex::new(Vec::new());

/// Returns the windows of `period` in the time zone `zone`, an IANA name such as `Europe/Berlin`.
///
/// # Errors
/// [`CalendarError`] if the zone is unknown, if no month has the given day, or if the process would
/// have more than [`MAX_CALENDARS`] different calendars.
///
/// # Examples
/// ```
/// use tollgate_calendar::{Period, schedule};
/// use tollgate_core::Timestamp;
///
/// let days = schedule(Period::Day, "America/New_York")?;
/// // On 2026-03-08 the clocks go forward.
/// let window = days.window_at(Timestamp::from_millis(1_772_982_000_000));
/// assert_eq!(window.end.since(window.start).get(), 23 * 3_600_000);
/// # Ok::<(), tollgate_calendar::CalendarError>(())
/// ```
pub fn schedule(period: Period, zone: &str) -> Result<Schedule, CalendarError> {
    period.check()?;
    let zone = find_zone(zone).ok_or_else(|| CalendarError::UnknownZone(zone.to_owned()))?;
    let name = period.name_in(zone.iana_name().unwrap_or("UTC"));
    let mut calendars = CALENDARS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = calendars.iter().find(|calendar| calendar.is_named(&name)) {
        return Ok(Schedule::new(*known));
    }
    if calendars.len() >= MAX_CALENDARS {
        return Err(CalendarError::TooMany);
    }
    let calendar: &'static Calendar = Box::leak(Box::new(Calendar::new(period, zone, name)));
    calendars.push(calendar);
    Ok(Schedule::new(calendar))
}

/// Returns whether `zone` is the name of a time zone. The case of letters does not matter.
#[must_use]
pub fn is_zone(zone: &str) -> bool {
    find_zone(zone).is_some()
}

/// Returns the names of all time zones.
#[must_use]
pub fn zones() -> Vec<String> {
    TimeZoneDatabase::bundled().available().map(|name| name.as_str().to_owned()).collect()
}

fn find_zone(zone: &str) -> Option<TimeZone> {
    TimeZoneDatabase::bundled().get(zone).ok()
}
