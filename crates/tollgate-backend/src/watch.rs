//! Tells what becomes of the shards, without flooding.

mod status_diff;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tollgate::core::Policy;
use tollgate::core::time::DEFAULT_SKEW_MAX;
use tollgate::{Clock, SystemClock};

use crate::backend_shard::Shard;
use crate::shard_map::ShardMap;
use crate::status::ShardStatus;
use status_diff::{Change, StatusDiff};

/// How long a start waits for shards that are not connected; then it goes on without them.
pub const START_WAIT: Duration = Duration::from_secs(1);

/// The time between two looks at the shards. Each look tells of a server at most once.
pub const WATCH_PERIOD: Duration = Duration::from_secs(1);

/// The clock by which this node decides, once it is known.
type Deciding = Arc<OnceLock<Arc<dyn Clock>>>;

/// Looks at the shards again and again until it is dropped, and tells what changed: to whoever
/// operates them, and to the shards what they lost of what this node remembers.
pub(crate) struct Watch {
    started: watch::Receiver<bool>,
    /// The most that clocks may be apart, in milliseconds.
    skew_max: Arc<AtomicU64>,
    deciding: Deciding,
    task: AbortHandle,
}

impl Watch {
    /// Begins to watch `shards`, whose clocks may be as far off as the limits of `policy` say.
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
                // All connect at the same time, so waiting for one is waiting for each.
                let left = START_WAIT.saturating_sub(began.elapsed());
                shard.store.store().ready(left).await;
                let mut begun = Vec::new();
                look(shard, &mut begun, millis(&allowed));
                seen.push(begun);
            }
            has_started.send_replace(true);
            let mut looks = interval_at(Instant::now() + WATCH_PERIOD, WATCH_PERIOD);
            looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                looks.tick().await;
                for (shard, seen) in shards.shards().zip(&mut seen) {
                    let now = clock.get().map_or_else(|| SystemClock.now(), |clock| clock.now());
                    let settled = shard.store.store().replay(now);
                    // In vain or too late: the next look tries again.
                    let _ = timeout(WATCH_PERIOD, settled).await;
                    look(shard, seen, millis(&allowed));
                }
            }
        });
        Self { started, skew_max, deciding, task: task.abort_handle() }
    }

    /// Judges how old it is what this node remembers by `clock`, by which it decides; by the
    /// machine's before it is told, and the first one that it is told.
    pub(crate) fn set_clock(&self, clock: Arc<dyn Clock>) {
        self.deciding.get_or_init(|| clock);
    }

    /// Goes on with clocks that may be as far off as the limits of `policy` say.
    pub(crate) fn follow(&self, policy: &Policy) {
        self.skew_max.store(skew_max(policy), Ordering::Relaxed);
    }

    /// Waits until each shard is connected or has had its time.
    pub(crate) async fn started(&self) {
        // An error means that the runtime is shutting down: nothing is left to wait for.
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

/// The least that any limit allows two clocks to differ, in milliseconds.
fn skew_max(policy: &Policy) -> u64 {
    let allowed = policy.limits().iter().map(|limit| limit.limit.skew_max()).min();
    allowed.unwrap_or(DEFAULT_SKEW_MAX).get()
}

/// Looks at each primary of `shard`: of a cluster, at those in the order of their first slots.
fn look(shard: &Shard, seen: &mut Vec<StatusDiff>, skew_max: Duration) {
    let primaries = ShardStatus::of(shard).primaries();
    seen.resize_with(primaries.len(), || StatusDiff::new(skew_max));
    for (primary, seen) in primaries.iter().zip(seen) {
        seen.allow(skew_max);
        for change in seen.observe(primary) {
            tell(&shard.name, &change);
        }
    }
}

fn tell(shard: &str, change: &Change) {
    match change {
        Change::Connected { .. }
        | Change::ReplicaFound { .. }
        | Change::Repaired { .. }
        | Change::ClockAgrees => {
            tracing::info!(shard, "{change}");
        }
        Change::Lost { .. }
        | Change::Flapping { .. }
        | Change::ReplicaLost { .. }
        | Change::WindowsLost { .. }
        | Change::Abandoned { .. }
        | Change::ClockDiffers { .. } => tracing::warn!(shard, "{change}"),
    }
}
