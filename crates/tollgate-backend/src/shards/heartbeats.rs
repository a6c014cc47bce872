//! Heartbeats that show which shard map each node uses, and the progress of a rebalance.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tollgate::model::{ChargeId, LimitError, Policy};
use tollgate::{Clock, HashKey, SystemClock};
use tollgate_stores::rebalance::{HEARTBEAT_TTL, Heartbeat, HeartbeatCounts, Phase};

use super::map::ShardMap;
use super::missing_nodes::MissingNodes;
use super::watch::{Deciding, START_WAIT};
use crate::status::{MapStatus, MoveStatus, Nodes};

/// The time between two heartbeats of this node at every shard. The time is well below
/// [`HEARTBEAT_TTL`].
pub const HEARTBEAT_PERIOD: Duration = Duration::from_millis(HEARTBEAT_TTL.get() / 3);

/// The number of consecutive observations in which no node uses the old map, before this node
/// enters the phase `cutover`.
const QUIET_LOOKS: u32 = 2;

/// The heartbeats of this node. Until this value is dropped, it sends heartbeats with this node's
/// map to every shard, reads which nodes use which map, and advances a rebalance through its
/// phases.
#[derive(Debug)]
pub(crate) struct Heartbeats {
    map: Arc<ShardMap>,
    /// The [longest lifetime](Policy::longest_cell_lifetime) of a counter, in milliseconds. A
    /// rebalance stays in the phase `cutover` at least for this time.
    longest: Arc<AtomicU64>,
    found: Arc<Mutex<Option<Nodes>>>,
    task: AbortHandle,
}

impl Heartbeats {
    /// Starts the heartbeats at the shards of `map`, for the limits of `policy`. The time of each
    /// heartbeat comes from `clock`, the node's decision clock. A heartbeat is a call like any
    /// other: if it is the first call after a failover, it replays charges and computes their age
    /// from its own time. A time from another clock would make this age wrong.
    pub(crate) fn start(
        map: Arc<ShardMap>,
        key: HashKey,
        policy: &Policy,
        clock: Deciding,
    ) -> Result<Self, LimitError> {
        let longest = Arc::new(AtomicU64::new(policy.longest_cell_lifetime().get()));
        let found = Arc::new(Mutex::new(None));
        let round = Round {
            heartbeat: Arc::new(Heartbeat::new(key, node_id())?),
            clock,
            map: Arc::clone(&map),
            longest: Arc::clone(&longest),
            found: Arc::clone(&found),
            quiet: 0,
            began: Instant::now(),
            led: None,
            missing_nodes: MissingNodes::default(),
        };
        let task = tokio::spawn(round.run()).abort_handle();
        Ok(Self { map, longest, found, task })
    }

    /// Extends the time for which a rebalance stays in the phase `cutover`, if the counters of
    /// `policy` last longer than those of every policy before.
    pub(crate) fn follow(&self, policy: &Policy) {
        // Longer-lived counters may still be in the shards.
        self.longest.fetch_max(policy.longest_cell_lifetime().get(), Ordering::Relaxed);
    }

    /// Returns the shard map of this node, the maps of other nodes, and the progress of a
    /// rebalance.
    pub(crate) fn status(&self) -> MapStatus {
        MapStatus {
            version: self.map.version(),
            nodes: *self.found.lock(),
            moving: self.map.rebalance().map(|rebalance| MoveStatus {
                phase: rebalance.phase(),
                from: rebalance.before().partitions().version(),
                transferred: rebalance.transferred(),
                failed_transfers: rebalance.failed_transfers(),
                diverged: rebalance.diverged(),
            }),
        }
    }
}

impl Drop for Heartbeats {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The state of the heartbeat task.
struct Round {
    heartbeat: Arc<Heartbeat>,
    clock: Deciding,
    map: Arc<ShardMap>,
    longest: Arc<AtomicU64>,
    found: Arc<Mutex<Option<Nodes>>>,
    /// The number of consecutive observations in which every shard of the old map answered and no
    /// node used the old map.
    quiet: u32,
    began: Instant,
    /// The time at which this node entered the phase `cutover`. `None` before that.
    led: Option<Instant>,
    missing_nodes: MissingNodes,
}

impl Round {
    async fn run(mut self) {
        // All shards connect concurrently, so the total wait is not longer than the wait for one
        // shard.
        let began = Instant::now();
        for shard in self.map.shards() {
            shard.store.servers().ready(START_WAIT.saturating_sub(began.elapsed())).await;
        }
        let mut ticks = interval(HEARTBEAT_PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let counts_by_shard = self.beat().await;
            self.note(&counts_by_shard);
            self.report_missing(&counts_by_shard);
            self.advance(&counts_by_shard);
        }
    }

