//! The task that charges servers for units that this node admitted while a server did not answer.

use std::fmt;
use std::sync::Arc;

use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval};
use tollgate::model::CellTransfer;
use tollgate::{Clock, SystemClock};

use super::server_store::Decider;
use crate::shards::{Deciding, WATCH_PERIOD};

/// A task that, once per [`WATCH_PERIOD`], charges the servers for units that this node admitted
/// while a server did not answer. The units then count even if the node receives no more requests.
/// Dropping this value ends the task.
pub(super) struct LocalCharging {
    clock: Deciding,
    task: AbortHandle,
}

impl LocalCharging {
    /// Starts the task. The time of the charges is the time of `clock`, the clock of the node's
    /// decisions. Until that clock is set, it is the time of the machine's clock.
    pub(super) fn start<P: CellTransfer + 'static>(
        decider: Arc<Decider<P>>,
        clock: Deciding,
    ) -> Self {
        let deciding = Arc::clone(&clock);
        let task = tokio::spawn(async move {
            let mut ticks = interval(WATCH_PERIOD);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                let now = deciding.get().map_or_else(|| SystemClock.now(), |clock| clock.now());
                decider.charge_local(now).await;
            }
        });
        Self { clock, task: task.abort_handle() }
    }

    /// Sets the clock of the node's decisions. Only the first call has an effect.
    pub(super) fn set_clock(&self, clock: Arc<dyn Clock>) {
        self.clock.get_or_init(|| clock);
    }
}

impl fmt::Debug for LocalCharging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalCharging").finish_non_exhaustive()
    }
}

impl Drop for LocalCharging {
    fn drop(&mut self) {
        self.task.abort();
    }
}
