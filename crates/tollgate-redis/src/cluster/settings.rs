//! The settings of a cluster.

use std::time::Duration;

use tollgate_link::LinkLimits;

use crate::batcher::BatcherLimits;
use crate::client_role::ClientRole;
use crate::connection::Endpoint;
use crate::key::Tag;
use crate::shard::ReadFrom;

/// The default time between two discoveries if no redirect requests a discovery.
pub const DEFAULT_REFRESH: Duration = Duration::from_secs(5);

/// The settings of a cluster: its nodes and the limits of its connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSettings {
    /// Some of the cluster's nodes. The other nodes are discovered. Connections to all nodes use
    /// the user and the certificates of the first of these endpoints.
    pub seeds: Vec<Endpoint>,
    /// The servers that answer read-only calls.
    pub reads: ReadFrom,
    /// The part of a subject that selects the slot of its keys. Every node of a fleet must select
    /// the same part.
    pub tag: Tag,
    /// The limits of each batcher's queue and calls.
    pub batcher: BatcherLimits,
    /// The timeouts of the connections.
    pub link: LinkLimits,
    /// The longest time between two discoveries of the slot layout.
    pub refresh: Duration,
    /// Whether charges are held back after a primary's replication epoch changed.
    pub after_failover: AfterFailover,
    /// Whether this process writes to the cluster, as a node does, or only reads from it.
    pub client_role: ClientRole,
}

/// Whether charges are held back after a primary's replication epoch changed, for example in a
/// failover.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterFailover {
    /// Charges are never held back.
    #[default]
    Continue,
    /// Charges are rejected until the current replication epoch is
    /// [released](crate::RedisCluster::release). The first epoch must be released too. Until the
    /// release, missing charges can be replayed. Read-only calls are never rejected.
    Pause,
}

impl ClusterSettings {
    /// Returns settings for the cluster of `seeds`, with the default of every other setting.
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
