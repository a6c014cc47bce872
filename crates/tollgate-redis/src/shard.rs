//! One Redis deployment: a primary, and any number of replicas.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tollgate_link::LinkLimits;

use crate::batcher::{Batcher, BatcherLimits, BatcherStatus};
use crate::client_role::ClientRole;
use crate::codec::Codec;
use crate::connection::{Endpoint, LinkError, ReplicationProgress};
use crate::link::RequiredRole;
use crate::members::{DataLoss, Members};
use crate::topology::{SentinelWatch, ServerDiscovery, Topology};

mod replica_pool;

use replica_pool::ReplicaPool;

/// The servers that answer read-only calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadFrom {
    /// The replicas that keep up with the primary, in rotation. If none answers, the primary.
    #[default]
    Replicas,
    /// The primary.
    Primary,
}

/// The settings of a shard: its servers and the limits of its connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardSettings {
    /// The servers.
    pub topology: Topology,
    /// The servers that answer read-only calls.
    pub reads: ReadFrom,
    /// The limits of each batcher.
    pub batcher: BatcherLimits,
    /// The timeouts of each link.
    pub link: LinkLimits,
    /// The role in which the shard is opened.
    pub client_role: ClientRole,
}

impl ShardSettings {
    /// Returns settings for a primary without replicas, with default limits.
    #[must_use]
    pub fn new(primary: Endpoint) -> Self {
        Self::replicated(primary, Vec::new())
    }

    /// Returns settings for a primary and its replicas, with default limits.
    #[must_use]
    pub fn replicated(primary: Endpoint, replicas: Vec<Endpoint>) -> Self {
        Self::of(Topology::Static { primary, replicas })
    }

    /// Returns settings for these servers, with default limits.
    #[must_use]
    pub fn of(topology: Topology) -> Self {
        Self {
            topology,
            reads: ReadFrom::default(),
            batcher: BatcherLimits::default(),
            link: LinkLimits::default(),
            client_role: ClientRole::default(),
        }
    }
}

/// How one of several primaries is chosen, if neither took over from the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PrimaryChoice {
    /// By the shard's mark and then by the order of the configuration, where no sentinels name one.
    ByMark,
    /// By the roles of the servers only, because a cluster agrees on one primary.
    ByRole,
}

/// The batchers to a shard's servers.
///
/// The servers report which of them is the primary. Each server is queried for its role when a
/// connection to it opens, and twice per heartbeat if the shard has several servers. If two servers
/// report themselves as primary, [`Members`] selects the one that is charged.
#[derive(Debug)]
pub(crate) struct Shard<C: Codec> {
    members: Arc<Members>,
    primary: Batcher<C>,
    replicas: ReplicaPool<C>,
    /// Queries the roles of the servers, if there are several.
    _discovery: Option<ServerDiscovery>,
    _sentinels: Option<SentinelWatch>,
}

impl<C: Codec> Shard<C> {
    /// Opens the batchers and starts to connect. Batchers to replicas use the codec that
    /// `for_replica` creates from `codec`. Needs a tokio runtime.
    pub(crate) fn open(
        settings: &ShardSettings,
        codec: C,
        for_replica: impl Fn(&C) -> C + Send + 'static,
        choice: PrimaryChoice,
    ) -> Self {
        let (link, codec) = (settings.link, Arc::new(codec));
        let progress = Arc::<ReplicationProgress>::default();
        // Another server can answer a read, so one miss opens the circuit of a replica.
        let impatient = LinkLimits { misses: 1, ..link };
        let (lane_limits, writer) = (settings.batcher, Arc::clone(&codec));
        let read = Arc::clone(&progress);
        let reader = move |endpoint: &Endpoint| {
            let (required_role, codec) =
                (RequiredRole::Replica(Arc::clone(&read)), for_replica(&writer));
            Batcher::start(
                vec![endpoint.clone()],
                required_role,
                Arc::new(codec),
                lane_limits,
                impatient,
            )
        };
        let (members, replicas, sentinels) = match &settings.topology {
            Topology::Static { primary, replicas } => {
                let servers = std::iter::once(primary).chain(replicas).cloned().collect();
                let readers = match settings.reads {
                    ReadFrom::Replicas => ReplicaPool::fixed(replicas.iter().map(reader)),
                    ReadFrom::Primary => ReplicaPool::fixed([]),
                };
                let members = match choice {
                    PrimaryChoice::ByMark if !replicas.is_empty() => {
                        Members::chosen_by_mark(servers, &link)
                    }
                    PrimaryChoice::ByMark | PrimaryChoice::ByRole => Members::of(servers, &link),
                };
                (members, readers, None)
            }
            Topology::Sentinel(sentinels) => {
                let members = Members::with_sentinels(sentinels.sentinels.len(), &link);
                let readers = match settings.reads {
                    ReadFrom::Replicas => ReplicaPool::follow(&members, reader),
                    ReadFrom::Primary => ReplicaPool::fixed([]),
                };
                let watch = SentinelWatch::start(sentinels.clone(), Arc::clone(&members), link);
                (members, readers, Some(watch))
            }
        };
        if settings.client_role == ClientRole::ReadOnly {
            members.losses().set_read_only();
        }
        let required_role = match settings.reads {
            ReadFrom::Replicas => RequiredRole::ReportingPrimary(progress),
            ReadFrom::Primary => RequiredRole::Primary,
        };
        let is_alone = matches!(&settings.topology,
            Topology::Static { replicas, .. } if replicas.is_empty());
        let discovery = (!is_alone).then(|| ServerDiscovery::start(Arc::clone(&members), link));
        let primary =
            Batcher::follow(Arc::clone(&members), required_role, codec, lane_limits, link);
        Self { members, primary, replicas, _discovery: discovery, _sentinels: sentinels }
    }

    /// Waits until the primary is connected.
    ///
    /// # Errors
    /// The reason, if it was not connected `within` that time. The shard continues to connect.
    pub(crate) async fn ready(&self, within: Duration) -> Result<(), LinkError> {
        let link = self.primary.link();
        timeout(within, link.up()).await.map_err(|_| {
            let slow = || LinkError::Slow { address: "the primary".into(), within };
            link.last_error().unwrap_or_else(slow)
        })
    }

    /// Returns the batcher to the primary.
    pub(crate) fn primary(&self) -> &Batcher<C> {
        &self.primary
    }

    /// Returns the next replica in rotation that answers, if replicas are read from and one does.
    /// Skips replicas that lag behind, load their data, or fail.
    pub(crate) fn replica(&self) -> Option<Arc<Batcher<C>>> {
        self.replicas.next()
    }

    /// Returns the status of the batchers: the primary's, then those of the replicas that are read
    /// from, in the order of the settings, or of their addresses if sentinels name them.
    pub(crate) fn status(&self) -> Vec<BatcherStatus> {
        std::iter::once(self.primary.status()).chain(self.replicas.status()).collect()
    }

    /// Uses `key`, which the primary must own, to detect that all keys were lost.
    pub(crate) fn keep_generation_at(&self, key: String) {
        self.members.losses().keep_at(key);
    }

    /// The reachable servers that report themselves as primary: one, unless there is a fault.
    pub(crate) fn leaders(&self) -> Vec<String> {
        self.members.leaders()
    }

    /// Returns how often counters were lost, and the last reason.
    pub(crate) fn losses(&self) -> (u64, Option<DataLoss>) {
        self.members.losses().totals()
    }
}
