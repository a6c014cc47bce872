//! A store whose calls are recorded.

use std::sync::Arc;

use tollgate_core::{Charge, Readings, Store, StoreError, Timestamp};

use super::{History, Recorder};

/// Records every call of a store, and changes none.
#[derive(Debug)]
pub struct Recorded<S> {
    store: S,
    recorder: Arc<Recorder>,
}

impl<S> Recorded<S> {
    /// `store`, with a recorder of its own.
    pub fn new(store: S) -> Self {
        Self::with_recorder(store, Arc::default())
    }

    /// `store`, recorded by `recorder`, which others may share: several nodes on one home of state
    /// have one history.
    pub const fn with_recorder(store: S, recorder: Arc<Recorder>) -> Self {
        Self { store, recorder }
    }

    /// The store.
    pub const fn store(&self) -> &S {
        &self.store
    }

    /// The recorder.
    pub const fn recorder(&self) -> &Arc<Recorder> {
        &self.recorder
    }

    /// What was recorded so far.
    pub fn history(&self) -> History {
        self.recorder.history()
    }
}

impl<S: Store> Store for Recorded<S> {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        let issued = self.recorder.issue(now, charges);
        let told = self.store.apply(now, charges).await;
        issued.answered(&told);
        told
    }
}
