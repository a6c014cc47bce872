//! An answer in time, or none.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tollgate_core::{Charge, Readings, Store, StoreError, Timestamp};

/// How long a store may take unless another time is set.
pub const DEFAULT_BUDGET: Duration = Duration::from_millis(15);

/// How late a timer of the runtime may be on a machine that has nothing else to do.
pub const TIMER_GRAIN: Duration = Duration::from_millis(1);

/// Answers [`StoreError::TimedOut`] when a store does not answer within its budget.
///
/// # What it keeps
/// Every answer that comes in time, unchanged. No call takes longer than
/// [`max_wait`](Self::max_wait), whatever the store waits for.
///
/// # What it weakens
/// After [`StoreError::TimedOut`] nobody knows whether the call was carried out: the store's future
/// is dropped, which by the store's contract gives up the answer and not the call. At most the
/// call's own cost can be charged without an admission, and nothing can be admitted uncharged.
///
/// It needs a tokio runtime with a timer, and a store that waits: one that blocks its thread
/// stops the timer too.
pub struct Deadline<S> {
    store: S,
    budget: Duration,
    missed: AtomicU64,
}

impl<S> Deadline<S> {
    /// `store`, with [`DEFAULT_BUDGET`].
    #[must_use]
    pub const fn new(store: S) -> Self {
        Self { store, budget: DEFAULT_BUDGET, missed: AtomicU64::new(0) }
    }

    /// Sets how long the store may take; tokio rounds it up to a millisecond.
    #[must_use]
    pub const fn with_budget(mut self, budget: Duration) -> Self {
        self.budget = budget;
        self
    }

    /// The store.
    #[must_use]
    pub const fn store(&self) -> &S {
        &self.store
    }

    /// The longest that a call takes, besides what the machine needs to run the task again.
    #[must_use]
    pub const fn max_wait(&self) -> Duration {
        self.budget.saturating_add(TIMER_GRAIN)
    }

    /// How many calls were not answered in time.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
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
                self.missed.fetch_add(1, Ordering::Relaxed);
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
