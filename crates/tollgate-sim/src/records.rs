//! The store calls of the nodes, which are recorded for the history checker.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tollgate_backend::Backend;
use tollgate_conformance::history::{History, Recorder};
use tollgate_core::{Charge, Readings, Store, StoreError, Timestamp};

use crate::phase::Phase;

/// The recorded store calls of all nodes, in the phases without faults.
#[derive(Debug)]
pub(crate) struct Records {
    phase: AtomicUsize,
    before: Recorder,
    after: Recorder,
}

impl Records {
    pub(crate) fn new() -> Self {
        let phase = AtomicUsize::new(Phase::Before as usize);
        Self { phase, before: Recorder::default(), after: Recorder::default() }
    }

    pub(crate) fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as usize, Ordering::Relaxed);
    }

    pub(crate) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Relaxed) {
            0 => Phase::Before,
            1 => Phase::During,
            2 => Phase::Recovering,
            _ => Phase::After,
        }
    }

    /// Removes and returns the recorded calls: those before the faults, and those after the faults.
    pub(crate) fn take_histories(&self) -> [(&'static str, History); 2] {
        [("before the faults", self.before.take()), ("after them", self.after.take())]
    }

    fn recorder(&self) -> Option<&Recorder> {
        match self.phase() {
            Phase::Before => Some(&self.before),
            Phase::During | Phase::Recovering => None,
            Phase::After => Some(&self.after),
        }
    }
}

/// The store of a node. It records its calls in [`Records`].
#[derive(Debug)]
pub(crate) struct RecordedBackend {
    pub(crate) backend: Backend,
    pub(crate) records: Arc<Records>,
}

impl AsRef<Backend> for RecordedBackend {
    fn as_ref(&self) -> &Backend {
        &self.backend
    }
}

impl Store for RecordedBackend {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        let issued = self.records.recorder().map(|recorder| recorder.issue(now, charges));
        let result = self.backend.apply(now, charges).await;
        if let Some(issued) = issued {
            issued.answered(&result);
        }
        result
    }
}
