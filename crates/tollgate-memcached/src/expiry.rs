//! When the server may forget an item: garbage collection, on which no decision depends.

use tollgate_core::{Millis, Timestamp};

/// The longest time in seconds that memcached takes for a length; a larger number is a date to it.
const MAX_RELATIVE: u64 = 30 * 86_400;

/// What the server's clock, which ticks once a second, may be late by.
const TICK: u64 = 1;

/// The expiry of what is over at `expires_at`, written at `now`: later than that by `skew_max`.
///
/// In seconds from when the server stores it. What lasts longer than 30 days has to be a date for
/// memcached: it is one of the server's own clock, which shows `server_time` seconds since the
/// epoch, and never one of this machine's. Dates end in January 2038, where memcached's own
/// numbers do. Before the server has told its time, 30 days; the next write puts that right.
pub(crate) fn expires(
    expires_at: Timestamp,
    now: Timestamp,
    skew_max: Millis,
    server_time: Option<u64>,
) -> i32 {
    let seconds = expires_at.after(skew_max).since(now).as_secs_ceil().saturating_add(TICK);
    let number = match server_time {
        _ if seconds <= MAX_RELATIVE => seconds,
        Some(time) => time.saturating_add(seconds),
        None => MAX_RELATIVE,
    };
    i32::try_from(number).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(expires_at: u64, now: u64, server_time: Option<u64>) -> i32 {
        let at = Timestamp::from_millis;
        expires(at(expires_at), at(now), Millis::from_secs(5), server_time)
    }

    #[test]
    fn items_outlive_what_they_keep_by_the_skew() {
        assert_eq!(seconds(10_000, 0, None), 16);
        assert_eq!(seconds(10_001, 0, None), 17);
        assert_eq!(seconds(0, 10_000, None), 1, "what is over ends with the next tick");
    }

    #[test]
    fn long_windows_end_by_the_servers_own_clock() {
        let month = 31 * 86_400_000;
        let server = 1_700_000_000;
        assert_eq!(seconds(month, 0, Some(server)), 1_700_000_000 + 31 * 86_400 + 6);
        assert_eq!(seconds(month, 0, None), 30 * 86_400);
        let ten_years = 3_653 * 86_400_000;
        assert_eq!(seconds(ten_years, 0, Some(1_900_000_000)), i32::MAX);
        let longest = 30 * 86_400_000 - 6_000;
        assert_eq!(seconds(longest, 0, Some(server)), 30 * 86_400);
        assert_eq!(seconds(longest + 1, 0, Some(server)), 1_700_000_000 + 30 * 86_400 + 1);
    }
}
