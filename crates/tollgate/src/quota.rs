//! Quotas: how much a key may use, and how the use is counted.

mod algorithm;
mod error;
mod subjects;

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::{Limit, ReservationTerms};

pub use algorithm::Precision;
pub use error::QuotaError;
pub use subjects::{SubjectNames, SubjectQuota};

use algorithm::Counting;

/// The number of units that a key may use in a period, and the algorithm that counts them.
///
/// By default, a quota is a token bucket: units arrive at a constant rate, and at most the whole
/// quota accumulates. The calls in this table select the algorithm:
///
/// | call | algorithm |
/// | --- | --- |
/// | none, [`burst`](Self::burst) | token bucket |
/// | [`fixed_window`](Self::fixed_window), [`calendar_window`](Self::calendar_window) | fixed window |
/// | [`sliding`](Self::sliding) | sliding window in blocks |
/// | [`two_bucket`](Self::two_bucket) | sliding window, estimated from two buckets |
/// | [`sliding_log`](Self::sliding_log) | exact time of every charge |
/// | [`concurrent`](Self::concurrent) | requests in flight |
///
/// A limiter checks its quotas when the limiter is created.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Precision, Quota};
///
/// let steady = Quota::per_second(10).burst(20);
/// let hourly = Quota::per_hour(1_000).sliding(Precision::minutes(1));
/// let exact = Quota::new(5, Duration::from_secs(90)).sliding_log();
/// let running = Quota::concurrent(8);
/// # let _ = (steady, hourly, exact, running);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a quota does nothing until a limiter is created with it"]
pub struct Quota {
    units: u64,
    window: Duration,
    counting: Counting,
    name: Option<Box<str>>,
    overdraft: u64,
}

impl Quota {
    /// Allows `units` in each `window`, which is a whole number of milliseconds.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Quota, RateLimiter};
    ///
    /// let limiter = RateLimiter::per_key(Quota::new(3, Duration::from_secs(10)));
    /// assert!(limiter.try_check("alice").is_admitted());
    /// ```
    pub fn new(units: u64, window: Duration) -> Self {
        let counting = Counting::TokenBucket { burst: None };
        Self { units, window, counting, name: None, overdraft: 0 }
    }

    /// Allows `units` per second.
    ///
    /// ```
    /// # use tollgate::{Quota, RateLimiter};
    /// assert!(RateLimiter::per_key(Quota::per_second(10)).try_check("alice").is_admitted());
    /// ```
    pub fn per_second(units: u64) -> Self {
        Self::new(units, Duration::from_secs(1))
    }

    /// Allows `units` per minute.
    ///
    /// ```
    /// # use tollgate::{Quota, RateLimiter};
    /// assert!(RateLimiter::per_key(Quota::per_minute(10)).try_check("alice").is_admitted());
    /// ```
    pub fn per_minute(units: u64) -> Self {
        Self::new(units, Duration::from_secs(60))
    }

    /// Allows `units` per hour.
    ///
    /// ```
    /// # use tollgate::{Quota, RateLimiter};
    /// assert!(RateLimiter::per_key(Quota::per_hour(10)).try_check("alice").is_admitted());
    /// ```
    pub fn per_hour(units: u64) -> Self {
        Self::new(units, Duration::from_secs(3_600))
    }

    /// Allows `units` per day of 24 hours.
    ///
    /// ```
    /// # use tollgate::{Quota, RateLimiter};
    /// assert!(RateLimiter::per_key(Quota::per_day(10)).try_check("alice").is_admitted());
    /// ```
    pub fn per_day(units: u64) -> Self {
        Self::new(units, Duration::from_secs(86_400))
    }

