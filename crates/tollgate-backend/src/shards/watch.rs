//! Logs changes of the shards, at a bounded rate.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tollgate::model::Policy;
use tollgate::model::time::DEFAULT_SKEW_MAX;
use tollgate::{Clock, SystemClock};

use super::map::{Shard, ShardMap};
use super::status_diff::{Change, StatusDiff};

/// The longest time for which the start of a node waits until the shards are connected. After this
/// time, the start continues.
pub const START_WAIT: Duration = Duration::from_secs(1);

/// The time between two checks of the shards. Each check logs at most one event for each server.
pub const WATCH_PERIOD: Duration = Duration::from_secs(1);

/// The clock for this node's decisions. The cell is empty until the clock is set, once.
pub(crate) type Deciding = Arc<OnceLock<Arc<dyn Clock>>>;

/// A task that checks the shards periodically until this value is dropped. The task logs changes
/// for operators, and replays charges that a shard lost.
pub(crate) struct Watch {
    started: watch::Receiver<bool>,
    /// The largest permitted difference of clocks, in milliseconds.
    skew_max: Arc<AtomicU64>,
    deciding: Deciding,
    task: AbortHandle,
}

impl Watch {
    /// Starts to watch `shards`. The tolerated difference of their clocks is the smallest
    /// `skew_max` of the limits of `policy`.
    pub(crate) fn start(shards: Arc<ShardMap>, policy: &Policy) -> Self {
        let (has_started, started) = watch::channel(false);
        let skew_max = Arc::new(AtomicU64::new(skew_max(policy)));
        let allowed = Arc::clone(&skew_max);
        let deciding = Deciding::default();
        let clock = Arc::clone(&deciding);
        let task = tokio::spawn(async move {
            let mut seen = Vec::new();
            let began = Instant::now();
            for shard in shards.shards() {
                // All shards connect concurrently, so the total wait is not longer than the wait
                // for one shard.
                let left = START_WAIT.saturating_sub(began.elapsed());
                shard.store.servers().ready(left).await;
                let mut begun = Vec::new();
                check(shard, &mut begun, millis(&allowed));
                seen.push(begun);
            }
            has_started.send_replace(true);
            let mut ticks = interval_at(Instant::now() + WATCH_PERIOD, WATCH_PERIOD);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                for (shard, seen) in shards.shards().zip(&mut seen) {
                    let now = clock.get().map_or_else(|| SystemClock.now(), |clock| clock.now());
                    let settled = shard.store.replay(now);
                    // If the replay fails or takes too long, the next check tries again.
                    let _ = timeout(WATCH_PERIOD, settled).await;
                    check(shard, seen, millis(&allowed));
                }
            }
        });
        Self { started, skew_max, deciding, task: task.abort_handle() }
    }

    /// Returns the cell of the clock for this node's decisions. The cell is empty until the clock
    /// is set.
    pub(crate) fn deciding(&self) -> Deciding {
        Arc::clone(&self.deciding)
    }

    /// Sets the clock of decisions. This clock also determines the age of the charges for a
    /// failover replay. Until the clock is set, the machine's clock is used. Only the first call
    /// has an effect.
    pub(crate) fn set_clock(&self, clock: Arc<dyn Clock>) {
        self.deciding.get_or_init(|| clock);
    }

    /// Sets the permitted clock difference from the limits of `policy`.
    pub(crate) fn follow(&self, policy: &Policy) {
        self.skew_max.store(skew_max(policy), Ordering::Relaxed);
    }

    /// Returns the smallest `skew_max` among the limits of the policy.
    pub(crate) fn skew_max(&self) -> Duration {
        millis(&self.skew_max)
    }

    /// Returns the smallest `skew_max` in milliseconds. A later policy changes the returned value.
    pub(crate) fn shared_skew_max(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.skew_max)
    }

    /// Waits until each shard is connected or [`START_WAIT`] is over.
    pub(crate) async fn started(&self) {
        // An error means that the runtime is shutting down, so there is nothing left to wait for.
        let _ = self.started.clone().wait_for(|has_started| *has_started).await;
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("skew_max", &self.skew_max).finish_non_exhaustive()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn millis(number: &AtomicU64) -> Duration {
    Duration::from_millis(number.load(Ordering::Relaxed))
}

/// Returns the smallest clock difference that any limit permits, in milliseconds.
pub(crate) fn skew_max(policy: &Policy) -> u64 {
    let allowed = policy.limits().iter().map(|limit| limit.limit.skew_max()).min();
    allowed.unwrap_or(DEFAULT_SKEW_MAX).get()
}

/// Checks the status of each primary of `shard`. The primaries of a cluster are checked in the
/// order of their first slots.
fn check(shard: &Shard, seen: &mut Vec<StatusDiff>, skew_max: Duration) {
    let primaries = shard.store.status(&shard.name).primaries();
    seen.resize_with(primaries.len(), || StatusDiff::new(skew_max));
    for (primary, seen) in primaries.iter().zip(seen) {
        seen.allow(skew_max);
        for change in seen.observe(primary) {
            log(&shard.name, &change);
        }
    }
}

fn log(shard: &str, change: &Change) {
    match change {
        Change::Connected { .. }
        | Change::ReplicaFound { .. }
        | Change::Replayed { .. }
        | Change::SplitEnded
        | Change::ClockAgrees => {
            tracing::info!(shard, "{change}");
        }
        Change::Lost { .. }
        | Change::Flapping { .. }
        | Change::ReplicaLost { .. }
        | Change::WindowsLost { .. }
        | Change::Abandoned { .. }
        | Change::Split { .. }
        | Change::ClockDiffers { .. } => tracing::warn!(shard, "{change}"),
    }
}
