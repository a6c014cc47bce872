//! A shard of a Redis backend.

use std::sync::Arc;
use std::time::Duration;

use tollgate::HashKey;
use tollgate::model::{
    CasOutcome, Cell, CellKey, CellTransfer, Charge, Readings, SharedBlob, Store, StoreError,
    Timestamp,
};
use tollgate_policy::{DecisionClock, RedisSettings, ShardSettings};
use tollgate_redis::{AfterFailover, ClientRole, ClockOffset, Keys, RedisCluster, RedisShard, Tag};
use tollgate_stores::failover_replay::ReplayCounts;
use tollgate_stores::{CallTimer, FailoverReplay};

use crate::error::OpenError;
use crate::redis_cluster::{ClusterStore, Slots};
use crate::servers::{ConnectTarget, choice, reached};

/// A primary with its replicas. After a failover, the node replays the charges that the new primary
/// lacks.
pub(crate) type Servers = FailoverReplay<RedisShard>;

/// A shard of a Redis backend.
#[derive(Debug)]
pub(crate) enum BackendShard {
    /// A primary with its replicas.
    Servers(Box<Servers>),
    /// A Redis Cluster. After a failover, the node replays the charges that each new primary lacks.
    Cluster(ClusterStore),
}

impl BackendShard {
    /// Opens `shard` with `deadline` as the longest time for a decision, and starts to connect.
    pub(crate) fn open(
        redis: &RedisSettings,
        shard: &ShardSettings,
        key: &HashKey,
        deadline: Duration,
        client_role: ClientRole,
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
                servers.client_role = client_role;
                let opened = RedisShard::open(&servers, keys, choice);
                let held = opened.with_deadline(deadline).with_clock(clock).with_paused_epochs();
                Self::Servers(Box::new(FailoverReplay::new(held)))
            }
            ConnectTarget::Cluster(mut settings) => {
                // Limits that share a shard also share a slot of it.
                settings.tag = redis.route_by.clone().map_or(Tag::First, Tag::Dimension);
                settings.after_failover = AfterFailover::Pause;
                settings.client_role = client_role;
                let opened = RedisCluster::open(*settings, keys, choice);
                Self::Cluster(Slots::store(opened.with_deadline(deadline).with_clock(clock)))
            }
        })
    }

    /// Compares the application's clock with the shard's from now on, so no call is decided by a
    /// time that differs too much.
    pub(crate) fn check_clock(&self) {
        match self {
            Self::Servers(servers) => servers.store().check_clock(),
            Self::Cluster(store) => store.partitions().store().cluster().check_clock(),
        }
    }

    /// Waits until it is connected, for at most `within`.
    pub(crate) async fn ready(&self, within: Duration) {
        // Ignore the result; the status shows whether it is connected.
        match self {
            Self::Servers(servers) => drop(servers.store().ready(within).await),
            Self::Cluster(store) => drop(store.partitions().store().cluster().ready(within).await),
        }
    }

    /// Replays remembered charges that the shard may lack, unless that is already done. This helps
    /// other nodes even if this one receives no requests.
    pub(crate) async fn replay(&self, now: Timestamp) {
        match self {
            // If this fails, it is tried again, and charges wait until then.
            Self::Servers(servers) => drop(servers.replay(now).await),
            Self::Cluster(store) => drop(store.partitions().replay_partitions(now).await),
        }
    }

    /// Returns the counts of replayed charges after failovers.
    pub(crate) fn repaired(&self) -> ReplayCounts {
        match self {
            Self::Servers(servers) => servers.repaired(),
            Self::Cluster(store) => store.partitions().repaired(),
        }
    }

    /// Returns how far its clock is ahead of the application's, which shows `now`.
    pub(crate) fn clock_offset(&self, now: Timestamp) -> Option<ClockOffset> {
        match self {
            Self::Servers(servers) => servers.store().clock_offset(now),
            Self::Cluster(store) => store.partitions().store().cluster().clock_offset(now),
        }
    }

    /// Returns the version of the document called `name`; empty if there is none.
    pub(crate) async fn shared_blob_version(&self, name: &str) -> Result<Vec<u8>, StoreError> {
        match self {
            Self::Servers(servers) => servers.store().shared_blob_version(name).await,
            Self::Cluster(store) => {
                store.partitions().store().cluster().shared_blob_version(name).await
            }
        }
    }

    /// Returns the document called `name`, or an empty one if there is none.
    pub(crate) async fn shared_blob(&self, name: &str) -> Result<SharedBlob, StoreError> {
        match self {
            Self::Servers(servers) => servers.store().shared_blob(name).await,
            Self::Cluster(store) => store.partitions().store().cluster().shared_blob(name).await,
        }
    }

    /// Replaces the document of version `before` by `document`, which expires after `lasting`.
    pub(crate) async fn replace_shared_blob(
        &self,
        name: &str,
        before: &[u8],
        document: &SharedBlob,
        lasting: Duration,
    ) -> Result<CasOutcome, StoreError> {
        match self {
            Self::Servers(servers) => {
                servers.store().replace_shared_blob(name, before, document, lasting).await
            }
            Self::Cluster(store) => {
                let cluster = store.partitions().store().cluster();
                cluster.replace_shared_blob(name, before, document, lasting).await
            }
        }
    }

    /// Returns the number of charges of failed calls that could not be refunded at some of its
    /// nodes.
    pub(crate) fn unrefunded(&self) -> u64 {
        match self {
            Self::Servers(_) => 0,
            Self::Cluster(store) => store.unrefunded(),
        }
    }
}

impl Store for BackendShard {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        // Boxed, because the nested store futures together exceed the compiler's type depth.
        match self {
            Self::Servers(servers) => Box::pin(servers.apply(now, charges)).await,
            Self::Cluster(store) => Box::pin(store.apply(now, charges)).await,
        }
    }
}

impl CellTransfer for BackendShard {
    async fn cells(
        &self,
        now: Timestamp,
        places: &[CellKey<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        match self {
            Self::Servers(servers) => servers.cells(now, places).await,
            Self::Cluster(store) => store.cells(now, places).await,
        }
    }

    async fn join(&self, now: Timestamp, cells: &[(CellKey<'_>, Cell)]) -> Result<(), StoreError> {
        match self {
            Self::Servers(servers) => servers.join(now, cells).await,
            Self::Cluster(store) => store.join(now, cells).await,
        }
    }
}

/// A shard with timed calls.
pub(crate) type MeasuredShard = CallTimer<BackendShard>;

/// A shard of a backend. Both shard maps share it if it is in both.
pub(crate) type Shard = tollgate_stores::Shard<Arc<MeasuredShard>>;
