//! Tests of windows with known starts and ends.

use jiff::Timestamp as Instant;
use tollgate_calendar::{CalendarError, Period, Weekday, is_zone, schedule, zones};
use tollgate_core::Timestamp;

/// Returns the start and the end of the window at `now`, as times in UTC.
fn window(period: Period, zone: &str, now: &str) -> (String, String) {
    let now = now.parse::<Instant>().unwrap().as_millisecond();
    let now = Timestamp::from_millis(u64::try_from(now).unwrap());
    let window = schedule(period, zone).unwrap().window_at(now);
    assert!(window.contains(now));
    let text = |time: Timestamp| {
        Instant::from_millisecond(i64::try_from(time.as_millis()).unwrap()).unwrap().to_string()
    };
    (text(window.start), text(window.end))
}

fn expect(period: Period, zone: &str, now: &str, start: &str, end: &str) {
    let expected = (start.to_owned(), end.to_owned());
    assert_eq!(window(period, zone, now), expected, "{period:?} in {zone} at {now}");
}

const MONTH: Period = Period::Month { first_day: 1 };

#[test]
fn days_have_23_or_25_hours_when_the_clocks_change() {
    let berlin = |now, start, end| expect(Period::Day, "Europe/Berlin", now, start, end);
    berlin("2026-03-29T12:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z");
    berlin("2026-10-25T12:00:00Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z");
    berlin("2026-10-25T22:59:59Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z");
    berlin("2026-10-25T23:00:00Z", "2026-10-25T23:00:00Z", "2026-10-26T23:00:00Z");
}

#[test]
fn a_day_without_midnight_begins_when_the_clocks_change() {
    let santiago = |now, start, end| expect(Period::Day, "America/Santiago", now, start, end);
    santiago("2024-09-08T12:00:00Z", "2024-09-08T04:00:00Z", "2024-09-09T03:00:00Z");
    santiago("2024-09-08T03:59:59Z", "2024-09-07T04:00:00Z", "2024-09-08T04:00:00Z");
}

#[test]
fn a_day_continues_when_the_clocks_go_back_over_its_midnight() {
    // At 00:01 on 2006-10-29 the clocks of St. John's went back to 23:01 of the previous day.
    let johns = |now, start, end| expect(Period::Day, "America/St_Johns", now, start, end);
    johns("2006-10-29T02:30:30Z", "2006-10-29T02:30:00Z", "2006-10-30T03:30:00Z");
    johns("2006-10-29T03:00:00Z", "2006-10-29T02:30:00Z", "2006-10-30T03:30:00Z");
}

#[test]
fn a_date_that_a_zone_skipped_has_no_window() {
    let apia = |now, start, end| expect(Period::Day, "Pacific/Apia", now, start, end);
    apia("2011-12-30T09:59:59Z", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z");
    apia("2011-12-30T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z");
}

#[test]
fn a_week_begins_on_its_day() {
    let week = |first, start, end| {
        expect(Period::Week { first }, "UTC", "2026-11-23T01:00:00Z", start, end);
    };
    week(Weekday::Monday, "2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z");
    week(Weekday::Sunday, "2026-11-22T00:00:00Z", "2026-11-29T00:00:00Z");
    week(Weekday::Tuesday, "2026-11-17T00:00:00Z", "2026-11-24T00:00:00Z");
}

#[test]
fn a_month_begins_on_its_billing_day_or_on_its_last_day() {
    expect(MONTH, "UTC", "2024-02-29T12:00:00Z", "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z");
    let month = |first_day, now, start, end| {
        expect(Period::Month { first_day }, "UTC", now, start, end);
    };
    month(15, "2026-01-14T23:59:59Z", "2025-12-15T00:00:00Z", "2026-01-15T00:00:00Z");
    month(15, "2026-01-15T00:00:00Z", "2026-01-15T00:00:00Z", "2026-02-15T00:00:00Z");
    month(31, "2026-02-27T00:00:00Z", "2026-01-31T00:00:00Z", "2026-02-28T00:00:00Z");
    month(31, "2026-02-28T00:00:00Z", "2026-02-28T00:00:00Z", "2026-03-31T00:00:00Z");
    month(30, "2024-03-01T00:00:00Z", "2024-02-29T00:00:00Z", "2024-03-30T00:00:00Z");
}

#[test]
fn a_year_begins_in_january() {
    let year = |zone, start, end| expect(Period::Year, zone, "2026-11-23T00:00:00Z", start, end);
    year("Asia/Kolkata", "2025-12-31T18:30:00Z", "2026-12-31T18:30:00Z");
    year("Pacific/Kiritimati", "2025-12-31T10:00:00Z", "2026-12-31T10:00:00Z");
}

#[test]
fn names_are_words_and_the_case_of_a_zone_does_not_matter() {
    let one = schedule(Period::Month { first_day: 15 }, "europe/berlin").unwrap();
    assert_eq!(one.name(), "month from day 15 in Europe/Berlin");
    assert_eq!(one, schedule(Period::Month { first_day: 15 }, "Europe/Berlin").unwrap());
    assert_ne!(one, schedule(MONTH, "Europe/Berlin").unwrap());
    let week = schedule(Period::Week { first: Weekday::Sunday }, "UTC").unwrap();
    assert_eq!(week.name(), "week from Sunday in UTC");
}

#[test]
fn what_no_calendar_has_is_an_error() {
    let unknown = CalendarError::UnknownZone("Europe/Berlim".to_owned());
    assert_eq!(schedule(MONTH, "Europe/Berlim"), Err(unknown));
    for first_day in [0, 32] {
        let period = Period::Month { first_day };
        assert_eq!(schedule(period, "UTC"), Err(CalendarError::NoSuchDay(first_day)));
    }
    assert!(is_zone("Asia/Tokyo") && !is_zone("+02:00") && !is_zone("../etc/passwd"));
    assert!(zones().len() > 500 && zones().iter().all(|zone| is_zone(zone)));
}
