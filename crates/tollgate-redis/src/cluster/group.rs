//! A group: a primary of a cluster, together with its replicas.

use std::ops::RangeInclusive;
use std::sync::Arc;

use parking_lot::Mutex;

use super::layout::GroupLayout;
use super::node_codec::NodeCodec;
use super::{AfterFailover, ClusterSettings};
use crate::batcher::{Batcher, BatcherStatus};
use crate::members::generation_at;
use crate::node_address::NodeAddress;
use crate::script::{RuntimeChoice, StepRuntime};
use crate::shard::{PrimaryChoice, Shard, ShardSettings};
use crate::slot::Slot;
use crate::topology::Topology;

/// A primary and its replicas, which serve the same slots, with a batcher to each of these nodes.
///
/// The nodes report which of them is the primary, as in every shard. A promotion is therefore
/// detected before the other nodes of the cluster have received the news of the promotion.
#[derive(Debug)]
pub(super) struct Group {
    nodes: Vec<NodeAddress>,
    shard: Shard<NodeCodec>,
    /// The slot of the generation key, or `None` before the group has slots. If the generation key
    /// is missing on the primary, the group has lost all of its keys.
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
        let shard = Shard::open(&servers, codec, NodeCodec::for_replica, PrimaryChoice::ByRole);
        if settings.after_failover == AfterFailover::Pause {
            shard.primary().pause_until_replayed();
        }
        let group = Self { nodes, shard, witness: Mutex::default() };
        group.keeps(&layout.slots);
        group
    }

    /// Sets the slots of the group. One of these slots contains the generation key, by which a loss
    /// of data is detected.
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

    /// Takes over the start of the outage of `before`, which owned slots of this group until now.
    pub(super) fn take_over(&self, before: &Self) {
        self.primary().take_over(before.primary());
    }

    /// Returns whether `node` is in the group.
    pub(super) fn has(&self, node: &NodeAddress) -> bool {
        self.nodes.contains(node)
    }

    /// Returns whether the group can serve `layout` without a change. The group must contain all
    /// nodes of `layout`. It may contain further nodes, such as a primary that has died, if
    /// `others` does not list any of the group's nodes in another group.
    pub(super) fn serves(&self, layout: &GroupLayout, others: &[GroupLayout]) -> bool {
        let is_elsewhere = |node: &NodeAddress| {
            let others = others.iter().filter(|other| other.primary != layout.primary);
            others.into_iter().any(|other| other.nodes().any(|there| there == node))
        };
        layout.nodes().all(|node| self.has(node)) && !self.nodes.iter().any(is_elsewhere)
    }

    /// Returns the nodes. The primary of the layout with which the group was opened comes first.
    pub(super) fn nodes(&self) -> &[NodeAddress] {
        &self.nodes
    }

    /// Returns the batcher that is connected to the primary.
    pub(super) fn primary(&self) -> &Batcher<NodeCodec> {
        self.shard.primary()
    }

    /// Returns the batcher to a replica that answers. Returns `None` if replicas do not serve reads
    /// or no replica answers.
    pub(super) fn replica(&self) -> Option<Arc<Batcher<NodeCodec>>> {
        self.shard.replica()
    }

    pub(super) fn shard(&self) -> &Shard<NodeCodec> {
        &self.shard
    }

    /// Returns how the step runs in the primary: as a module, a function or a script.
    pub(super) fn runtime(&self) -> StepRuntime {
        self.primary().codec().runtime()
    }

    /// Returns the status of the batchers. The batcher to the primary comes first.
    pub(super) fn status(&self) -> Vec<BatcherStatus> {
        self.shard.status()
    }
}
