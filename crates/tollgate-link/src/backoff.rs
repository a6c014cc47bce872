//! The delays between attempts to reach a server.

use std::time::Duration;

/// The shortest time from a failed probe to the next probe. The longest time is
/// [`PROBE_AT_LEAST_EVERY`].
const PROBE_AFTER: Duration = Duration::from_millis(20);
const PROBE_AT_LEAST_EVERY: Duration = Duration::from_millis(200);

/// Returns the delay before the next probe. `failed` is the number of probes that failed one after
/// the other before the last failed probe: 0 after the first failure.
///
/// The delay doubles up to a bound. The random number `draw` makes the delay shorter or longer by
/// up to a quarter, so nodes that lost the same server do not all reconnect at the same time.
#[must_use]
pub fn probe_delay(failed: u32, draw: u64) -> Duration {
    let doubled = PROBE_AFTER.saturating_mul(1 << failed.min(8)).min(PROBE_AT_LEAST_EVERY);
    let spread = u64::try_from(doubled.as_micros() / 2).unwrap_or(u64::MAX);
    doubled * 3 / 4 + Duration::from_micros(draw % (spread + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_are_neither_hasty_nor_rare() {
        for (failed, least, most) in [(0, 15, 25), (1, 30, 50), (3, 120, 200), (u32::MAX, 150, 250)]
        {
            for draw in [0, 1, 7_919, u64::MAX] {
                let delay = probe_delay(failed, draw);
                assert!(delay >= Duration::from_millis(least), "{failed}: {delay:?}");
                assert!(delay <= Duration::from_millis(most), "{failed}: {delay:?}");
            }
        }
        assert_ne!(probe_delay(3, 0), probe_delay(3, 12_345));
    }
}
