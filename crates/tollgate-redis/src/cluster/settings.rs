//! The settings of a cluster.

use std::time::Duration;

use tollgate_link::LinkLimits;

use crate::batcher::BatcherLimits;
use crate::client_role::ClientRole;
use crate::connection::Endpoint;
use crate::key::Tag;
use crate::shard::ReadFrom;

/// The default time between two discoveries if no redirect requests one.
pub const DEFAULT_REFRESH: Duration = Duration::from_secs(5);

/// The settings of a cluster: its nodes and the limits of its connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSettings {
    /// Some of the cluster's nodes; the others are discovered. All nodes are connected with the
    /// user and the certificates of the first one.
    pub seeds: Vec<Endpoint>,
    /// The servers that answer read-only calls.
    pub reads: ReadFrom,
    /// The part of a subject that selects the slot of its keys. It must be the same on every node
    /// of a fleet.
    pub tag: Tag,
    /// The limits of each batcher.
    pub batcher: BatcherLimits,
    /// The timeouts of each link.
    pub link: LinkLimits,
    /// The longest time between two discoveries of the slot layout.
    pub refresh: Duration,
    /// The treatment of charges after a primary's replication epoch changed.
    pub after_failover: AfterFailover,
    /// The role in which the cluster is opened.
    pub client_role: ClientRole,
}

/// The treatment of charges after a primary's replication epoch changed, for example in a failover.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterFailover {
    /// Charges continue.
    #[default]
    Continue,
    /// Charges wait until the epoch is [released](crate::RedisCluster::release), which includes the
    /// first one. This allows missing charges to be joined first. Read-only calls never wait.
    Pause,
}

impl ClusterSettings {
    /// Returns settings for the cluster of `seeds` with default limits.
    #[must_use]
    pub fn new(seeds: impl IntoIterator<Item = Endpoint>) -> Self {
        Self {
            seeds: seeds.into_iter().collect(),
            reads: ReadFrom::default(),
            tag: Tag::default(),
            batcher: BatcherLimits::default(),
            link: LinkLimits::default(),
            refresh: DEFAULT_REFRESH,
            after_failover: AfterFailover::default(),
            client_role: ClientRole::default(),
        }
    }
}
