//! One deployment of Redis: a primary, and any number of replicas that follow it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::timeout;

use crate::circuit::Gate;
use crate::codec::Codec;
use crate::lane::{Lane, LaneLimits, LaneStatus};
use crate::link::{Duty, Endpoint, LinkError, LinkLimits, Progress};

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
    /// The server that takes writes, as far as the configuration knows.
    pub primary: Endpoint,
    /// Those that follow it. One of them that was promoted is found, and takes the writes.
    pub replicas: Vec<Endpoint>,
    /// Who answers calls that only read.
    pub reads: Reads,
    /// The bounds of each lane.
    pub lane: LaneLimits,
    /// The bounds of each link's waits.
    pub link: LinkLimits,
}

impl ShardSettings {
    /// A primary without replicas, under the default bounds.
    #[must_use]
    pub fn new(primary: Endpoint) -> Self {
        Self {
            primary,
            replicas: Vec::new(),
            reads: Reads::default(),
            lane: LaneLimits::default(),
            link: LinkLimits::default(),
        }
    }
}

/// The lanes to a shard's servers.
///
/// Which server is the primary, the servers say themselves: each is asked for its role when it is
/// connected to and once per heartbeat. While two of them say that they are (after a failover that
/// the old primary has not noticed), a node that is connected to one of them stays there.
#[derive(Debug)]
pub(crate) struct Shard<C: Codec> {
    primary: Lane<C>,
    replicas: Vec<Lane<C>>,
    /// Whose turn it is to be read from.
    turn: AtomicUsize,
}

impl<C: Codec> Shard<C> {
    /// Opens the lanes, and begins to connect. Those to replicas that are read from speak as
    /// `for_replica` makes of `codec`. Needs a tokio runtime.
    pub(crate) fn open(settings: &ShardSettings, codec: C, for_replica: impl Fn(&C) -> C) -> Self {
        let readers = match settings.reads {
            Reads::Replicas => &settings.replicas[..],
            Reads::Primary => &[],
        };
        let mut candidates = vec![settings.primary.clone()];
        candidates.extend(settings.replicas.iter().cloned());
        let progress = Arc::<Progress>::default();
        let duty = match readers {
            [] => Duty::Primary,
            _ => Duty::Followed(Arc::clone(&progress)),
        };
        // There is another one to ask: who does not answer once is not waited for again.
        let impatient = LinkLimits { misses: 1, ..settings.link };
        let reader = |endpoint: &Endpoint| {
            let (duty, codec) = (Duty::Replica(Arc::clone(&progress)), for_replica(&codec));
            Lane::start(vec![endpoint.clone()], duty, Arc::new(codec), settings.lane, impatient)
        };
        let replicas = readers.iter().map(reader).collect();
        let primary = Lane::start(candidates, duty, Arc::new(codec), settings.lane, settings.link);
        Self { primary, replicas, turn: AtomicUsize::new(0) }
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
    pub(crate) fn replica(&self) -> Option<&Lane<C>> {
        let first = self.turn.fetch_add(1, Ordering::Relaxed);
        (0..self.replicas.len())
            .map(|step| &self.replicas[first.wrapping_add(step) % self.replicas.len()])
            .find(|lane| lane.link().circuit().gate() == Gate::Closed)
    }

    /// How the lanes stand: the primary's, then the replicas' in the order of the settings.
    pub(crate) fn status(&self) -> Vec<LaneStatus> {
        std::iter::once(&self.primary).chain(&self.replicas).map(Lane::status).collect()
    }
}
