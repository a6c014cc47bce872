use std::time::Duration;

use super::*;

const EPOCH: u64 = 1_700_000_000_000_000;

/// Returns the reading of a shard with the clock [`EPOCH`] at `start`. The query was sent at
/// `sent`, the server read its clock at `read`, and the reply arrived at `received`, all in
/// microseconds after `start`.
fn reading(start: Instant, sent: u64, read: u64, received: u64) -> Reading {
    let at = |micros| start + Duration::from_micros(micros);
    Reading::of_micros(at(sent), at(received), EPOCH + read)
}

#[test]
fn nothing_is_known_before_the_first_reply() {
    let (clock, now) = (ShardClock::default(), Instant::now());
    assert_eq!(clock.deadline(now), None);
    assert_eq!(clock.time(now), None);
    assert_eq!(clock.ahead_of(Timestamp::EPOCH, now), None);
}

#[test]
fn a_deadline_is_never_later_than_the_true_one() {
    let start = Instant::now();
    // The server may read its clock at any time during the round trip.
    for read in [0, 1, 3_999, 7_000] {
        let clock = ShardClock::default();
        clock.observe(reading(start, 0, read, 7_000));
        let deadline = start + Duration::from_millis(20);
        let last = clock.deadline(deadline).unwrap().as_millis();
        let truly_over = (EPOCH + 20_000) / 1_000;
        assert!(last < truly_over, "read at {read}: {last}");
        assert!(last >= truly_over - 9, "read at {read}: {last} is too strict");
    }
}

#[test]
fn quick_replies_sharpen_what_slow_ones_reported() {
    let (clock, start) = (ShardClock::default(), Instant::now());
    clock.observe(reading(start, 0, 10, 9_000));
    clock.observe(reading(start, 10_000, 10_100, 10_200));
    clock.observe(reading(start, 20_000, 20_010, 29_000));
    let at = start + Duration::from_millis(30);
    let now = Timestamp::from_millis(EPOCH / 1_000 + 30 - 250);
    let offset = clock.ahead_of(now, at).unwrap();
    assert!((249..=250).contains(&offset.millis), "{offset:?}");
    assert!(offset.uncertainty <= 2, "{offset:?}");
    assert_eq!(clock.steps(), 0);
}

#[test]
fn a_clock_that_was_set_is_believed_at_once() {
    let (clock, start) = (ShardClock::default(), Instant::now());
    clock.observe(reading(start, 0, 50, 100));
    for (sent, read) in [(1_000_000, 3_601_000_000), (2_000_000, 1_000_000)] {
        clock.observe(reading(start, sent, read, sent + 100));
        let time = clock.time(start + Duration::from_micros(sent + 100)).unwrap();
        assert_eq!(time.as_millis(), (EPOCH + read) / 1_000);
    }
    assert_eq!(clock.steps(), 2);
}

#[test]
fn drift_is_no_step_and_widens_the_bounds() {
    let (clock, start) = (ShardClock::default(), Instant::now());
    clock.observe(reading(start, 0, 10, 20));
    // One minute later, the shard's clock has gained 500 microseconds per second.
    clock.observe(reading(start, 60_000_000, 60_030_010, 60_000_020));
    assert_eq!(clock.steps(), 0);
}

#[test]
fn whole_milliseconds_bound_the_clock_too() {
    let (clock, start) = (ShardClock::default(), Instant::now());
    let received = start + Duration::from_micros(300);
    clock.observe(Reading::of_millis(start, received, Timestamp::from_millis(5_000)));
    assert_eq!(clock.time(received).unwrap().as_millis(), 5_000);
    assert_eq!(clock.deadline(received + Duration::from_millis(15)).unwrap().as_millis(), 5_013);
}

#[test]
fn no_reading_overflows() {
    let (clock, start) = (ShardClock::default(), Instant::now());
    for micros in [0, u64::MAX] {
        clock.observe(Reading::of_micros(start, start, micros));
        assert!(clock.deadline(start + Duration::from_secs(1 << 30)).is_some());
        assert!(clock.ahead_of(Timestamp::from_millis(u64::MAX), start).is_some());
    }
}

/// The defect: a late reply of the replaced server arrived after the first reading of its successor.
/// The clocks differ. The reply counted as a change of the clock, and replaced the estimate.
#[test]
fn a_late_reply_of_a_replaced_server_does_not_change_the_clock() {
    let (clock, start) = (ShardClock::default(), Instant::now());
    let switched = start + Duration::from_micros(5_000);
    clock.begin(Some(reading(start, 4_000, 4_500, 5_000)), switched);
    let estimate = clock.time(switched);
    // This server's clock is 300 ms ahead.
    clock.observe(reading(start, 4_900, 305_000, 6_000));
    assert_eq!((clock.time(switched), clock.steps()), (estimate, 0));
    // The clock of the successor is set after the switch.
    clock.observe(reading(start, 7_000, 307_500, 8_000));
    assert_eq!(clock.steps(), 1);
}
