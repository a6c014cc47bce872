//! A primary of a cluster with what follows it.

use std::ops::RangeInclusive;
use std::sync::Arc;

use parking_lot::Mutex;

use super::layout::GroupLayout;
use super::node_codec::NodeCodec;
use super::slot::Slot;
use super::{AfterFailover, ClusterSettings, NodeAddress};
use crate::batcher::{Batcher, BatcherStatus};
use crate::script::{RuntimeChoice, StepRuntime};
use crate::shard::{Shard, ShardSettings};
use crate::topology::{Topology, generation_at};

/// Nodes that keep the same slots, of which one takes writes, and the batchers to them.
///
/// Which one it is they say themselves, as those of any shard do: a promotion is found before the
/// rest of the cluster has heard of it.
#[derive(Debug)]
pub(super) struct Group {
    nodes: Vec<NodeAddress>,
    shard: Shard<NodeCodec>,
    /// The slot of the key that is lost only with the others.
    witness: Mutex<Option<Slot>>,
}

impl Group {
    /// Opens the batchers to the nodes of `layout`.
    pub(super) fn open(
        layout: &GroupLayout,
        settings: &ClusterSettings,
        choice: RuntimeChoice,
    ) -> Self {
        let endpoint = |node: &NodeAddress| node.endpoint(settings.seeds.first());
        let topology = Topology::Static {
            primary: endpoint(&layout.primary),
            replicas: layout.replicas.iter().map(endpoint).collect(),
        };
        let servers = ShardSettings {
            topology,
            reads: settings.reads,
            batcher: settings.batcher,
            link: settings.link,
            client_role: settings.client_role,
        };
        let codec = NodeCodec::new(choice, settings.client_role);
        let nodes = std::iter::once(&layout.primary).chain(&layout.replicas).cloned().collect();
        let shard = Shard::open(&servers, codec, NodeCodec::for_replica);
        if settings.after_failover == AfterFailover::Pause {
            shard.primary().pause_until_replayed();
        }
        let group = Self { nodes, shard, witness: Mutex::default() };
        group.keeps(&layout.slots);
        group
    }

    /// It keeps `slots` now, in one of which it is noticed whether keys were lost.
    pub(super) fn keeps(&self, slots: &[RangeInclusive<u16>]) {
        let mut witness = self.witness.lock();
        let is_kept = |slot: Slot| slots.iter().any(|range| range.contains(&slot.number()));
        if witness.is_some_and(is_kept) {
            return;
        }
        *witness = slots.first().and_then(|range| Slot::new(*range.start()));
        if let Some(slot) = *witness {
            self.shard.keep_generation_at(generation_at(&slot.tag()));
        }
    }

    /// Whether `node` is one of them.
    pub(super) fn has(&self, node: &NodeAddress) -> bool {
        self.nodes.contains(node)
    }

    /// Whether it serves as the group of `layout` as it is. It may know of more nodes, such as a
    /// primary that has died, as long as `others` does not have them in another group.
    pub(super) fn serves(&self, layout: &GroupLayout, others: &[GroupLayout]) -> bool {
        let is_elsewhere = |node: &NodeAddress| {
            let others = others.iter().filter(|other| other.primary != layout.primary);
            others.into_iter().any(|other| other.nodes().any(|there| there == node))
        };
        layout.nodes().all(|node| self.has(node)) && !self.nodes.iter().any(is_elsewhere)
    }

    /// The nodes, the primary of the layout first.
    pub(super) fn nodes(&self) -> &[NodeAddress] {
        &self.nodes
    }

    /// The batcher to the primary.
    pub(super) fn primary(&self) -> &Batcher<NodeCodec> {
        self.shard.primary()
    }

    /// The batcher to a replica that answers, if one is read from and does.
    pub(super) fn replica(&self) -> Option<Arc<Batcher<NodeCodec>>> {
        self.shard.replica()
    }

    pub(super) fn shard(&self) -> &Shard<NodeCodec> {
        &self.shard
    }

    /// How the step runs in the primary.
    pub(super) fn runtime(&self) -> StepRuntime {
        self.primary().codec().runtime()
    }

    /// How the batchers stand, the primary's first.
    pub(super) fn status(&self) -> Vec<BatcherStatus> {
        self.shard.status()
    }
}
