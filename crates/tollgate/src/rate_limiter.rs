//! The limiter of keys, which needs neither a request nor a policy.

mod charge;
mod decision;
mod key;
mod reservation;
mod status;
mod wait;

use std::fmt;
use std::sync::Arc;

use tollgate_core::{Admission, Limit, Store, StoreError};

pub use decision::{Admitted, Decision, Refused};
pub use key::Key;
pub use reservation::{Reservation, Settled};
pub use status::Status;

use crate::clock::{Clock, CounterClock};
use crate::hash_key::HashKey;
use crate::limiter::hold_times::HoldTimes;
use crate::quota::{QuotaError, Quotas};
use crate::receipt::has_permits;
use crate::store::Memory;

/// Limits keys: users, addresses, or anything that implements [`Key`].
///
/// The counters are in this process unless [`store`](Self::store) sets another store. The limiter
/// is `Send` and `Sync`: share the limiter as an [`Arc`] or in a `static`.
///
/// ```
/// use tollgate::{Decision, Quota, RateLimiter};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let limiter = RateLimiter::per_key(Quota::per_minute(100).burst(20));
/// match limiter.check("alice").await {
///     Decision::Admitted(admitted) => println!("{} left", admitted.remaining()),
///     Decision::Refused(refused) => println!("retry after {:?}", refused.retry_after()),
/// }
/// # });
/// ```
pub struct RateLimiter<S = Memory> {
    limits: Vec<Arc<Limit>>,
    store: S,
    clock: Box<dyn Clock>,
    hash_key: HashKey,
    on_store_error: OnStoreError,
    hold_times: HoldTimes,
}

/// The decision while a store does not answer.
///
/// ```
/// use tollgate::{OnStoreError, Quota, RateLimiter};
///
/// let sign_in = RateLimiter::per_key(Quota::per_minute(5)).on_store_error(OnStoreError::Refuse);
/// # let _ = sign_in;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnStoreError {
    /// Admits the charge, so an outage of the store does not become an outage of the service.
    #[default]
    Admit,
    /// Refuses the charge. Choose this variant if no service is better than a service without a
    /// limit.
    Refuse,
}

impl RateLimiter {
    /// Creates a limiter in memory, with one counter for each key and quota. With several quotas, a
    /// charge counts on all quotas or on none.
    ///
    /// ```
    /// use tollgate::{Quota, RateLimiter};
    ///
    /// let limiter = RateLimiter::per_key([Quota::per_second(10), Quota::per_hour(1_000)]);
    /// assert!(limiter.try_check("alice").is_admitted());
    /// ```
    ///
    /// # Panics
    /// Panics if a quota is invalid, for example zero. Use [`try_per_key`](Self::try_per_key) for
    /// quotas that are read from a configuration.
    #[track_caller]
    #[must_use]
    pub fn per_key(quotas: impl Into<Quotas>) -> Self {
        match Self::try_per_key(quotas) {
            Ok(limiter) => limiter,
            Err(error) => panic!("{error}"),
        }
    }

    /// Creates the limiter of [`per_key`](Self::per_key), and returns an error if a quota is
    /// invalid.
    ///
    /// ```
    /// use tollgate::{Quota, RateLimiter};
    ///
    /// let requests = std::env::var("RATE").ok().and_then(|rate| rate.parse().ok()).unwrap_or(10);
    /// let limiter = RateLimiter::try_per_key(Quota::per_second(requests))?;
    /// # let _ = limiter;
    /// # Ok::<(), tollgate::QuotaError>(())
    /// ```
    ///
    /// # Errors
    /// [`QuotaError`] names the limit and the mistake.
    pub fn try_per_key(quotas: impl Into<Quotas>) -> Result<Self, QuotaError> {
        Ok(Self {
            limits: quotas.into().limits()?,
            store: Memory::default(),
            clock: Box::new(CounterClock::new()),
            hash_key: HashKey::random(),
            on_store_error: OnStoreError::default(),
            hold_times: HoldTimes::default(),
        })
    }

    /// Charges one unit to `key` without a future, so the call needs no runtime.
    ///
    /// ```
    /// # use tollgate::{Quota, RateLimiter};
    /// let limiter = RateLimiter::per_key(Quota::per_hour(1).fixed_window());
    /// assert!(limiter.try_check("alice").is_admitted());
    /// assert!(!limiter.try_check("alice").is_admitted());
    /// assert!(limiter.try_check("bob").is_admitted());
    /// ```
    #[inline]
    pub fn try_check<K: Key + ?Sized>(&self, key: &K) -> Decision {
        self.try_check_n(key, 1)
    }

