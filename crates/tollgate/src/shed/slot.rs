//! A place among the requests that a worker has in flight.

use std::sync::Arc;

use tollgate_core::Timestamp;

use super::adaptive::{Sample, SampleOutcome};
use super::worker::Worker;
use crate::clock::Stopwatch;

/// Counts as one request in flight until it is dropped.
#[derive(Debug)]
#[must_use = "a request is in flight for as long as its permit lives"]
pub struct InFlightSlot {
    worker: Arc<Worker>,
    /// How many were in flight when it entered, itself among them.
    in_flight: u32,
    /// Since it entered; since it began to be served, once it was.
    since: Stopwatch,
}

impl InFlightSlot {
    pub(super) fn new(worker: Arc<Worker>, in_flight: u32) -> Self {
        Self { worker, in_flight, since: Stopwatch::start() }
    }

    /// The service begins to serve it `now`: until here it waited.
    pub fn begins(&mut self, now: Timestamp) {
        self.worker.observe_queue_delay(now, self.since.micros());
        self.since = Stopwatch::start();
    }

    /// The service's answer began `now`.
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
