//! The status of a cluster.

use std::sync::atomic::{AtomicU64, Ordering};

use super::ClusterError;
use crate::batcher::BatcherStatus;
use crate::members::DataLoss;
use crate::offset::ClockOffset;
use crate::redirect::Redirect;
use crate::script::StepRuntime;

/// The status of a cluster, as far as this process has discovered it.
#[derive(Clone, Debug)]
pub struct ClusterStatus {
    /// The primaries, in the order of their first slots. Empty before the first discovery.
    pub groups: Vec<GroupStatus>,
    /// The number of slots without an owner, out of 16,384 slots.
    pub unowned: u16,
    /// The redirects since the store was opened.
    pub redirects: Redirects,
    /// The reason why the last discovery of the slot layout failed, or `None` if it succeeded.
    pub last_error: Option<ClusterError>,
}

/// The status of a primary and its replicas.
#[derive(Clone, Debug)]
pub struct GroupStatus {
    /// The number of slots that the primary owns.
    pub slots: u16,
    /// How the step runs in the primary: as a module, a function or a script.
    pub runs: StepRuntime,
    /// The status of the batcher to the primary, and then the status of the batchers to the
    /// replicas that serve reads.
    pub batchers: Vec<BatcherStatus>,
    /// How far the primary's clock is ahead of the application's clock. `None` before the primary's
    /// first reply.
    pub clock_offset: Option<ClockOffset>,
    /// How often lost counters were detected since the group was first connected. After each loss,
    /// some or all windows started again.
    pub windows_lost: u64,
    /// The cause of the last loss of counters, or `None` without a loss.
    pub last_loss: Option<DataLoss>,
}

/// Counts of jobs that a node did not execute because the node did not serve the slot of the job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Redirects {
    /// The number of `MOVED` replies: the slot has another owner than the known layout says.
    pub moved: u64,
    /// The number of `ASK` replies: the slot was being moved, and the keys were on its new node or
    /// did not exist.
    pub ask_redirects: u64,
    /// The number of `TRYAGAIN` replies: the slot was being moved, and each of its two nodes had
    /// only some of the job's keys.
    pub tried_again: u64,
    /// The number of `CLUSTERDOWN` replies: the cluster did not serve the slot.
    pub down: u64,
}

#[derive(Debug, Default)]
pub(super) struct RedirectCounters {
    moved: AtomicU64,
    ask_redirects: AtomicU64,
    tried_again: AtomicU64,
    down: AtomicU64,
}

impl RedirectCounters {
    pub(super) fn count(&self, redirect: &Redirect) {
        let counter = match redirect {
            Redirect::Moved { .. } => &self.moved,
            Redirect::Ask { .. } => &self.ask_redirects,
            Redirect::TryAgain => &self.tried_again,
            Redirect::Down => &self.down,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn counts(&self) -> Redirects {
        Redirects {
            moved: self.moved.load(Ordering::Relaxed),
            ask_redirects: self.ask_redirects.load(Ordering::Relaxed),
            tried_again: self.tried_again.load(Ordering::Relaxed),
            down: self.down.load(Ordering::Relaxed),
        }
    }
}
