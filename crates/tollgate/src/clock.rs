//! The only file of the workspace that reads a clock for a decision.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tollgate_core::{Millis, Timestamp};

/// Tells the time of a decision.
pub trait Clock: Send + Sync {
    /// Now. It may step back: the limits see to it that time does not within a key.
    fn now(&self) -> Timestamp;
}

/// How long something takes, by a clock that is never set. What it shows is measured, not decided
/// by: who decides is told of it as a number.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// One that runs from now on.
    #[must_use]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Whole nanoseconds since it was started.
    #[must_use]
    pub(crate) fn nanos(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Whole microseconds since it was started.
    #[must_use]
    pub fn micros(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

/// The time of day to the nanosecond, for who tells when something was: nothing is decided by it.
pub(crate) fn epoch_nanos() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX)
}

/// The machine's wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        // Before 1970 is the epoch: a clock that is so wrong is no reason to stop.
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX))
    }
}

/// The machine's wall clock, followed by the processor's counter: as exact for a decision as
/// [`SystemClock`], and read in a fraction of its time.
///
/// Between two looks at the wall clock, made at most [`CounterClock::FOLLOWS_WITHIN`] apart, time
/// goes by the counter, which drifts by far less than a millisecond meanwhile. A step of the wall
/// clock is seen at the next look. Where the processor has no steady counter, the operating
/// system's monotonic clock takes its place: as exact, and no faster than the wall clock.
///
/// Make one when the process starts, and share it: the first one measures the counter, which keeps
/// its thread busy for up to 200 ms.
#[derive(Debug)]
pub struct CounterClock {
    counter: quanta::Clock,
    started_at: u64,
    /// The counter's nanoseconds since the start when the wall clock was last looked at.
    looked_at: AtomicU64,
    /// The wall clock's nanoseconds since the epoch less the counter's since the start.
    ahead: AtomicU64,
}

impl CounterClock {
    /// How long a step of the wall clock can go unnoticed.
    pub const FOLLOWS_WITHIN: Millis = Millis::new(10);

    /// A clock that shows the machine's time.
    #[must_use]
    pub fn new() -> Self {
        Self::following(quanta::Clock::new(), wall_nanos)
    }

    fn following(counter: quanta::Clock, wall: impl Fn() -> u64) -> Self {
        let started_at = counter.raw();
        let (looked_at, ahead) = (AtomicU64::new(0), AtomicU64::new(0));
        let clock = Self { counter, started_at, looked_at, ahead };
        clock.look(wall);
        clock
    }

    /// Now, by a `wall` clock in nanoseconds since the epoch.
    #[inline]
    fn by(&self, wall: impl Fn() -> u64) -> Timestamp {
        let elapsed = self.elapsed();
        // Both ways: a machine that was moved or restored may have set its counter back.
        let unseen = elapsed.abs_diff(self.looked_at.load(Ordering::Relaxed));
        let ahead = if unseen < Self::FOLLOWS_WITHIN.get() * NANOS_PER_MILLI {
            self.ahead.load(Ordering::Relaxed)
        } else {
            self.look(wall)
        };
        Timestamp::from_millis(elapsed.wrapping_add(ahead) / NANOS_PER_MILLI)
    }

    /// Looks at the wall clock; answers how far it is ahead of the counter.
    ///
    /// Whoever is kept waiting between the two clocks looks again, a few times at most.
    #[cold]
    fn look(&self, wall: impl Fn() -> u64) -> u64 {
        let mut best = (u64::MAX, 0, 0);
        for _ in 0..LOOKS {
            let (before, wall, after) = (self.elapsed(), wall(), self.elapsed());
            let took = after.abs_diff(before);
            if took < best.0 {
                // Wraps where the counter is ahead, and back again when the two are added.
                best = (took, wall.wrapping_sub(before), after);
            }
            if took < PROMPT {
                break;
            }
        }
        let (_, ahead, looked_at) = best;
        // Whichever of two threads' values are read together, they make a right clock.
        self.ahead.store(ahead, Ordering::Relaxed);
        self.looked_at.store(looked_at, Ordering::Relaxed);
        ahead
    }

    /// The counter's nanoseconds since the start.
    #[inline]
    fn elapsed(&self) -> u64 {
        self.counter.delta_as_nanos(self.started_at, self.counter.raw())
    }
}

impl Clock for CounterClock {
    #[inline]
    fn now(&self) -> Timestamp {
        self.by(wall_nanos)
    }
}

impl Default for CounterClock {
    fn default() -> Self {
        Self::new()
    }
}

const NANOS_PER_MILLI: u64 = 1_000_000;

/// How often a look at the wall clock is tried, and the nanoseconds within which it is good enough.
const LOOKS: usize = 4;
const PROMPT: u64 = 20_000;

fn wall_nanos() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX)
}

/// A clock that stands still until it is set: for tests, and for replaying what has been.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// A clock that shows `now`.
    #[must_use]
    pub fn new(now: Timestamp) -> Self {
        Self(AtomicU64::new(now.as_millis()))
    }

    /// Sets the clock to `now`, earlier or later.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.as_millis(), Ordering::Relaxed);
    }

    /// Moves the clock on.
    pub fn advance(&self, by: Millis) {
        self.set(self.now().after(by));
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed))
    }
}

impl<C: Clock + ?Sized> Clock for std::sync::Arc<C> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const START: u64 = 1_700_000_000_000 * NANOS_PER_MILLI;
    const TEN_MILLIS: u64 = 10 * NANOS_PER_MILLI;

    fn millis(nanos: u64) -> Timestamp {
        Timestamp::from_millis(nanos / NANOS_PER_MILLI)
    }

    #[test]
    fn time_goes_by_the_counter_and_a_step_is_seen_in_time() {
        let (counter, mock) = quanta::Clock::mock();
        mock.increment(7_u64);
        let clock = CounterClock::following(counter, || START);
        mock.increment(TEN_MILLIS - 1);
        assert_eq!(clock.by(|| unreachable!("looked too early")), millis(START + TEN_MILLIS - 1));
        mock.increment(1_u64);
        let stepped = START - 500 * NANOS_PER_MILLI;
        assert_eq!(clock.by(|| stepped), millis(stepped));
        mock.increment(NANOS_PER_MILLI);
        assert_eq!(clock.by(|| unreachable!()), millis(stepped + NANOS_PER_MILLI));
    }

    #[test]
    fn a_counter_that_was_set_back_is_noticed() {
        let (counter, mock) = quanta::Clock::mock();
        let clock = CounterClock::following(counter, || START);
        mock.increment(100 * TEN_MILLIS);
        assert_eq!(clock.by(|| START + 1_000 * NANOS_PER_MILLI), millis(START + 100 * TEN_MILLIS));
        mock.decrement(90 * TEN_MILLIS);
        assert_eq!(clock.by(|| START + 101 * TEN_MILLIS), millis(START + 101 * TEN_MILLIS));
    }

    #[test]
    fn a_look_that_was_interrupted_is_taken_again() {
        let (counter, mock) = quanta::Clock::mock();
        let looks = Cell::new(0_u32);
        let clock = CounterClock::following(counter, || {
            looks.set(looks.get() + 1);
            // The first two looks lose the processor before they see the wall clock.
            if looks.get() <= 2 {
                mock.increment(5 * TEN_MILLIS);
            }
            START + mock.value()
        });
        assert_eq!(looks.get(), 3);
        assert_eq!(clock.by(|| unreachable!()), millis(START + mock.value()));
    }
}
