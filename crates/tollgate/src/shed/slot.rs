//! Guards that count the requests in flight on a node.

use std::sync::Arc;

use tollgate_core::Timestamp;
use tollgate_core::policy::Priority;
use tollgate_core::policy::shedding::ShedMode;

use super::adaptive::{Sample, SampleOutcome};
use super::decision::ShedDecision;
use super::worker::Worker;
use crate::clock::Stopwatch;

/// A guard that counts as one request in flight until the guard is dropped.
#[derive(Debug)]
#[must_use = "a request is in flight for as long as its permit lives"]
pub struct InFlightSlot {
    worker: Arc<Worker>,
    /// The number of requests in flight when this request was admitted, including this request.
    in_flight: u32,
    /// A stopwatch that was started when the service began the request. Before the service begins
    /// the request, the stopwatch runs since the request was admitted.
    since: Stopwatch,
}

impl Worker {
    /// Admits a request and returns its guard, or sheds the request. Returns no guard (`None`) if
    /// the policy does not shed load, or if the request is admitted only because of shadow mode.
    ///
    /// # Errors
    /// [`ShedDecision`] if the load is too high for the priority of the request.
    pub fn enter(
        self: &Arc<Self>,
        now: Timestamp,
        priority: Priority,
    ) -> Result<Option<InFlightSlot>, ShedDecision> {
        self.enter_with_mode(now, priority, ShedMode::Enforce)
    }

    /// Admits a request or sheds the request, like [`enter`](Self::enter). `mode` is the mode
    /// that overrides set. The mode of the settings or this mode applies, whichever sheds less.
    pub(crate) fn enter_with_mode(
        self: &Arc<Self>,
        now: Timestamp,
        priority: Priority,
        mode: ShedMode,
    ) -> Result<Option<InFlightSlot>, ShedDecision> {
        let admitted = self.admit(now, priority, mode)?;
        let slot = |in_flight| {
            let (worker, since) = (Arc::clone(self), Stopwatch::start());
            InFlightSlot { worker, in_flight, since }
        };
        Ok(admitted.map(slot))
    }
}

impl InFlightSlot {
    /// Records that the service begins the request at `now`. The request waited from its admission
    /// until `now`.
    pub fn begins(&mut self, now: Timestamp) {
        self.worker.observe_queue_delay(now, self.since.micros());
        self.since = Stopwatch::start();
    }

    /// Records that the service's response began at `now`, and whether it shows that the service is
    /// overloaded.
    pub fn answered(&self, now: Timestamp, outcome: SampleOutcome) {
        let Self { in_flight, since, .. } = self;
        let sample = Sample { micros: since.micros(), in_flight: *in_flight, outcome };
        self.worker.observe(now, sample);
    }
}

impl Drop for InFlightSlot {
    fn drop(&mut self) {
        self.worker.leave();
    }
}
