//! The number of requests in flight to an address.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

/// A counter of the requests in flight to one address.
#[derive(Debug, Default)]
pub(crate) struct InFlight(Arc<AtomicU32>);

/// A guard of one request in flight. The request is counted until the guard is dropped.
#[derive(Debug)]
pub(crate) struct InFlightGuard(Arc<AtomicU32>);

impl InFlight {
    pub(crate) fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn begin(&self) -> InFlightGuard {
        self.0.fetch_add(1, Ordering::Relaxed);
        InFlightGuard(Arc::clone(&self.0))
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
