//! Gives back what is unused, again and again.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tollgate_core::{Millis, Store, Timestamp};

use super::{QuotaLease, Shared};

/// The time between two sweeps. What nobody used between two of them is given back at the second:
/// units lie idle for less than twice as long.
pub const SWEEP_PERIOD: Duration = Duration::from_millis(250);

/// The limits and subjects of which units are given back in one sweep, at most.
pub const MAX_REFUNDS_PER_SWEEP: usize = 1_024;

/// Sweeps until it is dropped, or the leases are.
#[must_use = "it sweeps until it is dropped"]
pub struct Sweeper {
    task: AbortHandle,
}

impl<S: Store + 'static> QuotaLease<S> {
    /// Gives back what was not used lately, every [`SWEEP_PERIOD`], at the time of the last charge and
    /// what has gone by since. Needs a tokio runtime with a timer.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start_sweeping(&self) -> Sweeper {
        let task = tokio::spawn(sweep(Arc::downgrade(&self.shared))).abort_handle();
        Sweeper { task }
    }

    /// Gives back what is unused beyond some sweeps' worth of use, of at most
    /// [`MAX_REFUNDS_PER_SWEEP`] limits and subjects: once.
    pub async fn sweep(&self, now: Timestamp) {
        self.shared.sweep(now).await;
    }

    /// Gives back all that is unused: before the process ends.
    pub async fn refund_all(&self, now: Timestamp) {
        let unused = self.shared.table.everything(now);
        // What the store does not take is lost until its windows are over, and counted.
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
    let mut heard = (Timestamp::EPOCH, Instant::now());
    loop {
        ticks.tick().await;
        let Some(shared) = leases.upgrade() else { return };
        // The clock of the charges, which is not this one's to read: it may be another machine's.
        let latest = shared.table.latest();
        if latest > heard.0 {
            heard = (latest, Instant::now());
        }
        let since = u64::try_from(heard.1.elapsed().as_millis()).unwrap_or(u64::MAX);
        shared.sweep(heard.0.after(Millis::new(since))).await;
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
