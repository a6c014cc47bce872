//! Detects data that a server lost, and estimates the server's time.

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::wire::Stats;

/// The data that a server lost since the store was opened, as far as the server's statistics show
/// the losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// The number of items that the server dropped before their expiry. The items may belong to any
    /// program that uses the server. Each of these items may have been the state of a current
    /// window.
    pub evicted: u64,
    /// The number of restarts of the server. Each restart emptied the server.
    pub restarts: u64,
    /// The number of executions of the command `flush_all`, which removes all items.
    pub flushes: u64,
}

/// Derives losses from the statistics of one server. The statistics may arrive on any connection.
#[derive(Debug, Default)]
pub(crate) struct LossDetector(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    last: Option<(Stats, Instant)>,
    losses: Losses,
}

impl LossDetector {
    /// Updates the losses and the server's time by the statistics `stats`, which arrived at
    /// `received_at`.
    pub(crate) fn observe(&self, stats: Stats, received_at: Instant) {
        let State { last, losses } = &mut *self.0.lock();
        if let Some((known, _)) = last {
            let is_same = known.pid == stats.pid && stats.uptime >= known.uptime;
            if is_same {
                losses.evicted += stats.evictions.saturating_sub(known.evictions);
                losses.flushes += stats.flushes.saturating_sub(known.flushes);
            } else if started(known).abs_diff(started(&stats)) <= 1 && known.pid == stats.pid {
                // These statistics were sent before the statistics that were processed last, but
                // arrived later.
                return;
            } else {
                losses.restarts += 1;
                losses.evicted += stats.evictions;
                losses.flushes += stats.flushes;
            }
        }
        *last = Some((stats, received_at));
    }

    /// Returns the losses that were detected so far.
    pub(crate) fn losses(&self) -> Losses {
        self.0.lock().losses
    }

    /// Returns the server's clock at `now` in seconds since the Unix epoch. Returns `None` before
    /// the server has reported its time.
    pub(crate) fn time(&self, now: Instant) -> Option<u64> {
        let state = self.0.lock();
        let (stats, received_at) = state.last.as_ref()?;
        Some(stats.time + now.saturating_duration_since(*received_at).as_secs())
    }
}

/// The maximum error, in milliseconds, of the server's time.
///
/// The server adds two numbers of whole seconds: the time of its start, and the time that has passed
/// since then. The second number is the difference of two readings of a monotonic clock, both
/// rounded down. A tick updates it about once a second, and the tick shifts within the second
/// by 1 to 2 ms per tick. So the reported time is behind by 0 to 1 s because of the rounding, and by
/// another 0 to 1 s because of the last tick. A further 250 ms are for a late tick and for the
/// transport of the answer. By default a connection does not wait longer for the answer. With a
/// deadline above 250 ms it does, and a slower answer makes the error larger until the next one.
///
/// Both numbers of the start are rounded once, in opposite directions. So the clock from which this
/// error is measured is itself up to 1 s ahead of or behind the clock of the server's machine. This
/// difference is the same for all nodes, and stays the same until the server restarts or the clock of
/// its machine is set.
pub(crate) const TIME_UNCERTAINTY: u64 = 1_125;

impl LossDetector {
    /// Returns the server's time at `now` in milliseconds since the Unix epoch, with an error of at
    /// most [`TIME_UNCERTAINTY`]. Returns `None` before the server has reported its time.
    pub(crate) fn millis(&self, now: Instant) -> Option<u64> {
        let state = self.0.lock();
        let (stats, received_at) = state.last.as_ref()?;
        let passed = now.saturating_duration_since(*received_at).as_millis();
        let middle = stats.time.saturating_mul(1_000).saturating_add(TIME_UNCERTAINTY);
        Some(middle.saturating_add(u64::try_from(passed).unwrap_or(u64::MAX)))
    }
}

/// Returns the time at which the server started, by the server's own clock.
fn started(stats: &Stats) -> u64 {
    stats.time.saturating_sub(stats.uptime)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn stats(pid: u64, uptime: u64, evictions: u64) -> Stats {
        Stats { pid, uptime, time: 1_000 + uptime, evictions, flushes: 0 }
    }

    #[test]
    fn losses_count_from_what_was_found_first() {
        let observed = LossDetector::default();
        let now = Instant::now();
        assert_eq!(observed.time(now), None);
        observed.observe(stats(1, 10, 5), now);
        assert_eq!(observed.losses(), Losses::default());
        assert_eq!(observed.time(now + Duration::from_secs(3)), Some(1_013));
        observed.observe(stats(1, 12, 9), now);
        observed.observe(stats(1, 11, 8), now);
        observed.observe(Stats { flushes: 2, ..stats(1, 12, 9) }, now);
        assert_eq!(observed.losses(), Losses { evicted: 4, restarts: 0, flushes: 2 });
    }

    #[test]
    fn another_process_is_a_restart() {
        let observed = LossDetector::default();
        let now = Instant::now();
        observed.observe(stats(1, 10, 5), now);
        observed.observe(stats(2, 11, 1), now);
        assert_eq!(observed.losses(), Losses { evicted: 1, restarts: 1, flushes: 0 });
        // In a container, every process may have the process id 1.
        observed.observe(Stats { time: 1_100, ..stats(2, 0, 0) }, now);
        assert_eq!(observed.losses().restarts, 2);
    }
}
