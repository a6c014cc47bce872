//! The status of a store, for operators.

mod map;

use std::time::Duration;

use tollgate::observe::Observed;
use tollgate_memcached::ServerStatus;
use tollgate_redis::{
    BatcherStatus, CircuitState, ClockOffset, ClusterStatus, DataLoss, GroupStatus, StepRuntime,
};
use tollgate_stores::failover_replay::ReplayCounts;
use tollgate_stores::fallback::LocalChargeCounts;
use tollgate_stores::quota_lease::LeaseCounts;

pub use map::{MapStatus, MoveStatus, Nodes, phase_word};

/// The status of one shard.
#[derive(Clone, Debug)]
pub struct ShardStatus {
    /// The shard's name in the settings.
    pub name: Box<str>,
    /// How the primary runs the decision step: as a module, a function or a script. In a cluster,
    /// how the first primary runs the step.
    pub runs: StepRuntime,
    /// The status of each connection's batcher. The batcher of the primary is the first. The
    /// batchers of the replicas that serve reads follow, in the order of the settings. In a
    /// cluster, each primary forms a group with its replicas. The groups are in the order of their
    /// first slots, and the primary's batcher is the first of its group.
    pub batchers: Vec<BatcherStatus>,
    /// How far the shard's clock is ahead of this machine's clock. In a cluster, the offset of the
    /// primary whose clock certainly differs most. `None` before the first reply.
    pub clock_offset: Option<ClockOffset>,
    /// Whether this node decides by the server's clock. The value is always true if the policy file
    /// selects the server's clock. Without this setting, the value is true while the two clocks
    /// differ by more than half of the smallest `skew_max`.
    pub clock_overridden: bool,
    /// The reachable servers that report themselves as primary, in a shard of several servers that
    /// is not a cluster. If several servers report themselves as primary, all nodes charge the same
    /// one of these servers.
    pub claimed_by: Vec<String>,
    /// How often lost counters were detected since the store was opened. After each loss, some or
    /// all windows started again.
    pub windows_lost: u64,
    /// The cause of the last loss of counters, or `None` without a loss.
    pub last_loss: Option<DataLoss>,
    /// The counts of charges that failovers had lost and that this node replayed.
    pub replayed: ReplayCounts,
    /// The status of the cluster, if the shard is a cluster.
    pub cluster: Option<ClusterStatus>,
    /// The durations of the shard's calls, each until its answer or its timeout.
    pub took: Observed,
}

/// The status of one memcached server.
#[derive(Clone, Debug)]
pub struct MemcachedStatus {
    /// The server's name in the settings, which is its address.
    pub name: Box<str>,
    /// The status that the store of this server reports.
    pub server: ServerStatus,
    /// The durations of the server's calls, each until its answer or its timeout.
    pub took: Observed,
}

/// The numbers of decisions without a shard, and of failures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The number of calls that the deny cache refused without a store call.
    pub deny_cache_hits: u64,
    /// The number of calls that this node's share of the limits answered.
    pub fallback_decisions: u64,
    /// The number of units that this node's share of the limits admitted, by the outcome of their
    /// charge when a shard answered again.
    pub local_charges: LocalChargeCounts,
    /// The number of calls that neither a shard nor this node's share of the limits answered.
    pub unanswered: u64,
    /// The number of calls that exceeded the deadline of the whole decision.
    pub deadline_misses: u64,
    /// The number of charges of failed calls that could not be refunded.
    pub unrefunded: u64,
    /// The number of calls that found stored state that is not used. The state has another type, is
    /// invalid, or has a time that no clock within the limit's `skew_max` can have shown.
    pub discarded: u64,
    /// The counts of charges that failovers had lost and that this node replayed, over all shards.
    pub replayed: ReplayCounts,
    /// The counts of decisions from quota leases of this node, and of the calls and units of these
    /// leases.
    pub leases: LeaseCounts,
}

impl ShardStatus {
    /// Returns the status of a shard that is the cluster `cluster`. The wrappers around the servers
    /// measure `replayed` and `took`.
    pub(crate) fn of_cluster(
        name: Box<str>,
        cluster: ClusterStatus,
        replayed: ReplayCounts,
        took: Observed,
    ) -> Self {
        let groups = &cluster.groups;
        let offsets = groups.iter().filter_map(|group| group.clock_offset);
        Self {
            name,
            runs: groups.first().map_or(StepRuntime::Script, |group| group.runs),
            batchers: groups.iter().flat_map(|group| group.batchers.iter().cloned()).collect(),
            clock_offset: offsets.max_by_key(proven),
            clock_overridden: false,
            claimed_by: Vec::new(),
            windows_lost: groups.iter().map(|group| group.windows_lost).sum(),
            last_loss: groups.iter().find_map(|group| group.last_loss.clone()),
            replayed,
            cluster: Some(cluster),
            took,
        }
    }

