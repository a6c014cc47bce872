//! The periodic refund of unused units.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tollgate_core::{Millis, Store, Timestamp};

use super::{QuotaLease, Shared};

/// The time between two sweeps. Units that were not used between two sweeps are refunded at the
/// second sweep, so units are idle for less than twice this time.
pub const SWEEP_PERIOD: Duration = Duration::from_millis(250);

/// The maximum number of limits and subjects refunded in one sweep.
pub const MAX_REFUNDS_PER_SWEEP: usize = 1_024;

/// A handle of a task that refunds unused units periodically. The task ends when the handle or the
/// store with the leases is dropped.
#[must_use = "it sweeps until it is dropped"]
pub struct Sweeper {
    task: AbortHandle,
}

impl<S: Store + 'static> QuotaLease<S> {
    /// Starts a task that every [`SWEEP_PERIOD`] refunds leased units that were not used recently.
    ///
    /// The time of a refund is the time of the last charge plus the time passed since that charge.
    /// Needs a tokio runtime with a timer.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start_sweeping(&self) -> Sweeper {
        let task = tokio::spawn(sweep(Arc::downgrade(&self.shared))).abort_handle();
        Sweeper { task }
    }

    /// Sweeps once. The sweep refunds the unused units that exceed the expected usage in the next
    /// few sweep periods, for at most [`MAX_REFUNDS_PER_SWEEP`] limits and subjects.
    pub async fn sweep(&self, now: Timestamp) {
        self.shared.sweep(now).await;
    }

    /// Refunds all unused units. Call this function before the process ends.
    pub async fn refund_all(&self, now: Timestamp) {
        let unused = self.shared.table.everything(now);
        // If the store does not accept a refund, the units are counted as lost and stay used until
        // their windows end.
        let _ = self.shared.refund(now, &unused).await;
    }
}

impl<S: Store + 'static> Shared<S> {
    async fn sweep(&self, now: Timestamp) {
        let unused = self.table.surplus(MAX_REFUNDS_PER_SWEEP);
        let _ = self.refund(now, &unused).await;
    }
}

async fn sweep<S: Store + 'static>(leases: Weak<Shared<S>>) {
    let mut ticks = interval(SWEEP_PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut latest_seen = (Timestamp::EPOCH, Instant::now());
    loop {
        ticks.tick().await;
        let Some(shared) = leases.upgrade() else { return };
        // This task cannot read the clock that gave the times of the charges, which may be another
        // machine's clock.
        let latest = shared.table.latest();
        if latest > latest_seen.0 {
            latest_seen = (latest, Instant::now());
        }
        let since = u64::try_from(latest_seen.1.elapsed().as_millis()).unwrap_or(u64::MAX);
        shared.sweep(latest_seen.0.after(Millis::new(since))).await;
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for Sweeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sweeper").finish_non_exhaustive()
    }
}
