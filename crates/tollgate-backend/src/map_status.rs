//! Which map of shards is in force, and how far a move is, for whoever operates it.

use tollgate::store::rebalance::{HeartbeatCounts, Phase};
use tollgate::store::sharded::MapVersion;

/// Which map of shards this node uses, and what others do.
#[derive(Clone, Debug)]
pub struct MapStatus {
    /// The map of `shards`.
    pub version: MapVersion,
    /// The nodes that were heard of. `None` before the first look.
    pub nodes: Option<Nodes>,
    /// The move to this map, where the settings name the one that is left.
    pub moving: Option<MoveStatus>,
}

/// How far a move is at this node.
#[derive(Clone, Copy, Debug)]
pub struct MoveStatus {
    /// What is in force for subjects that move.
    pub phase: Phase,
    /// The map that is left.
    pub from: MapVersion,
    /// Cells that this node transferred.
    pub carried: u64,
    /// Calls before which an old owner could not be asked, so that who moved from there began anew.
    pub failed_transfers: u64,
    /// Charges that not both owners are known to have counted while this node followed, or to have
    /// given back.
    pub diverged: u64,
}

/// How many nodes were heard of within a lease, each at the shard that heard of the most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nodes {
    /// Those that use this node's map, itself among them.
    pub alike: u64,
    /// Those that use the map that is left alone.
    pub before: u64,
    /// Those that use neither.
    pub others: u64,
    /// Shards of which nothing was heard.
    pub silent: usize,
}

impl Nodes {
    /// What shards told of themselves, of so many; `moves` says whether they were asked about
    /// another map than this node's.
    pub(crate) fn of<'a>(
        counts_by_shard: impl Iterator<Item = &'a HeartbeatCounts>,
        moves: bool,
        shards: usize,
    ) -> Self {
        let mut nodes = Self { silent: shards, ..Self::default() };
        for it in counts_by_shard {
            let before = if moves { it.asked } else { 0 };
            let others = it.all.saturating_sub(it.alike).saturating_sub(before);
            nodes.alike = nodes.alike.max(it.alike);
            nodes.before = nodes.before.max(before);
            nodes.others = nodes.others.max(others);
            nodes.silent = nodes.silent.saturating_sub(1);
        }
        nodes
    }
}

/// The word for a phase.
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
            HeartbeatCounts { alike: 2, asked: 1, all: 4 },
            HeartbeatCounts { alike: 3, asked: 0, all: 3 },
        ];
        let moving = Nodes::of(counts_by_shard.iter(), true, 3);
        assert_eq!(moving, Nodes { alike: 3, before: 1, others: 1, silent: 1 });
        let fixed = Nodes::of(counts_by_shard[..1].iter(), false, 1);
        assert_eq!(fixed, Nodes { alike: 2, before: 0, others: 2, silent: 0 });
    }
}
