//! Waiting until a key is admitted.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tollgate_core::Store;

use super::RateLimiter;
use super::decision::{Admitted, Decision, Refused};
use super::key::Key;

impl<S: Store + 'static> RateLimiter<S> {
    /// Waits until one unit is charged to `key`, for at most `deadline`. Returns at once if the
    /// wait would be longer than `deadline`. If several callers wait for the same key, the order in
    /// which they are admitted is unspecified.
    ///
    /// Needs a Tokio runtime with a timer.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Quota, RateLimiter};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
    /// #     .block_on(async {
    /// let limiter = RateLimiter::per_key(Quota::per_second(100).burst(1));
    /// for _ in 0..3 {
    ///     limiter.until_ready("api.example.com", Duration::from_secs(5)).await?;
    /// }
    /// # Ok::<(), tollgate::Refused>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`Refused`] if the key cannot be admitted before the deadline. In this case nothing is
    /// charged.
    pub async fn until_ready<K: Key + ?Sized + Sync>(
        &self,
        key: &K,
        deadline: Duration,
    ) -> Result<Admitted, Refused> {
        self.until_n_ready(key, 1, deadline).await
    }

    /// Waits like [`until_ready`](Self::until_ready), for `units` instead of one.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tollgate::{Quota, RateLimiter};
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
    /// #     .block_on(async {
    /// let limiter = RateLimiter::per_key(Quota::per_second(1_000).burst(100));
    /// for batch in [100, 50] {
    ///     limiter.until_n_ready("rows", batch, Duration::from_secs(5)).await?;
    /// }
    /// # Ok::<(), tollgate::Refused>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`Refused`] if the units cannot be charged before the deadline, or if a limit can never
    /// admit so many units.
    pub async fn until_n_ready<K: Key + ?Sized + Sync>(
        &self,
        key: &K,
        units: u64,
        deadline: Duration,
    ) -> Result<Admitted, Refused> {
        let started = Instant::now();
        loop {
            let refused = match self.check_n(key, units).await {
                Decision::Admitted(admitted) => return Ok(admitted),
                Decision::Refused(refused) => refused,
            };
            let Some(wait) = refused.retry_after() else { return Err(refused) };
            // Wait at least a millisecond, so a stopped clock causes no busy loop.
            let until = Instant::now() + wait.max(Duration::from_millis(1));
            if until.duration_since(started) > deadline {
                return Err(refused);
            }
            sleep_until(until).await;
        }
    }
}
