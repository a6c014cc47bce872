//! Expiry times of items. The expiry only frees memory. No decision depends on the expiry.

use tollgate_core::{Millis, Timestamp};

/// The longest relative expiry in seconds. memcached reads a larger number as a Unix time.
const MAX_RELATIVE: u64 = 30 * 86_400;

/// The time by which the server's clock may be late, in seconds, because the clock ticks once a
/// second.
const TICK: u64 = 1;

/// Returns the expiry of an item that is written at `now`, with a state that ends at `expires_at`.
/// The item expires `skew_max` after the end of its state.
///
/// The expiry is in seconds from the time at which the server stores the item. If the expiry is
/// more than 30 days away, memcached requires an absolute time. Absolute times are computed from
/// the server's own clock (`server_time`, in seconds since the Unix epoch) and never from this
/// machine's clock. The latest absolute time is in January 2038, because memcached stores no later
/// time. Until the server has reported its time, the expiry is 30 days, and the next write of the
/// item corrects the expiry.
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
