//! Who is compared: each decides on the subject of a number, by its own clock.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::{DefaultKeyedRateLimiter, Quota};
use tollgate::core::algo::{Anchor, FixedWindow, TokenBucket};
use tollgate::core::{
    Algorithm, Ask, Charge, ChargeId, Cost, KeyedHash, Limit, LimitError, Millis, Subject, Value,
};
use tollgate::store::Memory;
use tollgate::store::memory::Bounds;
use tollgate::{Clock, SystemClock};

/// A rate limiter under test, with its subjects at hand.
pub trait Contender: Sync {
    /// What the report calls it.
    fn name(&self) -> &'static str;

    /// Reads the clock and charges one unit to the subject `index`; whether it was admitted.
    fn charge(&self, index: u32) -> bool;
}

/// How much every subject may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    /// More than any run asks for: every charge is admitted and counted.
    Ample,
    /// One unit an hour: every charge but the first is refused.
    Exhausted,
}

/// `governor`'s keyed limiter as its documentation shows it: a `DashMap` with `String` keys.
pub struct Governor {
    limiter: DefaultKeyedRateLimiter<String>,
    keys: Vec<String>,
}

impl Governor {
    /// A limiter for `subjects` keys, none of them charged yet.
    #[must_use]
    pub fn new(subjects: u32, allowance: Allowance) -> Self {
        let quota = match allowance {
            Allowance::Ample => Quota::per_second(NonZeroU32::MAX),
            Allowance::Exhausted => Quota::with_period(Duration::from_secs(3_600))
                .unwrap_or(Quota::per_hour(NonZeroU32::MIN)),
        };
        let keys = (0..subjects).map(subject_name).collect();
        Self { limiter: DefaultKeyedRateLimiter::keyed(quota), keys }
    }
}

impl Contender for Governor {
    fn name(&self) -> &'static str {
        "governor"
    }

    fn charge(&self, index: u32) -> bool {
        self.limiter.check_key(&self.keys[index as usize]).is_ok()
    }
}

/// Tollgate's memory store, asked as the limiter asks it: the answer carries the whole standing.
pub struct Tollgate {
    name: &'static str,
    store: Memory,
    limit: Limit,
    clock: SystemClock,
    subjects: Vec<Subject>,
}

impl Tollgate {
    /// A store for `subjects` subjects under a fixed window, none of them charged yet.
    ///
    /// # Errors
    /// [`LimitError`] if the allowance makes no limit.
    pub fn fixed_window(subjects: u32, allowance: Allowance) -> Result<Self, LimitError> {
        let quota = match allowance {
            Allowance::Ample => 1_000_000_000_000,
            Allowance::Exhausted => 1,
        };
        let window = FixedWindow::new(quota, Millis::from_secs(3_600), Anchor::FirstRequest)?;
        Self::new("tollgate, fixed window", Algorithm::FixedWindow(window), subjects)
    }

    /// A store for `subjects` subjects under a token bucket, none of them charged yet.
    ///
    /// # Errors
    /// [`LimitError`] if the allowance makes no limit.
    pub fn token_bucket(subjects: u32, allowance: Allowance) -> Result<Self, LimitError> {
        let bucket = match allowance {
            Allowance::Ample => TokenBucket::new(4_000_000_000, Millis::from_secs(1), 4_000_000)?,
            Allowance::Exhausted => TokenBucket::new(1, Millis::from_secs(3_600), 1)?,
        };
        Self::new("tollgate, token bucket", Algorithm::TokenBucket(bucket), subjects)
    }

    fn new(name: &'static str, algorithm: Algorithm, subjects: u32) -> Result<Self, LimitError> {
        let limit = Limit::new("core", algorithm)?;
        let store = Memory::new(Bounds { max_entries: 8_000_000, max_bytes: usize::MAX });
        let subject = |number| {
            let name = subject_name(number);
            Subject::new([("user", Value::Clear(name.as_bytes()))], &NoSecrets)
        };
        let subjects = (0..subjects).map(subject).collect();
        Ok(Self { name, store, limit, clock: SystemClock, subjects })
    }
}

impl Contender for Tollgate {
    fn name(&self) -> &'static str {
        self.name
    }

    fn charge(&self, index: u32) -> bool {
        let ask = Ask::Take { cost: Cost::ONE, id: ChargeId(u128::from(index)) };
        let charge = Charge { limit: &self.limit, subject: &self.subjects[index as usize], ask };
        self.store.apply_now(self.clock.now(), &[charge]).is_ok_and(|readings| readings.all_fit())
    }
}

/// The same for everyone, of a length that user names and API keys have.
fn subject_name(number: u32) -> String {
    format!("customer-{number:010}")
}

/// The subjects of these benchmarks are no secrets and short: nothing is hashed.
struct NoSecrets;

impl KeyedHash for NoSecrets {
    fn hash(&self, _bytes: &[u8]) -> [u8; 16] {
        [0; 16]
    }
}

impl std::fmt::Debug for Governor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Governor").field("keys", &self.keys.len()).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Tollgate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tollgate").field("store", &self.store.stats()).finish_non_exhaustive()
    }
}
