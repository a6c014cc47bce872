//! What time it is on a shard, as far as its replies tell.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::time::Instant;
use tollgate_core::Timestamp;

/// How far two machines' clocks may drift apart, in microseconds per second. Crystals keep below
/// 100, and time daemons slew by up to 500.
const DRIFT_PER_SECOND: i64 = 600;

const MICROS_PER_MILLI: i64 = 1_000;

/// The shard's clock, held between two bounds.
///
/// A reply that tells the time was read from the shard's clock after the call was sent and before
/// the reply came, which bounds the clock from both sides (Cristian 1989); the bounds of many
/// replies are intersected (Marzullo 1984), and move apart again at the rate that clocks drift. A
/// reply outside of the bounds means that the shard's clock was set: then it alone counts.
///
/// It is measured against this process's monotonic clock, so that setting the wall clock of this
/// machine moves nothing.
#[derive(Debug, Default)]
pub(crate) struct ShardClock {
    bounds: Mutex<Option<Bounds>>,
    steps: AtomicU64,
}

/// What one reply told of the shard's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// Not later than when the server read its clock.
    pub sent: Instant,
    /// Not earlier than when the server read its clock.
    pub received: Instant,
    /// What its clock showed at the least, in microseconds since the epoch.
    pub earliest: i64,
    /// What its clock showed at the most, in microseconds since the epoch.
    pub latest: i64,
}

/// How far the shard's clock is ahead of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockOffset {
    /// The estimate, in milliseconds; negative if the shard's clock is behind.
    pub millis: i64,
    /// By how much the estimate may be wrong, in milliseconds.
    pub uncertainty: u64,
}

/// The shard's clock at `at` is within `low..=high`, in microseconds since the epoch.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    at: Instant,
    low: i64,
    high: i64,
}

impl Reading {
    /// A clock that showed `time`, in whole milliseconds.
    pub(crate) fn of_millis(sent: Instant, received: Instant, time: Timestamp) -> Self {
        let earliest = signed(time.as_millis()).saturating_mul(MICROS_PER_MILLI);
        Self { sent, received, earliest, latest: earliest + MICROS_PER_MILLI - 1 }
    }

    /// A clock that showed `micros` microseconds since the epoch.
    pub(crate) fn of_micros(sent: Instant, received: Instant, micros: u64) -> Self {
        let micros = signed(micros);
        Self { sent, received, earliest: micros, latest: micros }
    }
}

impl ShardClock {
    /// Learns from a reply of the shard.
    pub(crate) fn observe(&self, reading: Reading) {
        let told = Bounds::from_reading(reading);
        let mut bounds = self.bounds.lock();
        *bounds = Some(match *bounds {
            None => told,
            Some(known) => known.intersect(told).unwrap_or_else(|| {
                self.steps.fetch_add(1, Ordering::Relaxed);
                told
            }),
        });
    }

    /// Forgets what was learnt: another server answers from now on.
    pub(crate) fn restart(&self) {
        *self.bounds.lock() = None;
    }

    /// The last millisecond of the shard's clock that is surely over by `deadline`, so that what
    /// runs while the shard's clock shows it or less does not run late. `None` before any reply.
    pub(crate) fn deadline(&self, deadline: Instant) -> Option<Timestamp> {
        let bounds = (*self.bounds.lock())?.moved(deadline);
        Some(millis(bounds.low / MICROS_PER_MILLI - 1))
    }

    /// The shard's time at `at`, by the middle of the bounds. `None` before any reply.
    pub(crate) fn time(&self, at: Instant) -> Option<Timestamp> {
        let bounds = (*self.bounds.lock())?.moved(at);
        Some(millis(bounds.middle() / MICROS_PER_MILLI))
    }

    /// How far the shard's clock is ahead of a clock that shows `now` at `at`. `None` before any
    /// reply.
    pub(crate) fn ahead_of(&self, now: Timestamp, at: Instant) -> Option<ClockOffset> {
        let bounds = (*self.bounds.lock())?.moved(at);
        let other = signed(now.as_millis()).saturating_mul(MICROS_PER_MILLI);
        let half = (bounds.high - bounds.low).max(0).unsigned_abs() / 2;
        Some(ClockOffset {
            millis: bounds.middle().saturating_sub(other).div_euclid(MICROS_PER_MILLI),
            // The other clock shows whole milliseconds.
            uncertainty: half.div_ceil(MICROS_PER_MILLI.unsigned_abs()) + 1,
        })
    }

    /// How often the shard's clock was found set.
    pub(crate) fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }
}

impl Bounds {
    fn from_reading(reading: Reading) -> Self {
        let under_way = micros(reading.sent, reading.received).max(0);
        Self {
            at: reading.received,
            low: reading.earliest,
            high: reading.latest.saturating_add(under_way),
        }
    }

    /// The same clock at another moment.
    fn moved(self, to: Instant) -> Self {
        let passed = micros(self.at, to);
        let drift = passed.abs().saturating_mul(DRIFT_PER_SECOND) / 1_000_000 + 1;
        Self {
            at: to,
            low: self.low.saturating_add(passed).saturating_sub(drift),
            high: self.high.saturating_add(passed).saturating_add(drift),
        }
    }

    fn intersect(self, told: Self) -> Option<Self> {
        let known = self.moved(told.at);
        let (low, high) = (known.low.max(told.low), known.high.min(told.high));
        (low <= high).then_some(Self { at: told.at, low, high })
    }

    fn middle(self) -> i64 {
        self.low + (self.high - self.low) / 2
    }
}

/// Microseconds from `from` to `to`; negative if `to` is the earlier one.
fn micros(from: Instant, to: Instant) -> i64 {
    let between = |early: Instant, late: Instant| {
        i64::try_from(late.saturating_duration_since(early).as_micros()).unwrap_or(i64::MAX)
    };
    if to >= from { between(from, to) } else { -between(to, from) }
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn millis(value: i64) -> Timestamp {
    Timestamp::from_millis(u64::try_from(value).unwrap_or(0))
}

#[cfg(test)]
mod tests;
