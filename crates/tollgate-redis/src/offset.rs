//! Estimates a shard's clock from the shard's replies.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::time::Instant;
use tollgate_core::{Millis, Timestamp};

/// The most that the clocks of two machines may drift apart, in microseconds per second. Crystal
/// clocks drift by less than 100, and time daemons correct a clock by up to 500.
const DRIFT_PER_SECOND: i64 = 600;

const MICROS_PER_MILLI: i64 = 1_000;

/// An estimate of the shard's clock: an interval that contains the time of the clock.
///
/// If a reply contains a time, the shard read its clock after the call was sent and before the
/// reply arrived. Each such reply bounds the shard's clock from both sides (Cristian 1989). The
/// bounds of many replies are intersected (Marzullo 1984). With time, the bounds widen at the rate
/// at which clocks drift. If a reply is outside of the bounds, the shard's clock was set, and from
/// then on only the new reply counts.
///
/// The estimate is relative to this process's monotonic clock, so setting this machine's wall clock
/// does not affect the estimate.
#[derive(Debug, Default)]
pub(crate) struct ShardClock {
    estimate: Mutex<Estimate>,
    steps: AtomicU64,
}

/// The estimate of the clock of the server that answers now.
#[derive(Debug, Default)]
struct Estimate {
    bounds: Option<Bounds>,
    /// The time since which this server answers, or `None` before the first server. The replies to
    /// calls that were sent earlier come from another server, whose clock can differ.
    since: Option<Instant>,
}

/// The information of one reply about the shard's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// A time at or before the time at which the server read its clock.
    pub sent: Instant,
    /// A time at or after the time at which the server read its clock.
    pub received: Instant,
    /// The lower bound of the clock's value, in microseconds since the Unix epoch.
    pub earliest: i64,
    /// The upper bound of the clock's value, in microseconds since the Unix epoch.
    pub latest: i64,
}

/// The offset of the shard's clock from another clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockOffset {
    /// The estimated offset in milliseconds. The offset is negative if the shard's clock is behind
    /// the other clock.
    pub millis: i64,
    /// The largest error of the estimated offset, in milliseconds.
    pub uncertainty: u64,
}

/// Bounds of the shard's clock. At `at`, the clock is within `low..=high`, in microseconds since
/// the Unix epoch.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    at: Instant,
    low: i64,
    high: i64,
}

impl Reading {
    /// Returns the reading of a clock that showed `time`, for a clock that shows whole
    /// milliseconds.
    pub(crate) fn of_millis(sent: Instant, received: Instant, time: Timestamp) -> Self {
        let earliest = signed(time.as_millis()).saturating_mul(MICROS_PER_MILLI);
        Self { sent, received, earliest, latest: earliest + MICROS_PER_MILLI - 1 }
    }

    /// Returns the reading of a clock that showed `micros` microseconds since the Unix epoch.
    pub(crate) fn of_micros(sent: Instant, received: Instant, micros: u64) -> Self {
        let micros = signed(micros);
        Self { sent, received, earliest: micros, latest: micros }
    }
}

impl ShardClock {
    /// Adds a reply of the shard to the estimate, unless it comes from an earlier server of the
    /// shard.
    pub(crate) fn observe(&self, reading: Reading) {
        let measured = Bounds::from_reading(reading);
        let mut estimate = self.estimate.lock();
        if estimate.since.is_some_and(|since| reading.sent <= since) {
            return;
        }
        estimate.bounds = Some(match estimate.bounds {
            None => measured,
            Some(known) => known.intersect(measured).unwrap_or_else(|| {
                self.steps.fetch_add(1, Ordering::Relaxed);
                measured
            }),
        });
    }

    /// Replaces the estimate, because another server answers from now on. `reading` is the first
    /// reading of that server's clock, and `now` the time from which calls are sent to it.
    ///
    /// The replacement is atomic, so a decision never finds the clock unknown between two servers.
    pub(crate) fn begin(&self, reading: Option<Reading>, now: Instant) {
        let bounds = reading.map(Bounds::from_reading);
        *self.estimate.lock() = Estimate { bounds, since: Some(now) };
    }

