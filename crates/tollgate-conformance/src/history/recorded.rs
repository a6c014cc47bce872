//! A store that records its calls.

use std::sync::Arc;

use tollgate_core::{Charge, Readings, Store, StoreError, Timestamp};

use super::{History, Recorder};

/// A store wrapper that records every call and passes the call on unchanged.
#[derive(Debug)]
pub struct Recorded<S> {
    store: S,
    recorder: Arc<Recorder>,
}

impl<S> Recorded<S> {
    /// Wraps `store`, with a new recorder.
    pub fn new(store: S) -> Self {
        Self::with_recorder(store, Arc::default())
    }

    /// Wraps `store` with `recorder`. Nodes that share the same state must share one recorder, and
    /// therefore have one history.
    pub const fn with_recorder(store: S, recorder: Arc<Recorder>) -> Self {
        Self { store, recorder }
    }

    /// Returns the store.
    pub const fn store(&self) -> &S {
        &self.store
    }

    /// Returns the recorder.
    pub const fn recorder(&self) -> &Arc<Recorder> {
        &self.recorder
    }

    /// Returns the history so far.
    pub fn history(&self) -> History {
        self.recorder.history()
    }
}

impl<S: Store> Store for Recorded<S> {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        let issued = self.recorder.issue(now, charges);
        let result = self.store.apply(now, charges).await;
        issued.answered(&result);
        result
    }
}
