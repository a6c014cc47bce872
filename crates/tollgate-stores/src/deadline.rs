//! A time limit for store calls.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tollgate_core::{Charge, Readings, Store, StoreError, Timestamp};

/// The default time that a store call may take.
pub const DEFAULT_BUDGET: Duration = Duration::from_millis(15);

/// The maximum delay of a runtime timer on an idle machine.
pub const TIMER_GRAIN: Duration = Duration::from_millis(1);

/// A store that returns [`StoreError::TimedOut`] if the inner store does not answer within a time
/// budget.
///
/// # Guarantees
/// Answers within the budget are returned unchanged. No call takes longer than
/// [`max_wait`](Self::max_wait), whatever the inner store waits for.
///
/// # Limitations
/// After [`StoreError::TimedOut`] the caller cannot know whether the call was applied. The wrapper
/// drops the future of the inner store and with it the answer, but by the contract of [`Store`] a
/// dropped future does not cancel the call. At most the call's own cost is charged without an
/// admission. No request is admitted without a charge.
///
/// This wrapper needs a tokio runtime with a timer, and an inner store that does not block its
/// thread, because a blocked thread stops the timer too.
pub struct Deadline<S> {
    store: S,
    budget: Duration,
    deadline_misses: AtomicU64,
}

impl<S> Deadline<S> {
    /// Wraps `store` with a time budget of [`DEFAULT_BUDGET`] for each call.
    #[must_use]
    pub const fn new(store: S) -> Self {
        Self { store, budget: DEFAULT_BUDGET, deadline_misses: AtomicU64::new(0) }
    }

    /// Sets how long a store call may take. Tokio rounds this time up to a whole millisecond.
    #[must_use]
    pub const fn with_budget(mut self, budget: Duration) -> Self {
        self.budget = budget;
        self
    }

    /// Returns the inner store.
    #[must_use]
    pub const fn store(&self) -> &S {
        &self.store
    }

    /// Returns the maximum duration of a call, without the time until the caller's task is
    /// scheduled again.
    #[must_use]
    pub const fn max_wait(&self) -> Duration {
        self.budget.saturating_add(TIMER_GRAIN)
    }

    /// Returns the number of calls that timed out.
    #[must_use]
    pub fn deadline_misses(&self) -> u64 {
        self.deadline_misses.load(Ordering::Relaxed)
    }
}

impl<S: Store> Store for Deadline<S> {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        self.in_time(self.store.apply(now, charges)).await
    }
}

impl<S> Deadline<S> {
    pub(super) async fn in_time<T>(
        &self,
        answer: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        match tokio::time::timeout(self.budget, answer).await {
            Ok(answer) => answer,
            Err(_) => {
                self.deadline_misses.fetch_add(1, Ordering::Relaxed);
                Err(StoreError::TimedOut)
            }
        }
    }
}

impl<S: fmt::Debug> fmt::Debug for Deadline<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deadline")
            .field("budget", &self.budget)
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}
