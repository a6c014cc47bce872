//! Persistent delays, distinguished from short delays.

use tollgate_core::{Millis, Timestamp};

/// The time for which a delay must persist without a break to count as persistent.
pub const INTERVAL: Millis = Millis::new(100);

/// The least delay of the last whole [`INTERVAL`]. The delay of a short burst passes within an
/// interval, so a delay that remains comes from a persistent queue. The method is that of `CoDel`
/// (Nichols and Jacobson, "Controlling Queue Delay", 2012).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PersistentDelay {
    /// The start of the current interval.
    began_at: Timestamp,
    /// The least delay of the current interval, in microseconds; `None` if none was observed.
    least: Option<u64>,
    /// The least delay of the interval before the current interval.
    persistent: Option<u64>,
}

impl PersistentDelay {
    /// Records a delay of `micros` microseconds that was observed at `now`.
    pub fn observe(&mut self, now: Timestamp, micros: u64) {
        self.turn(now);
        self.least = Some(self.least.map_or(micros, |least| least.min(micros)));
    }

    /// Returns the persistent delay at `now`, in microseconds, or 0 if no delay was observed.
    pub fn micros(&mut self, now: Timestamp) -> u64 {
        self.turn(now);
        self.persistent.unwrap_or(0)
    }

    /// Begins a new interval if the current interval is over.
    fn turn(&mut self, now: Timestamp) {
        let intervals = match now < self.began_at {
            // The clock was set back, so no delay was observed at this time.
            true => u64::MAX,
            false => now.since(self.began_at).get() / INTERVAL.get(),
        };
        if intervals > 0 {
            let persistent = if intervals == 1 { self.least } else { None };
            *self = Self { began_at: now, least: None, persistent };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(1_000_000 + millis)
    }

    #[test]
    fn a_passing_delay_is_not_persistent() {
        let mut delay = PersistentDelay::default();
        for (millis, micros) in [(0, 9_000), (10, 50_000), (60, 0), (90, 9_000)] {
            delay.observe(at(millis), micros);
            assert_eq!(delay.micros(at(millis)), 0, "no interval is over yet");
        }
        assert_eq!(delay.micros(at(100)), 0, "it went away once");
        delay.observe(at(110), 7_000);
        delay.observe(at(190), 5_000);
        assert_eq!(delay.micros(at(200)), 5_000);
        assert_eq!(delay.micros(at(299)), 5_000);
        assert_eq!(delay.micros(at(300)), 0, "nothing was seen any more");
    }

    #[test]
    fn a_clock_that_is_set_back_forgets() {
        let mut delay = PersistentDelay::default();
        delay.observe(at(0), 5_000);
        assert_eq!(delay.micros(at(100)), 5_000);
        delay.observe(at(110), 5_000);
        assert_eq!(delay.micros(at(50)), 0);
        delay.observe(at(60), 3_000);
        assert_eq!(delay.micros(at(150)), 3_000);
    }
}