    /// Allows `units` in flight at the same time. An admitted request holds its units until they
    /// are [released](crate::RateLimiter::release), and for at most 30 seconds unless
    /// [`permit_ttl`](Self::permit_ttl) sets another time.
    ///
    /// ```
    /// use tollgate::{Decision, Quota, RateLimiter};
    ///
    /// # tokio_test(async {
    /// let limiter = RateLimiter::per_key(Quota::concurrent(1));
    /// let Decision::Admitted(first) = limiter.check("alice").await else { panic!() };
    /// assert!(!limiter.check("alice").await.is_admitted());
    /// limiter.release("alice", first).await?;
    /// assert!(limiter.check("alice").await.is_admitted());
    /// # Ok::<(), tollgate::StoreError>(())
    /// # }).unwrap();
    /// # fn tokio_test<T>(work: impl Future<Output = T>) -> T {
    /// #     tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
    /// # }
    /// ```
    pub fn concurrent(units: u64) -> Self {
        let permit_ttl = Duration::from_secs(30);
        Self { counting: Counting::Concurrency, ..Self::new(units, permit_ttl) }
    }

    /// Counts with a token bucket that holds at most `units`.
    ///
    /// ```
    /// # use tollgate::{Quota, RateLimiter};
    /// let limiter = RateLimiter::per_key(Quota::per_hour(60).burst(2));
    /// let admitted = (0..5).filter(|_| limiter.try_check("alice").is_admitted());
    /// assert_eq!(admitted.count(), 2);
    /// ```
    pub fn burst(self, units: u64) -> Self {
        Self { counting: Counting::TokenBucket { burst: Some(units) }, ..self }
    }

    /// Counts in fixed windows. A key's window begins with its first request.
    ///
    /// ```
    /// # use tollgate::{Quota, RateLimiter};
    /// let limiter = RateLimiter::per_key(Quota::per_hour(2).fixed_window());
    /// let admitted = (0..5).filter(|_| limiter.try_check("alice").is_admitted());
    /// assert_eq!(admitted.count(), 2);
    /// ```
    pub fn fixed_window(self) -> Self {
        Self { counting: Counting::FixedWindow, ..self }
    }

    /// Counts in fixed windows that begin at multiples of the window since 1970 (UTC), such as
    /// every full hour.
    ///
    /// ```
    /// # use tollgate::{Quota, RateLimiter};
    /// let limiter = RateLimiter::per_key(Quota::per_day(1_000).calendar_window());
    /// # assert!(limiter.try_check("alice").is_admitted());
    /// ```
    pub fn calendar_window(self) -> Self {
        Self { counting: Counting::CalendarWindow, ..self }
    }

    /// Counts in a sliding window. Charged units expire in blocks of the length `precision`.
    ///
    /// ```
    /// # use tollgate::{Precision, Quota, RateLimiter};
    /// let limiter = RateLimiter::per_key(Quota::per_hour(1_000).sliding(Precision::minutes(1)));
    /// # assert!(limiter.try_check("alice").is_admitted());
    /// ```
    pub fn sliding(self, precision: Precision) -> Self {
        Self { counting: Counting::Sliding(precision), ..self }
    }

    /// Counts in a sliding window that is estimated from two fixed windows, in constant memory.
    ///
    /// ```
    /// # use tollgate::{Quota, RateLimiter};
    /// let limiter = RateLimiter::per_key(Quota::per_hour(1_000).two_bucket());
    /// # assert!(limiter.try_check("alice").is_admitted());
    /// ```
    pub fn two_bucket(self) -> Self {
        Self { counting: Counting::TwoBucket, ..self }
    }

    /// Counts exactly: no interval of the window's length has more charged units than the quota.
    /// The time of every charge is stored, so the quota is at most 10,000.
    ///
    /// ```
    /// # use tollgate::{Quota, RateLimiter};
    /// let limiter = RateLimiter::per_key(Quota::per_hour(1_000).sliding_log());
    /// # assert!(limiter.try_check("alice").is_admitted());
    /// ```
    pub fn sliding_log(self) -> Self {
        Self { counting: Counting::SlidingLog, ..self }
    }

    /// Sets how long a unit of a [concurrent](Self::concurrent) quota is held if the unit is never
    /// refunded. Other quotas ignore this time.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tollgate::Quota;
    /// let jobs = Quota::concurrent(4).permit_ttl(Duration::from_secs(600));
    /// # let _ = jobs;
    /// ```
    pub fn permit_ttl(self, permit_ttl: Duration) -> Self {
        let window = if self.counting == Counting::Concurrency { permit_ttl } else { self.window };
        Self { window, ..self }
    }

