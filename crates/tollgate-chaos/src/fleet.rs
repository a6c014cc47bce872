//! The nodes of a scenario: real limiters, with one recorder for the answers of their stores.

use std::convert::Infallible;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tollgate::model::Timestamp;
use tollgate::store::Memory;
use tollgate::{Clock, DecisionSource, HashKey, Limiter, SystemClock};
use tollgate_backend::{Backend, Refunds, ShardStatus, memory_bounds};
use tollgate_conformance::history::{Recorded, Recorder};
use tollgate_policy::{LoadedPolicy, StoreSettings};
use tollgate_stores::LocalShare;
use tollgate_stores::deadline::TIMER_GRAIN;

use super::error::ChaosError;
use super::nodes::Nodes;
use super::policy::{self, NODES};
use super::question::Question;

/// A limiter as in a service. A recorder between the limiter and its store records the answers of
/// the store.
type Node = Limiter<Arc<Recorded<Backend>>>;

/// Nodes that share their limits.
pub(crate) struct Fleet {
    nodes: Vec<Node>,
    recorder: Arc<Recorder>,
    fallback: u64,
    deadline: Duration,
}

impl Fleet {
    /// Starts nodes that use `store`, the policy of all scenarios and the machine's clock. Waits
    /// until the nodes are connected.
    pub(crate) async fn open(store: &str) -> Result<Self, ChaosError> {
        Self::by_clocks(store, |_| SystemClock).await
    }

    /// Starts nodes like [`open`](Self::open), but with a clock of its own for each node. `clock`
    /// returns the clock for the index of a node.
    pub(crate) async fn by_clocks<C: Clock + 'static>(
        store: &str,
        clock: impl Fn(usize) -> C,
    ) -> Result<Self, ChaosError> {
        let recorder = Arc::<Recorder>::default();
        let key = HashKey::random();
        let mut nodes = Vec::new();
        for number in 0..NODES {
            let loaded = policy::policy(store)?;
            let refunds = Refunds::ByResponses;
            let backend = Backend::open(&loaded.settings, key.clone(), &loaded.policy, refunds)
                .map_err(ChaosError::Open)?;
            backend.started().await;
            let clock = backend.clock(clock(number));
            let store = Arc::new(Recorded::with_recorder(backend, Arc::clone(&recorder)));
            nodes.push(Limiter::new(loaded.policy, store).with_key(key.clone()).with_clock(clock));
        }
        let loaded = policy::policy(store)?;
        let (fallback, deadline) = (max_fallback_units(&loaded), deadline(&loaded));
        Ok(Self { nodes, recorder, fallback, deadline })
    }

    /// Returns each node's store.
    pub(crate) fn stores(&self) -> impl Iterator<Item = &Backend> {
        self.nodes.iter().map(|node| node.store().store())
    }

    /// Returns the status of the shards as each node reports it.
    pub(crate) fn status(&self) -> impl Iterator<Item = Vec<ShardStatus>> {
        self.stores().map(Backend::status)
    }

    /// Returns whether every node uses the server at `url` as the primary of the first shard.
    pub(crate) fn charges(&self, url: &str) -> bool {
        self.status().all(|shards| shards.first().and_then(ShardStatus::primary) == Some(url))
    }

    /// Returns the time of the first node's clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.nodes[0].now()
    }

    /// Returns how often a node detected lost counters, summed over all shards. The nodes' counts
    /// may differ, and the lowest count is returned.
    pub(crate) fn windows_lost(&self) -> u64 {
        let of_node =
            |shards: Vec<ShardStatus>| shards.iter().map(|shard| shard.windows_lost).sum();
        self.status().map(of_node).min().unwrap_or_default()
    }
}

impl Nodes for Fleet {
    /// The type of receipts. The type has no values, because charges of these nodes are never
    /// refunded.
    type Receipt = Infallible;

    async fn decide(
        &self,
        caller: usize,
        question: &Question,
    ) -> (DecisionSource, Option<Infallible>) {
        let node = &self.nodes[caller % self.nodes.len()];
        let decisions = node.check(&question.facts());
        (decisions.await.source, None)
    }

    async fn refund(&self, _caller: usize, receipt: Infallible) {
        match receipt {}
    }

    fn recorder(&self) -> &Arc<Recorder> {
        &self.recorder
    }

    fn max_fallback_units(&self) -> u64 {
        self.fallback
    }

    fn max_wait(&self) -> Duration {
        self.deadline.saturating_add(TIMER_GRAIN)
    }
}

/// Returns the most units that all nodes together admit without the store: the highest bound of
/// [`LocalShare`] over all limits.
pub(super) fn max_fallback_units(loaded: &LoadedPolicy) -> u64 {
    let memory = Memory::new(memory_bounds(loaded.settings.store.memory()));
    let nodes = NonZeroU32::MIN.saturating_add(NODES as u32 - 1);
    let share = LocalShare::new(memory, nodes);
    let limits = loaded.policy.limits().iter();
    limits.map(|limit| share.max_admitted_units(&limit.limit)).max().unwrap_or_default()
}

fn deadline(loaded: &LoadedPolicy) -> Duration {
    match &loaded.settings.store {
        StoreSettings::Redis(redis) => redis.deadline,
        StoreSettings::Memcached(memcached) => memcached.deadline,
        _ => Duration::ZERO,
    }
}