    /// Charges `units` to `key`, all or none. The call needs no future.
    ///
    /// ```
    /// # use tollgate::{Quota, RateLimiter};
    /// let limiter = RateLimiter::per_key(Quota::per_minute(1_000));
    /// assert!(limiter.try_check_n("alice", 800).is_admitted());
    /// assert!(!limiter.try_check_n("alice", 800).is_admitted());
    /// ```
    #[inline]
    pub fn try_check_n<K: Key + ?Sized>(&self, key: &K, units: u64) -> Decision {
        self.charge_in_memory(&self.store, key, units)
    }

    /// Returns the status of `key` without a charge and without a future.
    ///
    /// ```
    /// # use tollgate::{Quota, RateLimiter};
    /// let limiter = RateLimiter::per_key(Quota::per_minute(10));
    /// assert_eq!(limiter.try_peek("alice").remaining(), 10);
    /// ```
    #[must_use]
    pub fn try_peek<K: Key + ?Sized>(&self, key: &K) -> Status {
        let (now, subject) = (self.clock.now(), self.subject(key));
        let charges = self.charges(&subject, |_| charge::PEEK);
        // The memory store always answers.
        let readings = self.store.apply_now(now, &charges).unwrap_or_default();
        self.status(now, &readings, Admission::Now)
    }
}

