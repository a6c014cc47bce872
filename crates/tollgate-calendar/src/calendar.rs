//! The windows of a period in a time zone.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp as Instant;
use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use tollgate_core::algo::{ScheduledWindow, WindowSchedule};
use tollgate_core::{Millis, Timestamp};

use crate::period::Period;

/// The windows of a period in a time zone. The last window that was computed is cached.
pub(crate) struct Calendar {
    period: Period,
    zone: TimeZone,
    name: String,
    last: LastWindow,
}

/// The time from which the rules of time zones are no longer applied, in seconds since the Unix
/// epoch: a time in the year 3058. After this time, every window has the usual length of the
/// period.
const HORIZON: i64 = 1 << 35;

/// A window in seconds since the Unix epoch. Every time zone changes its clocks at a whole second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seconds {
    start: i64,
    end: i64,
}

impl Calendar {
    pub(crate) const fn new(period: Period, zone: TimeZone, name: String) -> Self {
        Self { period, zone, name, last: LastWindow(AtomicU64::new(0)) }
    }

    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.name == name
    }

    /// Computes the window that contains `second`, without the cache.
    fn compute(&self, second: i64) -> Seconds {
        if second < HORIZON {
            return self.divided(self.civil_period(second), second);
        }
        let last = self.civil_period(HORIZON - 1);
        if second < last.end {
            return self.divided(last, second);
        }
        let length = seconds(self.period.nominal());
        let start = second - (second - last.end) % length;
        Seconds { start, end: start + length }
    }

    /// Returns the window in `period` that contains `second`: usually the whole period. A period
    /// that is longer than [`Period::longest`] is divided into two windows, because a store would
    /// discard the counters of a longer window as a state that is too far in the future.
    fn divided(&self, period: Seconds, second: i64) -> Seconds {
        let middle = period.start + seconds(self.period.longest());
        if middle >= period.end {
            period
        } else if second < middle {
            Seconds { end: middle, ..period }
        } else {
            Seconds { start: middle, ..period }
        }
    }

    /// Returns the period that contains `second`. If the clocks went back over midnight, the local
    /// date is the previous day again. In this case, the day that had already begun continues.
    fn civil_period(&self, second: i64) -> Seconds {
        let now = Instant::from_second(second).unwrap_or_default();
        let mut first = self.period.first_date(self.zone.to_datetime(now).date());
        let mut start = self.first_second(first);
        while start > second {
            first = self.period.before(first);
            start = self.first_second(first);
        }
        loop {
            first = self.period.after(first);
            let end = self.first_second(first);
            if end > second {
                return Seconds { start, end };
            }
            start = end;
        }
    }

    /// Returns the first second of the day `date`. If the clocks skip midnight on that day, this is
    /// the first second after the skipped time.
    fn first_second(&self, date: Date) -> i64 {
        let midnight = date.at(0, 0, 0, 0);
        match self.zone.to_ambiguous_timestamp(midnight).offset() {
            AmbiguousOffset::Unambiguous { offset } => second_of(midnight, offset),
            AmbiguousOffset::Fold { before, .. } => second_of(midnight, before),
            AmbiguousOffset::Gap { before, .. } => {
                let skipped = second_of(midnight, before);
                let later = Instant::from_second(skipped + 1).unwrap_or_default();
                let change = self.zone.preceding(later).next();
                change.map_or(skipped, |change| change.timestamp().as_second())
            }
        }
    }
}

fn second_of(time: DateTime, offset: Offset) -> i64 {
    offset.to_timestamp(time).map_or(0, Instant::as_second)
}

const fn seconds(length: Millis) -> i64 {
    (length.get() / 1_000) as i64
}

impl WindowSchedule for Calendar {
    fn window_at(&self, now: Timestamp) -> ScheduledWindow {
        if let Some(last) = self.last.load().filter(|last| last.contains(now)) {
            return last;
        }
        // The time is at most 2^53 ms, so the cast is exact.
        let window = self.compute((now.as_millis() / 1_000) as i64);
        let start = window.start.max(0);
        self.last.store(start, window.end);
        window_of(start, window.end)
    }

    fn longest(&self) -> Millis {
        self.period.longest()
    }

    fn nominal(&self) -> Millis {
        self.period.nominal()
    }

    fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Debug for Calendar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Calendar").field(&self.name).finish()
    }
}

fn window_of(start: i64, end: i64) -> ScheduledWindow {
    let time = |second: i64| Timestamp::from_millis(second.unsigned_abs().saturating_mul(1_000));
    ScheduledWindow { start: time(start), end: time(end) }
}

/// The last window that was computed, packed into one atomic integer. The upper 36 bits are the
/// start of the window, and the lower 28 bits are its length. The integer is zero if no window was
/// computed yet.
struct LastWindow(AtomicU64);

impl LastWindow {
    const LENGTH_BITS: u32 = 28;

    fn load(&self) -> Option<ScheduledWindow> {
        let packed = self.0.load(Ordering::Relaxed);
        // The start and the length have fewer than 63 bits, so the casts are exact.
        let start = (packed >> Self::LENGTH_BITS) as i64;
        let length = (packed & ((1 << Self::LENGTH_BITS) - 1)) as i64;
        (length > 0).then(|| window_of(start, start + length))
    }

    fn store(&self, start: i64, end: i64) {
        let (start, length) = (start.unsigned_abs(), (end - start).unsigned_abs());
        if start < 1 << (64 - Self::LENGTH_BITS) && length < 1 << Self::LENGTH_BITS {
            self.0.store(start << Self::LENGTH_BITS | length, Ordering::Relaxed);
        }
    }
}
