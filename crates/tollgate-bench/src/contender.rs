//! The contenders of the memory benchmark: the rate limiters that are compared. Each contender uses
//! its own clock, and keys of its own type.

use std::fmt;
use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::{DefaultKeyedRateLimiter, Quota};
use rustix::time::{ClockId, clock_gettime};
use tollgate::model::algo::{Anchor, FixedWindow, TokenBucket};
use tollgate::model::{
    Algorithm, Charge, ChargeId, Cost, KeyedHash, Limit, LimitError, Millis, Operation, Subject,
    Timestamp, Value,
};
use tollgate::store::Memory;
use tollgate::store::memory::Bounds;
use tollgate::{Clock, QuotaError, RateLimiter};

/// A rate limiter that the memory benchmark measures.
pub trait Contender: Sync {
    /// Returns the name of the rate limiter in the report.
    fn name(&self) -> &'static str;

    /// Returns one prepared request for each subject in `order`. Each request has its own copy of
    /// the key. The keys are stored in the order of the requests, so each key is in the processor's
    /// cache when it is used, as it is when a server calls its limiter.
    fn requests(&self, order: &[u32]) -> Box<dyn Requests + '_>;
}

/// The requests of one thread, with their keys.
pub trait Requests: Sync {
    /// Makes `decisions` decisions. The requests are used in order, and from the start again after
    /// the last one. Each decision reads the clock and charges one unit. Returns the number of
    /// admitted requests.
    fn decide(&self, decisions: usize) -> usize;
}

/// The keys of one thread, and a function that decides on a key.
struct Prepared<K, F> {
    keys: Vec<K>,
    charge: F,
}

impl<K: Sync, F: Fn(&K) -> bool + Sync> Requests for Prepared<K, F> {
    fn decide(&self, decisions: usize) -> usize {
        let keys = self.keys.iter().cycle().take(decisions);
        keys.filter(|key| (self.charge)(black_box(key))).count()
    }
}

/// The quota that every subject has in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    /// A quota that is larger than the charges of any run. Every charge is admitted and counted.
    Unlimited,
    /// One unit an hour. Every charge except the first is refused.
    Exhausted,
}

/// `governor`'s keyed limiter, used as its documentation shows: a `DashMap` with `String` keys.
pub struct Governor(DefaultKeyedRateLimiter<String>);

impl Governor {
    /// Creates a limiter that has made no charges.
    #[must_use]
    pub fn new(allowance: Allowance) -> Self {
        let quota = match allowance {
            Allowance::Unlimited => Quota::per_second(NonZeroU32::MAX),
            Allowance::Exhausted => Quota::with_period(Duration::from_secs(3_600))
                .unwrap_or(Quota::per_hour(NonZeroU32::MIN)),
        };
        Self(DefaultKeyedRateLimiter::keyed(quota))
    }
}

impl Contender for Governor {
    fn name(&self) -> &'static str {
        "governor"
    }

    fn requests(&self, order: &[u32]) -> Box<dyn Requests + '_> {
        let keys = order.iter().copied().map(subject_name).collect();
        Box::new(Prepared { keys, charge: |key: &String| self.0.check_key(key).is_ok() })
    }
}

/// Tollgate's memory store, called in the same way as the limiter calls it. Each answer contains
/// the full status.
pub struct Tollgate<C> {
    name: &'static str,
    store: Memory,
    limit: Limit,
    clock: C,
}

impl<C: Clock> Tollgate<C> {
    /// Creates an empty memory store with a fixed window.
    ///
    /// # Errors
    /// [`LimitError`] if the allowance is not a valid limit.
    pub fn fixed_window(
        name: &'static str,
        clock: C,
        allowance: Allowance,
    ) -> Result<Self, LimitError> {
        let quota = match allowance {
            Allowance::Unlimited => 1_000_000_000_000,
            Allowance::Exhausted => 1,
        };
        let window = FixedWindow::new(quota, Millis::from_secs(3_600), Anchor::FirstRequest)?;
        Self::new(name, clock, Algorithm::FixedWindow(window))
    }

