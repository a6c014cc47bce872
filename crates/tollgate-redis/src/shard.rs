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
    /// The replicas that keep up with the primary answer in rotation. If no replica answers, the
    /// primary answers.
    #[default]
    Replicas,
    /// The primary answers every read-only call.
    Primary,
}

/// The settings of a shard: its servers and the limits of its connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardSettings {
    /// The source of the addresses of the shard's servers.
    pub topology: Topology,
    /// The servers that answer read-only calls.
    pub reads: ReadFrom,
    /// The limits of each batcher's queue and calls.
    pub batcher: BatcherLimits,
    /// The timeouts of the connections.
    pub link: LinkLimits,
    /// Whether this process writes to the shard, as a node does, or only reads from it.
    pub client_role: ClientRole,
}

impl ShardSettings {
    /// Returns settings for a primary without replicas, with the default of every other setting.
    #[must_use]
    pub fn new(primary: Endpoint) -> Self {
        Self::replicated(primary, Vec::new())
    }

    /// Returns settings for a primary and its replicas, with the default of every other setting.
    #[must_use]
    pub fn replicated(primary: Endpoint, replicas: Vec<Endpoint>) -> Self {
        Self::of(Topology::Static { primary, replicas })
    }

    /// Returns settings for the servers of `topology`, with the default of every other setting.
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

/// How one of several primaries is chosen if no primary has taken over from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PrimaryChoice {
    /// If no sentinels name the primary, the shard's [mark](crate::connection::EpochMark) chooses.
    /// If the marks are equal, the order of the configuration chooses.
    ByMark,
    /// Only the roles of the servers choose, because the nodes of a cluster agree on one primary.
    ByRole,
}

/// The batchers to a shard's servers.
///
/// The servers report which of them is the primary. Each server is queried for its role when a
/// connection to it is opened. If the shard has several servers, each server is also queried twice
/// per heartbeat interval. If two servers report themselves as primary, [`Members`] selects the
/// server that is charged.
#[derive(Debug)]
pub(crate) struct Shard<C: Codec> {
    members: Arc<Members>,
    primary: Batcher<C>,
    replicas: ReplicaPool<C>,
    /// The task that queries the roles of the servers. `None` if there is only one server.
    _discovery: Option<ServerDiscovery>,
    _sentinels: Option<SentinelWatch>,
}

impl<C: Codec> Shard<C> {
    /// Opens the batchers and starts to connect to the servers. The function `for_replica` creates
    /// the codec of each replica's batcher from `codec`. Needs a tokio runtime.
    pub(crate) fn open(
        settings: &ShardSettings,
        codec: C,
        for_replica: impl Fn(&C) -> C + Send + 'static,
        choice: PrimaryChoice,
    ) -> Self {
        let (link, codec) = (settings.link, Arc::new(codec));
        let progress = Arc::<ReplicationProgress>::default();
        // Another server can answer a read, so a single missed deadline opens the circuit breaker
        // of a replica.
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
    /// [`LinkError`] with the reason, if the primary is not connected after the time `within`. The
    /// shard continues to connect.
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

    /// Returns the batcher to the next replica in rotation that answers. Skips replicas that lag
    /// behind, load their data, or fail. Returns `None` if replicas do not serve reads or no
    /// replica answers.
    pub(crate) fn replica(&self) -> Option<Arc<Batcher<C>>> {
        self.replicas.next()
    }

    /// Returns the status of the batchers. The batcher to the primary is the first. The batchers to
    /// the replicas that serve reads follow, in the order of the settings. If sentinels name the
    /// replicas, the order is the order of their addresses.
    pub(crate) fn status(&self) -> Vec<BatcherStatus> {
        std::iter::once(self.primary.status()).chain(self.replicas.status()).collect()
    }

    /// From now on, uses `key` to detect that all keys were lost. The primary must own the slot of
    /// `key`.
    pub(crate) fn keep_generation_at(&self, key: String) {
        self.members.losses().keep_at(key);
    }

    /// Returns the reachable servers that report themselves as primary. Without a fault, there is
    /// one such server.
    pub(crate) fn leaders(&self) -> Vec<String> {
        self.members.leaders()
    }

    /// Returns how often counters were lost, and the cause of the last loss.
    pub(crate) fn losses(&self) -> (u64, Option<DataLoss>) {
        self.members.losses().totals()
    }
}