    /// Returns the last millisecond of the shard's clock that has certainly passed by `deadline`. A
    /// command is not late if the command starts while the shard's clock shows at most this
    /// millisecond. Returns `None` before the first reply.
    pub(crate) fn deadline(&self, deadline: Instant) -> Option<Timestamp> {
        let bounds = self.estimate.lock().bounds?.moved(deadline);
        Some(millis(bounds.low / MICROS_PER_MILLI - 1))
    }

    /// Returns the estimated time of the shard's clock at `at`: the middle of the bounds. Returns
    /// `None` before the first reply.
    pub(crate) fn time(&self, at: Instant) -> Option<Timestamp> {
        let bounds = self.estimate.lock().bounds?.moved(at);
        Some(millis(bounds.middle() / MICROS_PER_MILLI))
    }

    /// Returns how far the shard's clock is ahead of another clock that shows `now` at `at`.
    /// Returns `None` before the first reply.
    pub(crate) fn ahead_of(&self, now: Timestamp, at: Instant) -> Option<ClockOffset> {
        Some(self.at(at)?.ahead_of(now))
    }

    /// Returns the estimate of the shard's clock at `at`. One estimate can be compared with any
    /// number of timestamps of another clock. Returns `None` before the first reply.
    pub(crate) fn at(&self, at: Instant) -> Option<ClockAt> {
        Some(ClockAt(self.estimate.lock().bounds?.moved(at)))
    }

    /// Returns how often replies showed that the shard's clock was set.
    pub(crate) fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }
}

/// The estimate of the shard's clock at one instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockAt(Bounds);

impl ClockAt {
    /// Returns how far the shard's clock is ahead of another clock that shows `now` at the instant
    /// of this estimate.
    pub(crate) fn ahead_of(self, now: Timestamp) -> ClockOffset {
        let Self(bounds) = self;
        let other = signed(now.as_millis()).saturating_mul(MICROS_PER_MILLI);
        let half = (bounds.high - bounds.low).max(0).unsigned_abs() / 2;
        ClockOffset {
            millis: bounds.middle().saturating_sub(other).div_euclid(MICROS_PER_MILLI),
            // One millisecond is added, because the other clock shows whole milliseconds.
            uncertainty: half.div_ceil(MICROS_PER_MILLI.unsigned_abs()) + 1,
        }
    }
}

impl ClockOffset {
    /// Returns whether the two clocks differ by at most `tolerance` even if the estimate has its
    /// largest error.
    #[must_use]
    pub const fn is_within(&self, tolerance: Millis) -> bool {
        self.millis.unsigned_abs().saturating_add(self.uncertainty) <= tolerance.get()
    }

    /// Returns the time of the shard's clock when the other clock shows `now`.
    #[must_use]
    pub const fn shift(&self, now: Timestamp) -> Timestamp {
        Timestamp::from_millis(now.as_millis().saturating_add_signed(self.millis))
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

    /// Returns the bounds of the clock at the time `to`.
    fn moved(self, to: Instant) -> Self {
        let passed = micros(self.at, to);
        let drift = passed.abs().saturating_mul(DRIFT_PER_SECOND) / 1_000_000 + 1;
        Self {
            at: to,
            low: self.low.saturating_add(passed).saturating_sub(drift),
            high: self.high.saturating_add(passed).saturating_add(drift),
        }
    }

    fn intersect(self, measured: Self) -> Option<Self> {
        let known = self.moved(measured.at);
        let (low, high) = (known.low.max(measured.low), known.high.min(measured.high));
        (low <= high).then_some(Self { at: measured.at, low, high })
    }

    fn middle(self) -> i64 {
        self.low + (self.high - self.low) / 2
    }
}

/// Returns the microseconds from `from` to `to`. The result is negative if `to` is before `from`.
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