    /// Returns the status of each primary with its replicas. A shard that is not a cluster has one
    /// status, and a cluster has one status for each primary. In a cluster, the first status
    /// contains the replay counts and the call durations of all primaries.
    pub(crate) fn primaries(&self) -> Vec<Self> {
        let Some(cluster) = &self.cluster else { return vec![self.clone()] };
        let one = |(index, group): (usize, &GroupStatus)| Self {
            name: self.name.clone(),
            runs: group.runs,
            batchers: group.batchers.clone(),
            clock_offset: group.clock_offset,
            clock_overridden: self.clock_overridden,
            claimed_by: self.claimed_by.clone(),
            windows_lost: group.windows_lost,
            last_loss: group.last_loss.clone(),
            replayed: if index == 0 { self.replayed } else { ReplayCounts::NOTHING },
            cluster: None,
            took: if index == 0 { self.took } else { Observed::NOTHING },
        };
        cluster.groups.iter().enumerate().map(one).collect()
    }

    /// Returns how far the clocks of the shard's primaries are ahead of this machine's clock.
    pub(crate) fn clock_offsets(&self) -> impl Iterator<Item = ClockOffset> {
        let groups = self.cluster.iter().flat_map(|cluster| &cluster.groups);
        self.clock_offset.into_iter().chain(groups.filter_map(|group| group.clock_offset))
    }

    /// Returns whether every subject of the shard is served by a primary that answers.
    #[must_use]
    pub fn is_served(&self) -> bool {
        let primaries = self.primaries();
        self.cluster.as_ref().is_none_or(|cluster| cluster.unowned == 0)
            && !primaries.is_empty()
            && primaries.iter().all(|primary| primary.primary().is_some())
    }

    /// Returns the address of the shard's primary, or `None` if no primary answers.
    #[must_use]
    pub fn primary(&self) -> Option<&str> {
        self.batchers.first().and_then(reached)
    }

    /// Returns the difference between the shard's clock and this machine's clock, reduced by the
    /// uncertainty of its estimate. In a cluster, the largest difference of all primaries. Returns
    /// zero before the first reply.
    #[must_use]
    pub fn skew(&self) -> Duration {
        Duration::from_millis(self.clock_offset.as_ref().map_or(0, proven))
    }
}

/// Returns the milliseconds by which the clocks differ even if the estimate has its largest error.
fn proven(offset: &ClockOffset) -> u64 {
    offset.millis.unsigned_abs().saturating_sub(offset.uncertainty)
}

/// Returns the address that `batcher` is connected to, or `None` if the server does not answer.
pub(crate) fn reached(batcher: &BatcherStatus) -> Option<&str> {
    batcher.address.as_deref().filter(|_| batcher.circuit_state == CircuitState::Closed)
}

#[cfg(test)]
mod tests {
    use tollgate_redis::{BatcherCounts, Redirects};

    use super::*;

    /// A primary with a clock that is ahead by `millis`, which answers if `is_up`.
    fn group(millis: Option<i64>, uncertainty: u64, is_up: bool) -> GroupStatus {
        let batcher = BatcherStatus {
            address: Some("redis://10.0.0.1:6379".to_owned()),
            circuit_state: if is_up { CircuitState::Closed } else { CircuitState::Open },
            opened: 0,
            clock_steps: 0,
            round_trip: None,
            counts: BatcherCounts::default(),
            last_error: None,
        };
        GroupStatus {
            slots: 8_192,
            runs: StepRuntime::Function,
            batchers: vec![batcher],
            clock_offset: millis.map(|millis| ClockOffset { millis, uncertainty }),
            windows_lost: 0,
            last_loss: None,
        }
    }

    fn cluster(groups: Vec<GroupStatus>) -> ShardStatus {
        let redirects = Redirects::default();
        let cluster = ClusterStatus { groups, unowned: 0, redirects, last_error: None };
        ShardStatus::of_cluster("a".into(), cluster, ReplayCounts::NOTHING, Observed::NOTHING)
    }

    #[test]
    fn a_cluster_reports_the_clock_that_certainly_differs_most() {
        let status = cluster(vec![
            group(None, 0, true),
            group(Some(20), 5, true),
            group(Some(9_000), 8_900, true),
            group(Some(-6_000), 5, true),
            group(Some(3_000), 5, true),
        ]);
        assert_eq!(status.clock_offset, Some(ClockOffset { millis: -6_000, uncertainty: 5 }));
        assert_eq!(status.skew(), Duration::from_millis(5_995));
        assert_eq!(cluster(vec![group(None, 0, true)]).skew(), Duration::ZERO);
    }

    #[test]
    fn a_cluster_is_served_only_if_every_primary_answers() {
        let up = || group(None, 0, true);
        assert!(cluster(vec![up(), up()]).is_served());
        let status = cluster(vec![up(), group(None, 0, false)]);
        assert!(status.primary().is_some() && !status.is_served());
        assert!(!cluster(Vec::new()).is_served());
    }
}
