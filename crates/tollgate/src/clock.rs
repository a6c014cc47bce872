//! Clocks that return the time of a decision. No other file of the workspace reads a clock for a
//! decision.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tollgate_core::{Millis, Timestamp};

/// A clock that returns the time of a decision.
///
/// ```
/// use tollgate::model::Timestamp;
/// use tollgate::{Clock, Quota, RateLimiter, SystemClock};
///
/// /// The time of a replay that starts an hour earlier.
/// struct HourAgo;
///
/// impl Clock for HourAgo {
///     fn now(&self) -> Timestamp {
///         Timestamp::from_millis(SystemClock.now().as_millis() - 3_600_000)
///     }
/// }
///
/// assert!(RateLimiter::per_key(Quota::per_hour(1)).clock(HourAgo).try_check("a").is_admitted());
/// ```
pub trait Clock: Send + Sync {
    /// Returns the current time. The time may be earlier than the time that the previous call
    /// returned, for example after the machine's clock was set back: the limiter never lets the
    /// time of a key go backwards.
    fn now(&self) -> Timestamp;
}

/// A stopwatch on a monotonic clock. No decision reads a stopwatch: a decision that depends on a
/// duration receives the duration as a number.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts a stopwatch.
    #[must_use]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Returns the whole nanoseconds since this stopwatch was started.
    #[must_use]
    pub(crate) fn nanos(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Returns the whole microseconds since this stopwatch was started.
    #[must_use]
    pub fn micros(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

/// Returns the nanoseconds since the Unix epoch by the machine's clock, for timestamps in reports.
/// No decision depends on this time.
pub(crate) fn epoch_nanos() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX)
}

/// The machine's wall clock.
///
/// ```
/// use tollgate::{Quota, RateLimiter, SystemClock};
///
/// let limiter = RateLimiter::per_key(Quota::per_second(10)).clock(SystemClock);
/// assert!(limiter.try_check("alice").is_admitted());
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        // A time before 1970 counts as 1970: the limiter does not stop because a clock is wrong.
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX))
    }
}

/// A clock that follows the machine's wall clock, and reads only the processor's time stamp counter
/// most of the time. For a decision, a `CounterClock` is as exact as [`SystemClock`], and a read
/// takes a fraction of the time.
///
/// The clock compares itself with the wall clock at the first read after
/// [`CounterClock::FOLLOWS_WITHIN`] has passed since the last comparison. A comparison detects a
/// change of the wall clock. Between two comparisons, the time advances by the counter, which
/// drifts by far less than a millisecond in this interval. If the processor has no steady counter,
/// the clock uses the operating system's monotonic clock instead. The results are then equally
/// exact, but a read is no faster than a read of the wall clock.
///
/// Create one `CounterClock` when the process starts, and share it. The first `CounterClock` of a
/// process calibrates the counter, which keeps the calling thread busy for up to 200 ms.
///
/// ```
/// use std::sync::Arc;
/// use tollgate::{CounterClock, Quota, RateLimiter};
///
/// let clock = Arc::new(CounterClock::new());
/// let reads = RateLimiter::per_key(Quota::per_second(100)).clock(clock.clone());
/// let writes = RateLimiter::per_key(Quota::per_second(10)).clock(clock);
/// # let _ = (reads, writes);
/// ```
#[derive(Debug)]
pub struct CounterClock {
    counter: quanta::Clock,
    started_at: u64,
    /// The nanoseconds that the counter had counted, since the start of this clock, when the wall
    /// clock was last read.
    compared_at: AtomicU64,
    /// The time that is added to the counter to get the wall clock's time: the wall clock's
    /// nanoseconds since 1970, minus the counter's nanoseconds since the start of this clock.
    ahead: AtomicU64,
}

impl CounterClock {
    /// The longest time after a change of the wall clock until this clock detects the change.
    pub const FOLLOWS_WITHIN: Millis = Millis::new(10);

    /// Creates a clock that returns the machine's time.
    ///
    /// ```
    /// use tollgate::{Clock, CounterClock};
    ///
    /// let clock = CounterClock::new();
    /// assert!(clock.now().as_millis() > 0);
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::following(quanta::Clock::new(), wall_nanos)
    }

    fn following(counter: quanta::Clock, wall: impl Fn() -> u64) -> Self {
        let started_at = counter.raw();
        let (compared_at, ahead) = (AtomicU64::new(0), AtomicU64::new(0));
        let clock = Self { counter, started_at, compared_at, ahead };
        clock.compare(wall);
        clock
    }

    /// Returns the current time. Compares the counter with the wall clock first if the last
    /// comparison was too long ago. `wall` returns the wall clock's nanoseconds since 1970.
    #[inline]
    fn by(&self, wall: impl Fn() -> u64) -> Timestamp {
        let elapsed = self.elapsed();
        // The code takes the absolute difference, because the counter may have been set back when
        // the machine was moved or restored.
        let unseen = elapsed.abs_diff(self.compared_at.load(Ordering::Relaxed));
        let ahead = if unseen < Self::FOLLOWS_WITHIN.get() * NANOS_PER_MILLI {
            self.ahead.load(Ordering::Relaxed)
        } else {
            self.compare(wall)
        };
        Timestamp::from_millis(elapsed.wrapping_add(ahead) / NANOS_PER_MILLI)
    }

    /// Compares the counter with the wall clock, and stores the result of the comparison. Returns
    /// the wall clock's nanoseconds minus the counter's nanoseconds. `wall` returns the wall
    /// clock's nanoseconds since 1970.
    ///
    /// If the thread is delayed between the reads of the two clocks, the function reads both clocks
    /// again, at most [`MAX_COMPARISONS`] times in all.
    #[cold]
    fn compare(&self, wall: impl Fn() -> u64) -> u64 {
        let mut best = (u64::MAX, 0, 0);
        for _ in 0..MAX_COMPARISONS {
            let (before, wall, after) = (self.elapsed(), wall(), self.elapsed());
            let took = after.abs_diff(before);
            if took < best.0 {
                // The subtraction wraps if the counter is ahead of the wall clock. The later
                // addition of the counter wraps back.
                best = (took, wall.wrapping_sub(before), after);
            }
            if took < MAX_READ_NANOS {
                break;
            }
        }
        let (_, ahead, compared_at) = best;
        // Two threads may store at the same time: any combination of their values gives a correct
        // time.
        self.ahead.store(ahead, Ordering::Relaxed);
        self.compared_at.store(compared_at, Ordering::Relaxed);
        ahead
    }

    /// Returns the nanoseconds that the counter has counted since the start of this clock. If the
    /// counter was set back to a value before the start, the number is negative and wraps. The
    /// difference of `quanta` is 0 for such a value, so the time would stand still until the counter
    /// reaches its value at the start again.
    #[inline]
    fn elapsed(&self) -> u64 {
        let counted = self.counter.raw();
        if counted < self.started_at {
            return self.counter.delta_as_nanos(counted, self.started_at).wrapping_neg();
        }
        self.counter.delta_as_nanos(self.started_at, counted)
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

/// The most reads of the wall clock for one comparison with the counter. If no read takes less than
/// [`MAX_READ_NANOS`], the comparison uses the fastest read.
const MAX_COMPARISONS: usize = 4;
/// The duration of a fast read, in nanoseconds. A comparison uses a read that takes less time at
/// once, without further reads.
const MAX_READ_NANOS: u64 = 20_000;

fn wall_nanos() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX)
}

