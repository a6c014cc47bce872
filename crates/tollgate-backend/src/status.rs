//! How a store stands, for whoever operates it.

use std::time::Duration;

use tollgate::observe::Observed;
use tollgate::store::failover_replay::ReplayCounts;
use tollgate::store::quota_lease::LeaseCounts;
use tollgate::{Clock, SystemClock};
use tollgate_memcached::ServerStatus;
use tollgate_redis::{
    BatcherStatus, CircuitState, ClockOffset, ClusterStatus, DataLoss, GroupStatus, StepRuntime,
};

use crate::backend_shard::{BackendShard, Servers, Shard};
use crate::redis_cluster::ClusterStore;

/// How one shard stands.
#[derive(Clone, Debug)]
pub struct ShardStatus {
    /// Its name in the settings.
    pub name: Box<str>,
    /// How the step runs in its primary, of a cluster in the first.
    pub runs: StepRuntime,
    /// The batchers to its servers: the primary's is the first; those of the replicas that are read
    /// from follow, in the order of the settings. Of a cluster, those of each group in the order of
    /// the first slots, each with its primary's first.
    pub batchers: Vec<BatcherStatus>,
    /// How far its clock is ahead of this machine's. `None` before the first reply.
    pub clock_offset: Option<ClockOffset>,
    /// How often, since the store was opened, counters of it were found lost, so that windows began
    /// anew.
    pub windows_lost: u64,
    /// Why they were lost the last time.
    pub last_loss: Option<DataLoss>,
    /// What failovers had lost of it that this node remembered, and it was told again.
    pub repaired: ReplayCounts,
    /// How it stands as a cluster, if it is one.
    pub cluster: Option<ClusterStatus>,
    /// How long its calls took, each until its answer or until it was given up.
    pub took: Observed,
}

/// How one server of memcached stands.
#[derive(Clone, Debug)]
pub struct MemcachedStatus {
    /// Its name in the settings: where it is.
    pub name: Box<str>,
    /// What its store tells of it.
    pub server: ServerStatus,
    /// How long its calls took, each until its answer or until it was given up.
    pub took: Observed,
}

/// What was decided without a shard, and what went wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls that were refused without asking, because they had been refused until a later time.
    pub remembered: u64,
    /// Calls that this node's share answered.
    pub stood_in: u64,
    /// Calls that nothing answered.
    pub unanswered: u64,
    /// Calls that were given up at the deadline of the whole decision.
    pub missed: u64,
    /// Charges that were taken for nothing and could not be given back.
    pub unrefunded: u64,
    /// Calls that met stored state that counts as none: of another type, junk, or of a time that
    /// no clock within the limit's skew can have shown.
    pub discarded: u64,
    /// What failovers had lost that this node remembered, and all shards were told again.
    pub repaired: ReplayCounts,
    /// What was decided out of units that this node had taken in advance, and what that took.
    pub leases: LeaseCounts,
}

impl ShardStatus {
    /// How `shard` stands now.
    pub(crate) fn of(shard: &Shard) -> Self {
        let status = match shard.store.store() {
            BackendShard::Servers(servers) => Self::of_servers(&shard.name, servers),
            BackendShard::Cluster(store) => Self::of_cluster(&shard.name, store),
        };
        Self { took: shard.store.durations(), ..status }
    }

    fn of_servers(name: &str, repair: &Servers) -> Self {
        let servers = repair.store();
        let (windows_lost, last_loss) = servers.windows_lost();
        Self {
            name: name.into(),
            runs: servers.runtime(),
            batchers: servers.status(),
            clock_offset: servers.clock_offset(SystemClock.now()),
            windows_lost,
            last_loss,
            repaired: repair.repaired(),
            cluster: None,
            took: Observed::NOTHING,
        }
    }

    fn of_cluster(name: &str, store: &ClusterStore) -> Self {
        let repair = store.partitions();
        let cluster = repair.store().cluster().status(SystemClock.now());
        let batchers = cluster.groups.iter().flat_map(|group| group.batchers.iter().cloned());
        Self {
            name: name.into(),
            runs: cluster.groups.first().map_or(StepRuntime::Script, |group| group.runs),
            batchers: batchers.collect(),
            clock_offset: cluster.groups.iter().find_map(|group| group.clock_offset),
            windows_lost: cluster.groups.iter().map(|group| group.windows_lost).sum(),
            last_loss: cluster.groups.iter().find_map(|group| group.last_loss.clone()),
            repaired: repair.repaired(),
            cluster: Some(cluster),
            took: Observed::NOTHING,
        }
    }

    /// Its primaries, each with what follows it: one, or those of a cluster, of which the first
    /// stands for what all of them were told, and for how long their calls took.
    pub(crate) fn primaries(&self) -> Vec<Self> {
        let Some(cluster) = &self.cluster else { return vec![self.clone()] };
        let one = |(place, group): (usize, &GroupStatus)| Self {
            name: self.name.clone(),
            runs: group.runs,
            batchers: group.batchers.clone(),
            clock_offset: group.clock_offset,
            windows_lost: group.windows_lost,
            last_loss: group.last_loss.clone(),
            repaired: if place == 0 { self.repaired } else { ReplayCounts::NOTHING },
            cluster: None,
            took: if place == 0 { self.took } else { Observed::NOTHING },
        };
        cluster.groups.iter().enumerate().map(one).collect()
    }

    /// Whether every subject that lives there is decided by a primary that answers.
    #[must_use]
    pub fn is_served(&self) -> bool {
        let primaries = self.primaries();
        self.cluster.as_ref().is_none_or(|cluster| cluster.unowned == 0)
            && !primaries.is_empty()
            && primaries.iter().all(|primary| primary.primary().is_some())
    }

    /// Where its primary is, if one answers.
    #[must_use]
    pub fn primary(&self) -> Option<&str> {
        self.batchers.first().and_then(reached)
    }

    /// By how much its clock surely differs from this machine's; nothing before the first reply.
    #[must_use]
    pub fn skew(&self) -> Duration {
        let surely = self
            .clock_offset
            .map_or(0, |offset| offset.millis.unsigned_abs().saturating_sub(offset.uncertainty));
        Duration::from_millis(surely)
    }
}

/// Where `batcher` leads, if the server there answers.
pub(crate) fn reached(batcher: &BatcherStatus) -> Option<&str> {
    batcher.address.as_deref().filter(|_| batcher.circuit_state == CircuitState::Closed)
}
