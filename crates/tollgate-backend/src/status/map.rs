//! The current shard map and the progress of a rebalance, for operators.

use tollgate_stores::rebalance::{HeartbeatCounts, Phase};
use tollgate_stores::sharded::MapVersion;

/// The shard map of this node, and the maps of other nodes.
#[derive(Clone, Debug)]
pub struct MapStatus {
    /// The version of the shard map that `shards` in the policy file defines.
    pub version: MapVersion,
    /// The numbers of nodes with a recent heartbeat. `None` before the first query.
    pub nodes: Option<Nodes>,
    /// The rebalance to this map, if the settings contain the previous map.
    pub moving: Option<MoveStatus>,
}

/// The progress of a rebalance on this node.
#[derive(Clone, Copy, Debug)]
pub struct MoveStatus {
    /// The phase of the rebalance.
    pub phase: Phase,
    /// The version of the previous map.
    pub from: MapVersion,
    /// The number of cells that this node transferred.
    pub transferred: u64,
    /// The number of calls with usage that could not be transferred from a previous owner. The
    /// subjects of these calls started with unused limits at the new owner.
    pub failed_transfers: u64,
    /// The number of charges and refunds that possibly only one of the two owners counted: charges
    /// in the dual-write phase, and refunds in any phase.
    pub diverged: u64,
}

/// The numbers of nodes that sent a heartbeat within the last `HEARTBEAT_TTL`, and the number of
/// shards that did not answer. Shards may return different counts: each number of nodes is the
/// highest count that any shard returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nodes {
    /// The number of nodes that use this node's map. This node is included.
    pub current: u64,
    /// The number of nodes that use only the previous map.
    pub before: u64,
    /// The number of nodes that use neither this node's map nor the previous map.
    pub others: u64,
    /// The number of shards that did not answer.
    pub unanswered: usize,
}

impl Nodes {
    /// Computes the counts from the answers of the shards. `shards` is the number of queried
    /// shards. `moves` is true if a rebalance is in progress. Only in this case did the query also
    /// count the nodes with the previous map.
    pub(crate) fn of<'a>(
        counts_by_shard: impl Iterator<Item = &'a HeartbeatCounts>,
        moves: bool,
        shards: usize,
    ) -> Self {
        let mut nodes = Self { unanswered: shards, ..Self::default() };
        for it in counts_by_shard {
            let before = if moves { it.other_map } else { 0 };
            let others = it.all.saturating_sub(it.own_map).saturating_sub(before);
            nodes.current = nodes.current.max(it.own_map);
            nodes.before = nodes.before.max(before);
            nodes.others = nodes.others.max(others);
            nodes.unanswered = nodes.unanswered.saturating_sub(1);
        }
        nodes
    }
}

/// Returns the name of `phase` for operators.
#[must_use]
pub const fn phase_word(phase: Phase) -> &'static str {
    match phase {
        Phase::DualWrite => "dual_write",
        Phase::Cutover => "cutover",
        Phase::Done => "done",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_node_is_counted_at_the_shard_that_heard_of_most() {
        let counts_by_shard = [
            HeartbeatCounts { own_map: 2, other_map: 1, all: 4 },
            HeartbeatCounts { own_map: 3, other_map: 0, all: 3 },
        ];
        let moving = Nodes::of(counts_by_shard.iter(), true, 3);
        assert_eq!(moving, Nodes { current: 3, before: 1, others: 1, unanswered: 1 });
        let fixed = Nodes::of(counts_by_shard[..1].iter(), false, 1);
        assert_eq!(fixed, Nodes { current: 2, before: 0, others: 2, unanswered: 0 });
    }
}
