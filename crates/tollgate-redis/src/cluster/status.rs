//! How a cluster stands.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{ClusterError, Redirect};
use crate::batcher::BatcherStatus;
use crate::offset::ClockOffset;
use crate::script::StepRuntime;
use crate::topology::DataLoss;

/// How a cluster stands, as far as this process knows.
#[derive(Clone, Debug)]
pub struct ClusterStatus {
    /// Its primaries, in the order of their first slots. None before somebody told of them.
    pub groups: Vec<GroupStatus>,
    /// How many slots nobody keeps, of 16,384.
    pub unowned: u16,
    /// Where jobs were sent on, since the store was opened.
    pub redirects: Redirects,
    /// Why the last look at who keeps which slots came to nothing, if it did.
    pub last_error: Option<ClusterError>,
}

/// How a primary stands, and what follows it.
#[derive(Clone, Debug)]
pub struct GroupStatus {
    /// How many slots it keeps.
    pub slots: u16,
    /// How the step runs in it.
    pub runs: StepRuntime,
    /// The batcher to it, then those to the replicas that are read from.
    pub batchers: Vec<BatcherStatus>,
    /// How far its clock is ahead of the application's. `None` before the first reply.
    pub clock_offset: Option<ClockOffset>,
    /// How often, since it was first met, counters of it were found lost, so that windows began
    /// anew.
    pub windows_lost: u64,
    /// Why they were lost the last time.
    pub last_loss: Option<DataLoss>,
}

/// How often nodes did not serve a job's slot. Nothing of it ran there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Redirects {
    /// The slot had moved.
    pub moved: u64,
    /// The slot was on its way, and the keys were at its new node or nowhere.
    pub asked: u64,
    /// The slot was on its way, with a part of the keys.
    pub tried_again: u64,
    /// The cluster did not serve the slot.
    pub down: u64,
}

#[derive(Debug, Default)]
pub(super) struct RedirectCounters {
    moved: AtomicU64,
    asked: AtomicU64,
    tried_again: AtomicU64,
    down: AtomicU64,
}

impl RedirectCounters {
    pub(super) fn count(&self, redirect: &Redirect) {
        let counter = match redirect {
            Redirect::Moved { .. } => &self.moved,
            Redirect::Operation { .. } => &self.asked,
            Redirect::TryAgain => &self.tried_again,
            Redirect::Down => &self.down,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn counts(&self) -> Redirects {
        Redirects {
            moved: self.moved.load(Ordering::Relaxed),
            asked: self.asked.load(Ordering::Relaxed),
            tried_again: self.tried_again.load(Ordering::Relaxed),
            down: self.down.load(Ordering::Relaxed),
        }
    }
}