    /// Creates an empty memory store with a token bucket.
    ///
    /// # Errors
    /// [`LimitError`] if the allowance is not a valid limit.
    pub fn token_bucket(
        name: &'static str,
        clock: C,
        allowance: Allowance,
    ) -> Result<Self, LimitError> {
        let bucket = match allowance {
            Allowance::Unlimited => {
                TokenBucket::new(4_000_000_000, Millis::from_secs(1), 4_000_000)?
            }
            Allowance::Exhausted => TokenBucket::new(1, Millis::from_secs(3_600), 1)?,
        };
        Self::new(name, clock, Algorithm::TokenBucket(bucket))
    }

    fn new(name: &'static str, clock: C, algorithm: Algorithm) -> Result<Self, LimitError> {
        let limit = Limit::new("core", algorithm)?;
        let store = Memory::new(Bounds { max_entries: 8_000_000, max_bytes: usize::MAX });
        Ok(Self { name, store, limit, clock })
    }

    fn charge(&self, subject: &Subject) -> bool {
        let operation = Operation::Charge { cost: Cost::ONE, id: ChargeId(1) };
        let charge = Charge { limit: &self.limit, subject, operation };
        self.store
            .apply_now(self.clock.now(), &[charge])
            .is_ok_and(|readings| readings.all_admitted())
    }
}

impl<C: Clock> Contender for Tollgate<C> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn requests(&self, order: &[u32]) -> Box<dyn Requests + '_> {
        let subject = |number| {
            let name = subject_name(number);
            Subject::new([("user", Value::Clear(name.as_bytes()))], &NoSecrets)
        };
        let keys = order.iter().copied().map(subject).collect();
        Box::new(Prepared { keys, charge: |subject: &Subject| self.charge(subject) })
    }
}

/// Tollgate's [`RateLimiter`], which is called with each key as a text.
#[derive(Debug)]
pub struct Keys {
    name: &'static str,
    limiter: RateLimiter,
}

impl Keys {
    /// Creates a limiter that has made no charges. It has the same quota as the token bucket of
    /// [`Tollgate`].
    ///
    /// # Errors
    /// [`QuotaError`] if the allowance is not a valid limit.
    pub fn new(name: &'static str, allowance: Allowance) -> Result<Self, QuotaError> {
        let quota = match allowance {
            Allowance::Unlimited => tollgate::Quota::per_second(4_000_000_000).burst(4_000_000),
            Allowance::Exhausted => tollgate::Quota::per_hour(1),
        };
        let store = Memory::new(Bounds { max_entries: 8_000_000, max_bytes: usize::MAX });
        Ok(Self { name, limiter: RateLimiter::try_per_key(quota)?.store(store) })
    }
}

impl Contender for Keys {
    fn name(&self) -> &'static str {
        self.name
    }

    fn requests(&self, order: &[u32]) -> Box<dyn Requests + '_> {
        let keys = order.iter().copied().map(subject_name).collect();
        let charge = |key: &String| self.limiter.try_check(key).is_admitted();
        Box::new(Prepared { keys, charge })
    }
}

/// The coarse wall clock of the kernel. Its time is up to one timer tick (1 … 10 ms) late. Reading
/// it does not read the processor's time stamp counter.
#[derive(Clone, Copy, Debug, Default)]
pub struct CoarseClock;

impl Clock for CoarseClock {
    fn now(&self) -> Timestamp {
        let now = clock_gettime(ClockId::RealtimeCoarse);
        Timestamp::from_millis(now.tv_sec.unsigned_abs() * 1_000 + now.tv_nsec as u64 / 1_000_000)
    }
}

/// Returns the name of a subject. All contenders use the same names, which are as long as usual
/// user names and API keys.
pub(crate) fn subject_name(number: u32) -> String {
    format!("customer-{number:010}")
}

/// A keyed hash that is never called, because the subjects of these benchmarks are short and not
/// secret.
pub(crate) struct NoSecrets;

impl KeyedHash for NoSecrets {
    fn hash(&self, _bytes: &[u8]) -> [u8; 16] {
        [0; 16]
    }
}

impl fmt::Debug for Governor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Governor").field("keys", &self.0.len()).finish()
    }
}

impl<C> fmt::Debug for Tollgate<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tollgate").field("store", &self.store.stats()).finish_non_exhaustive()
    }
}
