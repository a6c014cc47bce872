//! The deadline of decisions, compared with the round trip to the server.

use std::time::Duration;

use tollgate_backend::{Inspected, Role};

use super::{Finding, Level};

const CHECK: &str = "deadline";

/// The number of round trips that fit into a sufficient deadline: one for the call, and one for
/// delays.
const ROUND_TRIPS: u32 = 2;

/// The part of a deadline in which no call travels: one millisecond between the deadlines of a call
/// and of a decision, and two within which a node does not know the server's clock.
const MARGIN: Duration = Duration::from_millis(3);

/// Compares the deadline of decisions with the round trip to `server`. Returns `None` if the round
/// trip is unknown or the server is a sentinel.
pub(in crate::doctor) fn of_deadline(server: &Inspected, deadline: Duration) -> Option<Finding> {
    let round_trip = server.report.as_ref().ok()?.round_trip?;
    if server.role == Role::Sentinel {
        return None;
    }
    let finding = check(round_trip, deadline);
    Some(finding.about(&format!("{} {}", server.shard, server.address)))
}

fn check(round_trip: Duration, deadline: Duration) -> Finding {
    let [trip, allowed] = [round_trip, deadline].map(|time| time.as_secs_f64() * 1_000.0);
    let what = format!("a round trip takes {trip:.1} ms, and a decision may take {allowed:.1} ms");
    let least = round_trip.saturating_mul(ROUND_TRIPS).max(round_trip.saturating_add(MARGIN));
    if least <= deadline {
        return Finding::ok(CHECK, what);
    }
    let level = if round_trip < deadline { Level::Warning } else { Level::Problem };
    let least = least.as_micros().div_ceil(1_000);
    let remedy = format!(
        "set store.redis.deadline to at least {least}ms, or use a server that is closer: \
         decisions that miss the deadline are made by the node alone"
    );
    Finding::of(CHECK, level, what, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_below_two_round_trips_is_warned_of() {
        let level = |micros| check(Duration::from_micros(micros), Duration::from_millis(15)).level;
        assert_eq!([200, 7_500].map(level), [Level::Ok; 2]);
        assert_eq!([7_501, 14_999].map(level), [Level::Warning; 2]);
        assert_eq!([15_000, 90_000].map(level), [Level::Problem; 2]);
    }

    /// The bug: a short deadline was reported as sufficient, although no decision was sent to the
    /// server within it.
    #[test]
    fn a_deadline_without_time_for_a_call_was_sufficient() {
        let level = |micros| check(Duration::from_micros(micros), Duration::from_millis(5)).level;
        assert_eq!([200, 2_000].map(level), [Level::Ok; 2]);
        assert_eq!([2_001, 2_500].map(level), [Level::Warning; 2]);
    }
}
