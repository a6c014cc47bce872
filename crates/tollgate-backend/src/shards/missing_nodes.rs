//! Detection of shards that receive heartbeats from fewer nodes with the same map than other shards
//! receive.

use std::collections::HashMap;

use tollgate_stores::rebalance::HeartbeatCounts;

/// The number of consecutive observations with missing nodes before the missing nodes are reported.
/// This many observations take longer than the time for which a stopped node is still counted.
const MIN_OBSERVATIONS: u32 = 4;

/// The shards that miss heartbeats, with the number of consecutive observations in which each shard
/// missed heartbeats.
///
/// Every node sends heartbeats to all shards of its map. A map consists of names, so the servers of
/// a shard may change. If a node has another address for a shard than the other nodes, all nodes
/// have the same map, but the shard at the address of the other nodes does not receive this node's
/// heartbeats.
#[derive(Debug, Default)]
pub(crate) struct MissingNodes(HashMap<Box<str>, Observed>);

#[derive(Clone, Copy, Debug, Default)]
struct Observed {
    observations: u32,
    /// The last reported number of missing nodes.
    reported: u64,
}

impl MissingNodes {
    /// Processes the counts of the shards that answered. Returns each shard with a changed number
    /// of missing nodes, and the new number.
    pub(crate) fn observe<'h>(
        &mut self,
        counts_by_shard: &'h HashMap<Box<str>, HeartbeatCounts>,
    ) -> Vec<(&'h str, u64)> {
        let most = counts_by_shard.values().map(|it| it.own_map).max().unwrap_or_default();
        let mut changes = Vec::new();
        for (shard, it) in counts_by_shard {
            let missing = most - it.own_map;
            let observed = self.0.entry(shard.clone()).or_default();
            observed.observations =
                if missing == 0 { 0 } else { observed.observations.saturating_add(1) };
            let lasts = missing == 0 || observed.observations >= MIN_OBSERVATIONS;
            if lasts && missing != observed.reported {
                observed.reported = missing;
                changes.push((&**shard, missing));
            }
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts_by_shard(own_map: [u64; 2]) -> HashMap<Box<str>, HeartbeatCounts> {
        let [a, b] = own_map.map(|own_map| HeartbeatCounts { own_map, other_map: 0, all: own_map });
        [("a".into(), a), ("b".into(), b)].into()
    }

    #[test]
    fn a_shard_that_misses_a_node_for_long_is_reported_once_and_when_it_is_over() {
        let mut missing_nodes = MissingNodes::default();
        let mut reports: Vec<Vec<String>> = Vec::new();
        for own_map in
            [[2, 2], [3, 2], [3, 2], [3, 3], [3, 2], [3, 2], [3, 2], [3, 2], [3, 2], [2, 2]]
        {
            let counts_by_shard = counts_by_shard(own_map);
            reports.push(
                missing_nodes
                    .observe(&counts_by_shard)
                    .into_iter()
                    .map(|(it, by)| format!("{it} {by}"))
                    .collect(),
            );
        }
        let mut expected = vec![Vec::<String>::new(); 10];
        (expected[7], expected[9]) = (vec!["b 1".into()], vec!["b 0".into()]);
        assert_eq!(reports, expected);
    }

    #[test]
    fn a_shard_that_does_not_answer_is_another_matter() {
        let mut missing_nodes = MissingNodes::default();
        let mut counts_by_shard = counts_by_shard([2, 2]);
        counts_by_shard.remove("b");
        for _ in 0..9 {
            assert!(missing_nodes.observe(&counts_by_shard).is_empty());
        }
    }
}