/// A clock that advances only when it is set, for tests and for replays.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use tollgate::{ManualClock, Quota, RateLimiter};
///
/// let clock = Arc::new(ManualClock::default());
/// let limiter = RateLimiter::per_key(Quota::per_second(1)).clock(clock.clone());
/// assert!(limiter.try_check("alice").is_admitted());
/// clock.advance_by(Duration::from_secs(1));
/// assert!(limiter.try_check("alice").is_admitted());
/// ```
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// Creates a clock that returns `now`.
    ///
    /// ```
    /// use tollgate::model::Timestamp;
    /// use tollgate::{Clock, ManualClock};
    ///
    /// let clock = ManualClock::new(Timestamp::from_millis(1_000));
    /// assert_eq!(clock.now().as_millis(), 1_000);
    /// ```
    #[must_use]
    pub fn new(now: Timestamp) -> Self {
        Self(AtomicU64::new(now.as_millis()))
    }

    /// Sets the clock to `now`, which may be earlier or later than the clock's current time.
    ///
    /// ```
    /// use tollgate::model::Timestamp;
    /// use tollgate::{Clock, ManualClock};
    ///
    /// let clock = ManualClock::default();
    /// clock.set(Timestamp::from_millis(5));
    /// assert_eq!(clock.now().as_millis(), 5);
    /// ```
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.as_millis(), Ordering::Relaxed);
    }

    /// Advances the clock by `by`.
    ///
    /// ```
    /// use tollgate::model::Millis;
    /// use tollgate::{Clock, ManualClock};
    ///
    /// let clock = ManualClock::default();
    /// clock.advance(Millis::from_secs(2));
    /// assert_eq!(clock.now().as_millis(), 2_000);
    /// ```
    pub fn advance(&self, by: Millis) {
        self.set(self.now().after(by));
    }

    /// Advances the clock by the whole milliseconds of `by`. A fraction of a millisecond is
    /// dropped.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Clock, ManualClock};
    ///
    /// let clock = ManualClock::default();
    /// clock.advance_by(Duration::from_secs(2));
    /// assert_eq!(clock.now().as_millis(), 2_000);
    /// ```
    pub fn advance_by(&self, by: Duration) {
        self.advance(Millis::new(u64::try_from(by.as_millis()).unwrap_or(u64::MAX)));
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
    fn time_goes_on_after_the_counter_was_set_back_to_before_the_start() {
        let (counter, mock) = quanta::Clock::mock();
        mock.increment(100 * TEN_MILLIS);
        let clock = CounterClock::following(counter, || START);
        mock.decrement(90 * TEN_MILLIS);
        let later = START + TEN_MILLIS;
        assert_eq!(clock.by(|| later), millis(later));
        mock.increment(5 * NANOS_PER_MILLI);
        assert_eq!(clock.by(|| unreachable!()), millis(later + 5 * NANOS_PER_MILLI));
        mock.increment(5 * NANOS_PER_MILLI);
        assert_eq!(clock.by(|| later + TEN_MILLIS), millis(later + TEN_MILLIS));
        // The counter reaches its value at the start again.
        mock.increment(90 * TEN_MILLIS);
        let last = later + 91 * TEN_MILLIS;
        assert_eq!(clock.by(|| last), millis(last));
        mock.increment(NANOS_PER_MILLI);
        assert_eq!(clock.by(|| unreachable!()), millis(last + NANOS_PER_MILLI));
    }

    #[test]
    fn a_look_that_was_interrupted_is_taken_again() {
        let (counter, mock) = quanta::Clock::mock();
        let reads = Cell::new(0_u32);
        let clock = CounterClock::following(counter, || {
            reads.set(reads.get() + 1);
            // The thread is suspended in the first two reads, before they reach the wall clock.
            if reads.get() <= 2 {
                mock.increment(5 * TEN_MILLIS);
            }
            START + mock.value()
        });
        assert_eq!(reads.get(), 3);
        assert_eq!(clock.by(|| unreachable!()), millis(START + mock.value()));
    }
}