    /// Sends a heartbeat to each shard. Returns the counts that the shards returned, by shard name.
    /// Shards that did not answer are left out.
    async fn beat(&self) -> HashMap<Box<str>, HeartbeatCounts> {
        let own = self.map.version();
        let other =
            self.map.rebalance().map_or(own, |rebalance| rebalance.before().partitions().version());
        let now = self.clock.get().map_or_else(|| SystemClock.now(), |clock| clock.now());
        let mut queries = JoinSet::new();
        for shard in self.map.shards() {
            let (name, store) = (shard.name.clone(), Arc::clone(&shard.store));
            let heartbeat = Arc::clone(&self.heartbeat);
            // The duration is not measured, because no client waits for this call.
            queries.spawn(
                async move { (name, heartbeat.beat(store.untimed(), now, own, other).await) },
            );
        }
        let answers = queries.join_all().await.into_iter();
        answers.filter_map(|(name, counts)| Some((name, counts.ok()?))).collect()
    }

    /// Records the numbers of nodes with each map from the counts that the shards returned, and
    /// logs changes of these numbers.
    fn note(&self, counts_by_shard: &HashMap<Box<str>, HeartbeatCounts>) {
        let nodes = Nodes::of(
            counts_by_shard.values(),
            self.map.rebalance().is_some(),
            self.map.shards().count(),
        );
        let before = self.found.lock().replace(nodes).unwrap_or_default();
        let map = self.map.version();
        if nodes.before != before.before {
            match nodes.before {
                0 => tracing::info!(%map, "no node uses the previous shard map"),
                count => tracing::warn!(
                    %map,
                    "{} the previous shard map: the move waits for them; restart them with the new \
                     one",
                    using(count)
                ),
            }
        }
        if nodes.others != before.others {
            match nodes.others {
                0 => tracing::info!(%map, "no node uses another shard map"),
                count => tracing::warn!(
                    %map,
                    "{} another shard map, and count subjects that it assigns to other shards \
                     separately: give all nodes the same shards, or name theirs under \
                     store.redis.previous",
                    using(count)
                ),
            }
        }
    }

    /// Logs each shard that does not receive the heartbeats of some nodes with the same map. These
    /// nodes cannot reach the shard, or reach it at another address.
    fn report_missing(&mut self, counts_by_shard: &HashMap<Box<str>, HeartbeatCounts>) {
        let map = self.map.version();
        for (shard, change) in self.missing_nodes.observe(counts_by_shard) {
            match change {
                0 => {
                    tracing::info!(%map, shard, "every node with this shard map reaches the shard again");
                }
                count => tracing::warn!(
                    %map,
                    shard,
                    "{} this map and not this shard, and count its subjects separately: the shard \
                     has another address there, or they cannot reach it",
                    using(count)
                ),
            }
        }
    }

    fn advance(&mut self, counts_by_shard: &HashMap<Box<str>, HeartbeatCounts>) {
        let Some(rebalance) = self.map.rebalance() else { return };
        match rebalance.phase() {
            Phase::DualWrite => {
                let is_quiet =
                    |name: &str| counts_by_shard.get(name).is_some_and(|it| it.other_map == 0);
                let all = self.map.shards_before().iter().all(|shard| is_quiet(&shard.name));
                self.quiet = if all { self.quiet + 1 } else { 0 };
                if self.quiet >= QUIET_LOOKS && self.began.elapsed() >= lease() {
                    rebalance.enter(Phase::Cutover);
                    self.led = Some(Instant::now());
                    let map = self.map.version();
                    tracing::info!(%map, "the new shards of moving subjects decide");
                }
            }
            Phase::Cutover => {
                let longest = Duration::from_millis(self.longest.load(Ordering::Relaxed));
                // Other nodes may enter the phase `cutover` up to one TTL later.
                let is_over = |led: Instant| led.elapsed() >= longest.saturating_add(lease());
                if self.led.is_some_and(is_over) {
                    rebalance.enter(Phase::Done);
                    let map = self.map.version();
                    tracing::info!(%map, "the move is complete; remove store.redis.previous from the policy");
                }
            }
            Phase::Done => {}
        }
    }
}

fn using(nodes: u64) -> String {
    match nodes {
        1 => "1 node uses".to_owned(),
        nodes => format!("{nodes} nodes use"),
    }
}

const fn lease() -> Duration {
    Duration::from_millis(HEARTBEAT_TTL.get())
}

/// Returns a random node id.
fn node_id() -> ChargeId {
    let random = || u128::from(RandomState::new().build_hasher().finish());
    ChargeId(random() << 64 | random())
}
