//! The servers of one Redis shard, as partitions over which the shard's subjects are distributed.

use std::time::Duration;

use tokio::time::Instant;
use tollgate::HashKey;
use tollgate::model::{
    Cell, CellKey, CellTransfer, Charge, Millis, Readings, ReplicationEpochs, Store, StoreError,
    Subject, Timestamp,
};
use tollgate::observe::Observed;
use tollgate::{Clock, SystemClock};
use tollgate_policy::{DecisionClock, RedisSettings, ShardSettings};
use tollgate_redis::{
    AfterFailover, ClientRole, ClockOffset, Keys, ListError, ListFilter, ListPage, RedisCluster,
    RedisShard, Tag,
};
use tollgate_stores::Partitions;
use tollgate_stores::atomic::{PartitionedCells, PartitionedEpochs};
use tollgate_stores::failover_replay::ReplayCounts;

use crate::settings::OpenError;
use crate::settings::endpoints::{ConnectTarget, choice, reached};
use crate::status::ShardStatus;

/// The servers of one shard.
///
/// If all keys of a call are in one partition, the call is one atomic command in one round trip.
/// [`Atomic`](tollgate_stores::Atomic) makes a call over several slots all or nothing, and
/// [`FailoverReplay`](tollgate_stores::FailoverReplay) replays the charges that a new primary
/// lacks.
#[derive(Debug)]
pub enum RedisServers {
    /// A primary with its replicas, which form a single partition.
    Shard(Box<RedisShard>),
    /// A Redis Cluster. The slots of the cluster are the partitions.
    Cluster(Box<RedisCluster>),
}

impl RedisServers {
    /// Opens the servers of `shard`, and starts to connect. `deadline` is the longest time for a
    /// decision.
    pub(crate) fn open(
        redis: &RedisSettings,
        shard: &ShardSettings,
        key: &HashKey,
        deadline: Duration,
        role: ClientRole,
    ) -> Result<Self, OpenError> {
        let revealed = redis.revealed.iter();
        let keys = revealed.fold(Keys::new(key.clone()), |keys, limit| keys.with_revealed(limit));
        let clock = match redis.clock {
            DecisionClock::Application => tollgate_redis::DecisionClock::Application,
            DecisionClock::Store => tollgate_redis::DecisionClock::Shard,
        };
        let choice = choice(redis.step);
        Ok(match reached(redis, shard)? {
            ConnectTarget::Servers(mut servers) => {
                servers.client_role = role;
                let opened = RedisShard::open(&servers, keys, choice);
                let opened = opened.with_deadline(deadline).with_clock(clock);
                Self::Shard(Box::new(opened.with_paused_epochs()))
            }
            ConnectTarget::Cluster(mut settings) => {
                // Limits that share a shard also share a slot of the cluster.
                settings.tag = redis.route_by.clone().map_or(Tag::First, Tag::Dimension);
                settings.after_failover = AfterFailover::Pause;
                settings.client_role = role;
                let opened = RedisCluster::open(*settings, keys, choice);
                Self::Cluster(Box::new(opened.with_deadline(deadline).with_clock(clock)))
            }
        })
    }

    /// From now on, compares the application's clock with the shard's clock. The shard's time
    /// decides a call with a time that differs too much from it.
    pub(crate) fn check_clock(&self) {
        match self {
            Self::Shard(shard) => shard.check_clock(),
            Self::Cluster(cluster) => cluster.check_clock(),
        }
    }

    /// Waits for at most the time `within` until the shard is connected.
    pub(crate) async fn ready(&self, within: Duration) {
        // The result is ignored, because the status shows whether the shard is connected.
        match self {
            Self::Shard(shard) => drop(shard.ready(within).await),
            Self::Cluster(cluster) => drop(cluster.ready(within).await),
        }
    }

    /// Returns how far the shard's clock is ahead of the application's clock, which shows `now`.
    /// Returns `None` before the first reply.
    pub(crate) fn clock_offset(&self, now: Timestamp) -> Option<ClockOffset> {
        match self {
            Self::Shard(shard) => shard.clock_offset(now),
            Self::Cluster(cluster) => cluster.clock_offset(now),
        }
    }