    /// Sets how many units beyond the quota may be charged when a reservation is
    /// [settled](crate::RateLimiter::settle).
    ///
    /// ```
    /// # use tollgate::Quota;
    /// let tokens = Quota::per_minute(100_000).fixed_window().overdraft(5_000);
    /// # let _ = tokens;
    /// ```
    pub fn overdraft(self, units: u64) -> Self {
        Self { overdraft: units, ..self }
    }

    /// Sets the name of the limit in shared stores, headers and refusals: 1 to 64 letters, digits,
    /// `_`, `-` and `.`.
    ///
    /// Limiters that share a store share the counters of limits with the same name. The default
    /// name is `limit`, then `limit-2` and so on.
    ///
    /// ```
    /// # use tollgate::Quota;
    /// let sign_in = Quota::per_minute(5).named("sign-in");
    /// # let _ = sign_in;
    /// ```
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Counts separately for each value of a subject, or for each combination of the values of
    /// several subjects. `subjects` is the name of a subject of a
    /// [`RequestLimiterBuilder`](crate::RequestLimiterBuilder), or an array of such names.
    ///
    /// ```
    /// # use tollgate::Quota;
    /// let burst = Quota::per_second(10).per("user");
    /// let hourly = Quota::per_hour(1_000).per(["user", "ip"]);
    /// # let _ = (burst, hourly);
    /// ```
    pub fn per(self, subjects: impl SubjectNames) -> SubjectQuota {
        SubjectQuota::new(self, subjects)
    }

    /// Creates the limit of this quota. `index` is the index of this quota among the quotas of its
    /// limiter, and determines the default name of the limit.
    pub(crate) fn to_limit(&self, index: usize) -> Result<Limit, QuotaError> {
        let default = match index {
            0 => "limit".to_owned(),
            _ => format!("limit-{}", index + 1),
        };
        let name = self.name.as_deref().unwrap_or(&default);
        self.to_named_limit(name)
    }

    /// Creates the limit of this quota with the name `name` in place of the quota's own name.
    pub(crate) fn to_named_limit(&self, name: &str) -> Result<Limit, QuotaError> {
        let algorithm = self.counting.algorithm(self.units, self.window, name)?;
        let failed = |error| QuotaError::limit(name, error);
        let limit = Limit::new(name, algorithm).map_err(failed)?;
        if self.overdraft == 0 {
            return Ok(limit);
        }
        let terms = ReservationTerms { overdraft: self.overdraft, ..ReservationTerms::default() };
        limit.with_reservation_terms(terms).map_err(failed)
    }
}

/// One quota or several: `Quota`, `[Quota; N]` or `Vec<Quota>`.
///
/// ```
/// use tollgate::{Quota, Quotas};
///
/// let several: Quotas = [Quota::per_second(10), Quota::per_hour(1_000)].into();
/// # let _ = several;
/// ```
#[derive(Clone, Debug)]
pub struct Quotas(Vec<Quota>);

impl Quotas {
    /// Converts each quota to a limit.
    pub(crate) fn limits(&self) -> Result<Vec<Arc<Limit>>, QuotaError> {
        if self.0.is_empty() {
            return Err(QuotaError::none());
        }
        let limits: Result<Vec<_>, _> =
            self.0.iter().enumerate().map(|(index, quota)| quota.to_limit(index)).collect();
        let limits = limits?;
        for (index, limit) in limits.iter().enumerate() {
            if limits[..index].iter().any(|other| other.name() == limit.name()) {
                return Err(QuotaError::twice(limit.name()));
            }
        }
        Ok(limits.into_iter().map(Arc::new).collect())
    }
}

impl From<Quota> for Quotas {
    fn from(quota: Quota) -> Self {
        Self(vec![quota])
    }
}

impl<const N: usize> From<[Quota; N]> for Quotas {
    fn from(quotas: [Quota; N]) -> Self {
        Self(quotas.into())
    }
}

impl From<Vec<Quota>> for Quotas {
    fn from(quotas: Vec<Quota>) -> Self {
        Self(quotas)
    }
}
