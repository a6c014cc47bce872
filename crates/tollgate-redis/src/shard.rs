//! One deployment of Redis: a primary, and any number of replicas that follow it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use crate::codec::Codec;
use crate::lane::{Lane, LaneLimits, LaneStatus};
use crate::link::{Duty, Endpoint, LinkError, LinkLimits, Progress};
use crate::presence::Presence;
use crate::topology::{Census, Loss, Readers, Roster, SentinelWatch, Topology};

/// Who answers calls that only read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reads {
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
    pub reads: Reads,
    /// The bounds of each lane.
    pub lane: LaneLimits,
    /// The bounds of each link's waits.
    pub link: LinkLimits,
    /// As what it is opened.
    pub presence: Presence,
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
            reads: Reads::default(),
            lane: LaneLimits::default(),
            link: LinkLimits::default(),
            presence: Presence::default(),
        }
    }
}

/// The lanes to a shard's servers.
///
/// Which server is the primary, the servers say themselves: each is asked for its role when it is
/// connected to, and each of several twice per heartbeat. Of two that say that they are, what is
/// told in [`Roster`] decides which one is charged; where nothing tells, a node that is connected
/// to one of them stays there.
#[derive(Debug)]
pub(crate) struct Shard<C: Codec> {
    roster: Arc<Roster>,
    primary: Lane<C>,
    replicas: Readers<C>,
    /// Who asks the servers which of them is the primary, if there are several.
    _census: Option<Census>,
    _sentinels: Option<SentinelWatch>,
}

impl<C: Codec> Shard<C> {
    /// Opens the lanes, and begins to connect. Those to replicas that are read from speak as
    /// `for_replica` makes of `codec`. Needs a tokio runtime.
    pub(crate) fn open(
        settings: &ShardSettings,
        codec: C,
        for_replica: impl Fn(&C) -> C + Send + 'static,
    ) -> Self {
        let (link, codec) = (settings.link, Arc::new(codec));
        let progress = Arc::<Progress>::default();
        // There is another one to ask: who does not answer once is not waited for again.
        let impatient = LinkLimits { misses: 1, ..link };
        let (lane_limits, writer) = (settings.lane, Arc::clone(&codec));
        let read = Arc::clone(&progress);
        let reader = move |endpoint: &Endpoint| {
            let (duty, codec) = (Duty::Replica(Arc::clone(&read)), for_replica(&writer));
            Lane::start(vec![endpoint.clone()], duty, Arc::new(codec), lane_limits, impatient)
        };
        let (roster, replicas, sentinels) = match &settings.topology {
            Topology::Static { primary, replicas } => {
                let servers = std::iter::once(primary).chain(replicas).cloned().collect();
                let readers = match settings.reads {
                    Reads::Replicas => Readers::fixed(replicas.iter().map(reader)),
                    Reads::Primary => Readers::fixed([]),
                };
                (Roster::of(servers, &link), readers, None)
            }
            Topology::Sentinel(sentinels) => {
                let roster = Roster::announced_by(sentinels.sentinels.len(), &link);
                let readers = match settings.reads {
                    Reads::Replicas => Readers::follow(&roster, reader),
                    Reads::Primary => Readers::fixed([]),
                };
                let watch = SentinelWatch::start(sentinels.clone(), Arc::clone(&roster), link);
                (roster, readers, Some(watch))
            }
        };
        if settings.presence == Presence::Observer {
            roster.losses().only_look();
        }
        let duty = match settings.reads {
            Reads::Replicas => Duty::Followed(progress),
            Reads::Primary => Duty::Primary,
        };
        let is_alone = matches!(&settings.topology,
            Topology::Static { replicas, .. } if replicas.is_empty());
        let census = (!is_alone).then(|| Census::start(Arc::clone(&roster), link));
        let primary = Lane::follow(Arc::clone(&roster), duty, codec, lane_limits, link);
        Self { roster, primary, replicas, _census: census, _sentinels: sentinels }
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

    /// The lane to the primary.
    pub(crate) fn primary(&self) -> &Lane<C> {
        &self.primary
    }

    /// The next replica in turn that answers, if one is read from and does. One that does not keep
    /// up with the primary, that loads or that fails is passed over.
    pub(crate) fn replica(&self) -> Option<Arc<Lane<C>>> {
        self.replicas.next()
    }

    /// How the lanes stand: the primary's, then those of the replicas that are read from, in the
    /// order of the settings, or of their addresses where sentinels name them.
    pub(crate) fn status(&self) -> Vec<LaneStatus> {
        std::iter::once(self.primary.status()).chain(self.replicas.status()).collect()
    }

    /// Notices by `key` whether all keys were lost: one that the primary keeps.
    pub(crate) fn keep_generation_at(&self, key: String) {
        self.roster.losses().keep_at(key);
    }

    /// How often counters were lost, and why they were last.
    pub(crate) fn losses(&self) -> (u64, Option<Loss>) {
        self.roster.losses().told()
    }
}
