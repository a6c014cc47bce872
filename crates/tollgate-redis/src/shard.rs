//! One deployment of Redis: a primary, and any number of replicas that follow it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use crate::batcher::{Batcher, BatcherLimits, BatcherStatus};
use crate::client_role::ClientRole;
use crate::codec::Codec;
use crate::link::{Endpoint, LinkError, LinkLimits, ReplicationProgress, RequiredRole};
use crate::topology::{DataLoss, Members, ReplicaPool, SentinelWatch, ServerDiscovery, Topology};

/// Who answers calls that only read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadFrom {
    /// A replica that keeps up with the primary, each in its turn; where none answers, the primary.
    #[default]
    Replicas,
    /// The primary.
    Primary,
}

/// Where a shard's servers are, and the bounds of what is asked of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardSettings {
    /// Which servers there are.
    pub topology: Topology,
    /// Who answers calls that only read.
    pub reads: ReadFrom,
    /// The bounds of each batcher.
    pub batcher: BatcherLimits,
    /// The bounds of each link's waits.
    pub link: LinkLimits,
    /// As what it is opened.
    pub client_role: ClientRole,
}

impl ShardSettings {
    /// A primary without replicas, under the default bounds.
    #[must_use]
    pub fn new(primary: Endpoint) -> Self {
        Self::replicated(primary, Vec::new())
    }

    /// A primary and those that follow it, under the default bounds.
    #[must_use]
    pub fn replicated(primary: Endpoint, replicas: Vec<Endpoint>) -> Self {
        Self::of(Topology::Static { primary, replicas })
    }

    /// These servers, under the default bounds.
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

/// The batchers to a shard's servers.
///
/// Which server is the primary, the servers say themselves: each is asked for its role when it is
/// connected to, and each of several twice per heartbeat. Of two that say that they are, what is
/// told in [`Members`] decides which one is charged; where nothing tells, a node that is connected
/// to one of them stays there.
#[derive(Debug)]
pub(crate) struct Shard<C: Codec> {
    members: Arc<Members>,
    primary: Batcher<C>,
    replicas: ReplicaPool<C>,
    /// Who asks the servers which of them is the primary, if there are several.
    _discovery: Option<ServerDiscovery>,
    _sentinels: Option<SentinelWatch>,
}

impl<C: Codec> Shard<C> {
    /// Opens the batchers, and begins to connect. Those to replicas that are read from speak as
    /// `for_replica` makes of `codec`. Needs a tokio runtime.
    pub(crate) fn open(
        settings: &ShardSettings,
        codec: C,
        for_replica: impl Fn(&C) -> C + Send + 'static,
    ) -> Self {
        let (link, codec) = (settings.link, Arc::new(codec));
        let progress = Arc::<ReplicationProgress>::default();
        // There is another one to operation: who does not answer once is not waited for again.
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
                (Members::of(servers, &link), readers, None)
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
    /// Why it was not `within` that time. The shard goes on trying.
    pub(crate) async fn ready(&self, within: Duration) -> Result<(), LinkError> {
        let link = self.primary.link();
        timeout(within, link.up()).await.map_err(|_| {
            let slow = || LinkError::Slow { address: "the primary".into(), within };
            link.last_error().unwrap_or_else(slow)
        })
    }

    /// The batcher to the primary.
    pub(crate) fn primary(&self) -> &Batcher<C> {
        &self.primary
    }

    /// The next replica in turn that answers, if one is read from and does. One that does not keep
    /// up with the primary, that loads or that fails is passed over.
    pub(crate) fn replica(&self) -> Option<Arc<Batcher<C>>> {
        self.replicas.next()
    }

    /// How the batchers stand: the primary's, then those of the replicas that are read from, in the
    /// order of the settings, or of their addresses where sentinels name them.
    pub(crate) fn status(&self) -> Vec<BatcherStatus> {
        std::iter::once(self.primary.status()).chain(self.replicas.status()).collect()
    }

    /// Notices by `key` whether all keys were lost: one that the primary keeps.
    pub(crate) fn keep_generation_at(&self, key: String) {
        self.members.losses().keep_at(key);
    }

    /// How often counters were lost, and why they were last.
    pub(crate) fn losses(&self) -> (u64, Option<DataLoss>) {
        self.members.losses().totals()
    }
}
