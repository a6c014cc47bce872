//! Counters of a batcher's calls and jobs.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counts of calls and jobs since the batcher was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatcherCounts {
    /// The number of calls that were sent.
    pub calls: u64,
    /// The number of jobs in the calls that were sent. A job that was sent twice counts twice.
    pub jobs: u64,
    /// The number of jobs that the server refused as late and that the batcher sent again.
    pub late: u64,
    /// The number of jobs that were rejected because the queue was full.
    pub overloaded: u64,
    /// The number of jobs that had no answer at their deadline.
    pub timed_out: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    calls: AtomicU64,
    jobs: AtomicU64,
    late: AtomicU64,
    overloaded: AtomicU64,
    timed_out: AtomicU64,
}

impl Counters {
    pub(super) fn call(&self, jobs: usize) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.jobs.fetch_add(jobs as u64, Ordering::Relaxed);
    }

    pub(super) fn late(&self, jobs: usize) {
        self.late.fetch_add(jobs as u64, Ordering::Relaxed);
    }

    pub(super) fn overloaded(&self) {
        self.overloaded.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn timed_out(&self) {
        self.timed_out.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn counts(&self) -> BatcherCounts {
        BatcherCounts {
            calls: self.calls.load(Ordering::Relaxed),
            jobs: self.jobs.load(Ordering::Relaxed),
            late: self.late.load(Ordering::Relaxed),
            overloaded: self.overloaded.load(Ordering::Relaxed),
            timed_out: self.timed_out.load(Ordering::Relaxed),
        }
    }
}