    /// Scans some keys of the primary with the index `primary`. Returns `None` if the shard has no
    /// primary with this index.
    pub(crate) async fn list(
        &self,
        primary: usize,
        filter: ListFilter<'_>,
        cursor: u64,
        until: Instant,
    ) -> Option<Result<ListPage, ListError>> {
        match self {
            Self::Shard(_) if primary > 0 => None,
            Self::Shard(shard) => Some(shard.list(filter, cursor, until).await),
            Self::Cluster(cluster) => cluster.list(primary, filter, cursor, until).await,
        }
    }

    /// Returns the current status of this shard under the name `name`. The wrappers around the
    /// servers measure two values of the status: `replayed` counts the charges that this node
    /// replayed after failovers, and `took` contains the durations of the shard's calls.
    pub(crate) fn status(&self, name: &str, replayed: ReplayCounts, took: Observed) -> ShardStatus {
        let now = SystemClock.now();
        let name = name.into();
        match self {
            Self::Shard(shard) => {
                let (windows_lost, last_loss) = shard.windows_lost();
                ShardStatus {
                    name,
                    runs: shard.runtime(),
                    batchers: shard.status(),
                    clock_offset: shard.clock_offset(now),
                    clock_overridden: false,
                    claimed_by: shard.primaries(),
                    windows_lost,
                    last_loss,
                    replayed,
                    cluster: None,
                    took,
                }
            }
            Self::Cluster(cluster) => {
                ShardStatus::of_cluster(name, cluster.status(now), replayed, took)
            }
        }
    }
}

impl Partitions for RedisServers {
    fn partition(&self, subject: &Subject) -> usize {
        match self {
            Self::Shard(_) => 0,
            Self::Cluster(cluster) => cluster.partition(subject),
        }
    }

    async fn apply_at(
        &self,
        partition: usize,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> Result<Readings, StoreError> {
        match self {
            Self::Shard(shard) => shard.apply(now, charges).await,
            // The future is boxed, because the future of a cluster would make the calls of every
            // shard larger.
            Self::Cluster(cluster) => Box::pin(cluster.apply_at(partition, now, charges)).await,
        }
    }
}

impl PartitionedCells for RedisServers {
    async fn cells_at(
        &self,
        partition: usize,
        now: Timestamp,
        cell_keys: &[CellKey<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        match self {
            Self::Shard(shard) => shard.cells(now, cell_keys).await,
            Self::Cluster(cluster) => cluster.cells_at(partition, now, cell_keys).await,
        }
    }

    async fn join_at(
        &self,
        partition: usize,
        now: Timestamp,
        cells: &[(CellKey<'_>, Cell)],
    ) -> Result<(), StoreError> {
        match self {
            Self::Shard(shard) => shard.join(now, cells).await,
            Self::Cluster(cluster) => cluster.join_at(partition, now, cells).await,
        }
    }
}

impl PartitionedEpochs for RedisServers {
    fn epoch_at(&self, partition: usize) -> u64 {
        match self {
            Self::Shard(shard) => shard.epoch(),
            Self::Cluster(cluster) => cluster.epoch_at(partition),
        }
    }

    fn is_paused_at(&self, partition: usize) -> bool {
        match self {
            Self::Shard(shard) => shard.holds(),
            Self::Cluster(cluster) => cluster.is_paused_at(partition),
        }
    }

    fn outage_at(&self, partition: usize) -> Millis {
        match self {
            Self::Shard(shard) => shard.outage(),
            Self::Cluster(cluster) => cluster.outage_at(partition),
        }
    }

    fn held(&self) -> Vec<usize> {
        match self {
            Self::Shard(shard) if shard.holds() => vec![0],
            Self::Shard(_) => Vec::new(),
            Self::Cluster(cluster) => cluster.held(),
        }
    }

    fn release(&self, epoch: u64) {
        match self {
            Self::Shard(shard) => shard.release(epoch),
            Self::Cluster(cluster) => cluster.release(epoch),
        }
    }
}
