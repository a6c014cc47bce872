//! Measures the durations of store calls.

use tollgate_core::{Charge, Readings, Store, StoreError, Timestamp};

use tollgate::observe::{Histogram, Observed};

/// A store that measures the duration of each call of the inner store.
///
/// # Guarantees
/// Every answer is returned unchanged.
///
/// # Limitations
/// Each call takes two readings of the clock and two relaxed atomic additions. A call that is
/// cancelled before its answer counts with the time until its cancellation. If cancelled calls did
/// not count, a store that stopped answering would look as fast as before. Reading and joining
/// cells is not measured, because no client waits for these operations.
#[derive(Debug)]
pub struct CallTimer<S> {
    store: S,
    durations: Histogram,
}

impl<S> CallTimer<S> {
    /// Wraps `store` and starts to measure its calls.
    #[must_use]
    pub fn new(store: S) -> Self {
        Self { store, durations: Histogram::default() }
    }

    /// Returns the inner store.
    #[must_use]
    pub const fn store(&self) -> &S {
        &self.store
    }

    /// Returns the measured durations of the store's calls.
    #[must_use]
    pub fn durations(&self) -> Observed {
        self.durations.read()
    }
}

impl<S: Store> Store for CallTimer<S> {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        let _measuring = self.durations.measure();
        self.store.apply(now, charges).await
    }
}