impl<S: Store + 'static> RateLimiter<S> {
    /// Keeps the counters in `store`, which several processes can share.
    ///
    /// All processes that share the store need the same names of quotas
    /// ([`Quota::named`](crate::Quota::named)) and the same [hash key](Self::hash_key).
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate::store::Memory;
    /// use tollgate::{Quota, RateLimiter};
    ///
    /// let store = Arc::new(Memory::default());
    /// let reads = RateLimiter::per_key(Quota::per_second(100).named("reads")).store(store.clone());
    /// let writes = RateLimiter::per_key(Quota::per_second(10).named("writes")).store(store);
    /// # let _ = (reads, writes);
    /// ```
    #[must_use]
    pub fn store<T: Store + 'static>(self, store: T) -> RateLimiter<T> {
        let Self { limits, clock, hash_key, on_store_error, hold_times, .. } = self;
        RateLimiter { limits, store, clock, hash_key, on_store_error, hold_times }
    }

    /// Sets the key under which keys longer than 128 bytes are hashed.
    ///
    /// ```
    /// # use tollgate::{HashKey, Quota, RateLimiter};
    /// let secret = HashKey::from_secret(b"the same on every node, 32 bytes");
    /// let limiter = RateLimiter::per_key(Quota::per_second(10)).hash_key(secret);
    /// # let _ = limiter;
    /// ```
    #[must_use]
    pub fn hash_key(self, hash_key: HashKey) -> Self {
        Self { hash_key, ..self }
    }

    /// Sets the decision while the store does not answer. The default admits.
    ///
    /// ```
    /// # use tollgate::{OnStoreError, Quota, RateLimiter};
    /// let limiter = RateLimiter::per_key(Quota::per_second(10)).on_store_error(OnStoreError::Refuse);
    /// # let _ = limiter;
    /// ```
    #[must_use]
    pub fn on_store_error(self, on_store_error: OnStoreError) -> Self {
        Self { on_store_error, ..self }
    }

    /// Sets the clock, for tests: see [`ManualClock`](crate::ManualClock).
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::time::Duration;
    /// use tollgate::{ManualClock, Quota, RateLimiter};
    ///
    /// let clock = Arc::new(ManualClock::default());
    /// let limiter = RateLimiter::per_key(Quota::per_hour(1)).clock(clock.clone());
    /// assert!(limiter.try_check("alice").is_admitted());
    /// assert!(!limiter.try_check("alice").is_admitted());
    /// clock.advance_by(Duration::from_secs(3_600));
    /// assert!(limiter.try_check("alice").is_admitted());
    /// ```
    #[must_use]
    pub fn clock(self, clock: impl Clock + 'static) -> Self {
        Self { clock: Box::new(clock), ..self }
    }

    /// Charges one unit to `key`.
    ///
    /// ```
    /// # use tollgate::{Quota, RateLimiter};
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let limiter = RateLimiter::per_key(Quota::per_minute(100));
    /// assert!(limiter.check("alice").await.is_admitted());
    /// # });
    /// ```
    #[inline]
    pub async fn check<K: Key + ?Sized + Sync>(&self, key: &K) -> Decision {
        self.check_n(key, 1).await
    }

    /// Charges `units` to `key`, all or none. If `units` is zero, charges nothing, and admits if
    /// one unit is left.
    ///
    /// ```
    /// # use tollgate::{Quota, RateLimiter};
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let upload = RateLimiter::per_key(Quota::per_day(1_000_000));
    /// assert!(upload.check_n("alice", 250_000).await.is_admitted());
    /// # });
    /// ```
    #[inline]
    pub async fn check_n<K: Key + ?Sized + Sync>(&self, key: &K, units: u64) -> Decision {
        match self.memory() {
            Some(memory) => self.charge_in_memory(memory, key, units),
            None => self.charge(key, units).await,
        }
    }

    /// Returns the status of `key` without charging it.
    ///
    /// ```
    /// # use tollgate::{Quota, RateLimiter};
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let limiter = RateLimiter::per_key(Quota::per_minute(100));
    /// assert_eq!(limiter.peek("alice").await?.remaining(), 100);
    /// # Ok::<(), tollgate::StoreError>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer.
    pub async fn peek<K: Key + ?Sized + Sync>(&self, key: &K) -> Result<Status, StoreError> {
        let (now, subject) = (self.clock.now(), self.subject(key));
        let charges = self.charges(&subject, |_| charge::PEEK);
        let readings = self.store.apply(now, &charges).await?;
        Ok(self.status(now, &readings, Admission::Now))
    }

    /// Refunds the charge `admitted` to `key` on every quota, unless the window of the charge is
    /// over. Also releases the units of [concurrent](crate::Quota::concurrent) quotas; to release
    /// only these, call [`release`](Self::release).
    ///
    /// ```
    /// # use tollgate::{Quota, RateLimiter};
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let limiter = RateLimiter::per_key(Quota::per_hour(1));
    /// let admitted = limiter.check("alice").await.into_result()?;
    /// limiter.refund("alice", admitted).await?;
    /// assert!(limiter.check("alice").await.is_admitted());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer. The charge then remains.
    pub async fn refund<K: Key + ?Sized + Sync>(
        &self,
        key: &K,
        admitted: Admitted,
    ) -> Result<(), StoreError> {
        self.return_units(key, &admitted, |_| true).await
    }

    /// Releases the units of `admitted` on [concurrent](crate::Quota::concurrent) quotas, because
    /// the work has ended. The other quotas of `key` stay charged, unlike after a
    /// [`refund`](Self::refund).
    ///
    /// ```
    /// # use tollgate::{Quota, RateLimiter};
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let limiter = RateLimiter::per_key([Quota::concurrent(1), Quota::per_hour(2)]);
    /// for _ in 0..2 {
    ///     let admitted = limiter.check("alice").await.into_result()?;
    ///     limiter.release("alice", admitted).await?;
    /// }
    /// assert!(!limiter.check("alice").await.is_admitted()); // two requests in this hour
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer. The units are then released after
    /// [`permit_ttl`](crate::Quota::permit_ttl).
    pub async fn release<K: Key + ?Sized + Sync>(
        &self,
        key: &K,
        admitted: Admitted,
    ) -> Result<(), StoreError> {
        self.return_units(key, &admitted, has_permits).await
    }

    /// Returns the units of `admitted` on the limits for which `is_returned` returns true.
    async fn return_units<K: Key + ?Sized + Sync>(
        &self,
        key: &K,
        admitted: &Admitted,
        is_returned: fn(&Limit) -> bool,
    ) -> Result<(), StoreError> {
        let subject = self.subject(key);
        let mut charges = self.charges(&subject, |index| charge::refund(admitted, index));
        charges.retain(|charge| is_returned(charge.limit));
        if admitted.positions.is_empty() || charges.is_empty() {
            return Ok(());
        }
        let now = self.clock.now();
        self.store.apply(now, &charges).await?;
        self.observe_hold_times(admitted, now);
        Ok(())
    }

    /// Returns the limits on which a charge counts. [`Limit`] is a type of the [lower
    /// level](crate::model).
    #[must_use]
    #[doc(hidden)]
    pub fn limits(&self) -> &[Arc<Limit>] {
        &self.limits
    }
}

impl<S: fmt::Debug> fmt::Debug for RateLimiter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.limits.iter().map(|limit| limit.name()).collect();
        f.debug_struct("RateLimiter")
            .field("limits", &names)
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}
