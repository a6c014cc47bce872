//! Where a cluster is found, and the bounds of what is asked of it.

use std::time::Duration;

use crate::batcher::BatcherLimits;
use crate::client_role::ClientRole;
use crate::key::Tag;
use crate::link::{Endpoint, LinkLimits};
use crate::shard::ReadFrom;

/// How often the nodes are asked who keeps which slots, where nothing tells that it changed.
pub const DEFAULT_REFRESH: Duration = Duration::from_secs(5);

/// Where a cluster is found, and the bounds of what is asked of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSettings {
    /// Some of its nodes; the others are learnt from them. All are reached as the first one: as
    /// the same user, and with the same certificates.
    pub seeds: Vec<Endpoint>,
    /// Who answers calls that only read.
    pub reads: ReadFrom,
    /// What of a subject says in which slot its keys are: the same on every node of a fleet.
    pub tag: Tag,
    /// The bounds of each batcher.
    pub batcher: BatcherLimits,
    /// The bounds of each link's waits.
    pub link: LinkLimits,
    /// The longest time between two looks at who keeps which slots.
    pub refresh: Duration,
    /// What becomes of charges when a primary's data has become of another history.
    pub after_failover: AfterFailover,
    /// As what it is opened.
    pub client_role: ClientRole,
}

/// What becomes of charges after a primary's data has become of another history, as a failover
/// makes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterFailover {
    /// They go on.
    #[default]
    Continue,
    /// They are held back until the history is [released](crate::RedisCluster::release), the first
    /// one too: for whoever joins what is missing before. What only reads never is held back.
    Pause,
}

impl ClusterSettings {
    /// The cluster of `seeds`, under the default bounds.
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
