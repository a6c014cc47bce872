//! Tests of the windows of all time zones, around every change of the clocks.

use jiff::Timestamp as Instant;
use jiff::civil::date;
use jiff::tz::TimeZone;
use proptest::prelude::*;
use tollgate_calendar::{Period, Weekday, schedule, zones};
use tollgate_core::algo::Schedule;
use tollgate_core::{MAX_EXACT, Timestamp};

const PERIODS: [Period; 5] = [
    Period::Day,
    Period::Week { first: Weekday::Sunday },
    Period::Month { first_day: 1 },
    Period::Month { first_day: 31 },
    Period::Year,
];

/// Checks the window at `now` and its neighbours. Returns the length of the window in milliseconds.
fn check(windows: Schedule, now: Timestamp) -> u64 {
    let (name, window) = (windows.name(), windows.window_at(now));
    assert!(window.contains(now), "{name} at {now:?}: {window:?}");
    let next = windows.window_at(window.end);
    assert_eq!(next.start, window.end, "{name} after {now:?}");
    let last = Timestamp::from_millis(window.end.as_millis() - 1);
    assert_eq!(windows.window_at(last), window, "{name} at its end");
    assert_eq!(windows.window_at(window.start), window, "{name} at its start");
    if let Some(before) = window.start.as_millis().checked_sub(1) {
        let before = windows.window_at(Timestamp::from_millis(before));
        assert_eq!(before.end, window.start, "{name} before {now:?}");
    }
    let length = window.end.since(window.start).get();
    let longest = windows.longest().get();
    assert!(length <= longest, "{name} at {now:?}: {length}");
    // The first window begins at the epoch, or with a change of the clocks by hours.
    assert!(2 * length > longest || window.start == Timestamp::EPOCH, "{name}: {length}");
    length
}

fn time(instant: Instant) -> Timestamp {
    Timestamp::from_millis(u64::try_from(instant.as_millisecond()).unwrap_or(0))
}

fn year(year: i16) -> Instant {
    date(year, 1, 1).to_zoned(TimeZone::UTC).unwrap().timestamp()
}

/// Around every change of the clocks, each window begins at the end of the previous window, and
/// contains the civil dates after which the window is named.
#[test]
fn windows_are_contiguous_around_every_change_of_the_clocks() {
    let (mut changes, mut short, mut long) = (0, 0, 0);
    for name in zones() {
        let zone = TimeZone::get(&name).unwrap();
        let mut instants = vec![year(2020), year(2033)];
        let changing = zone.following(year(2020)).map(|change| change.timestamp());
        instants.extend(changing.take_while(|instant| *instant < year(2040)));
        for instant in instants {
            changes += 1;
            for period in PERIODS {
                let windows = schedule(period, &name).unwrap();
                let now = time(instant);
                let length = check(windows, now);
                check(windows, Timestamp::from_millis(now.as_millis() - 1));
                if period == Period::Day {
                    short += u32::from(length == 23 * 3_600_000);
                    long += u32::from(length == 25 * 3_600_000);
                    check_day(&zone, windows, instant);
                }
            }
        }
    }
    assert!(changes > 5_000 && short > 1_000 && long > 1_000, "{changes} {short} {long}");
}

/// Compares the start of the day at `instant` with the start that the date library computes.
fn check_day(zone: &TimeZone, windows: Schedule, instant: Instant) {
    let zoned = instant.to_zoned(zone.clone());
    let Ok(start) = zoned.start_of_day() else { panic!("{zoned}") };
    assert_eq!(windows.window_at(time(instant)).start, time(start.timestamp()), "{zoned}");
}

/// The history of the zones since 1970, for simulations of old logs.
#[test]
fn windows_are_contiguous_in_the_past() {
    for name in zones() {
        let zone = TimeZone::get(&name).unwrap();
        let changing = zone.following(year(1971)).map(|change| change.timestamp());
        for instant in changing.take_while(|instant| *instant < year(2020)) {
            for period in [Period::Day, Period::Month { first_day: 1 }] {
                let windows = schedule(period, &name).unwrap();
                check(windows, time(instant));
                check(windows, Timestamp::from_millis(time(instant).as_millis() - 1));
            }
        }
    }
}

proptest! {
    #[test]
    fn every_time_has_a_window(
        now in prop_oneof![0..4_102_444_800_000_u64, 0..MAX_EXACT / 2, 34_359_000_000_000..34_370_000_000_000_u64],
        zone in prop::sample::select(zones()),
        period in prop::sample::select(&PERIODS[..]),
    ) {
        let windows = schedule(period, &zone).unwrap();
        let window = windows.window_at(Timestamp::from_millis(now));
        prop_assert!(window.contains(Timestamp::from_millis(now)), "{window:?}");
        let next = windows.window_at(window.end);
        prop_assert_eq!(next.start, window.end);
    }

    #[test]
    fn threads_with_different_times_do_not_disturb_each_other(offsets in prop::collection::vec(0..400_u64, 4)) {
        let windows = schedule(Period::Day, "Europe/Paris").unwrap();
        let now = |day: u64, offset: u64| {
            Timestamp::from_millis(1_790_000_000_000 + (day + offset) * 43_200_000)
        };
        std::thread::scope(|scope| {
            for offset in offsets {
                scope.spawn(move || {
                    for day in 0..50 {
                        assert!(windows.window_at(now(day, offset)).contains(now(day, offset)));
                    }
                });
            }
        });
    }
}
