//! Detection of shards that receive heartbeats from fewer nodes with the same map than other shards
//! receive.

use std::collections::HashMap;

use tollgate_stores::rebalance::HeartbeatCounts;

/// The number of consecutive observations with missing nodes before the missing nodes are reported.
/// This many observations take longer than the time for which a stopped node is still counted.
const LOOKS: u32 = 4;

/// The shards that miss heartbeats, with the number of consecutive observations in which each shard
/// missed heartbeats.
///
/// Every node sends heartbeats to all shards of its map. A map consists of names, so the servers of
/// a shard may change. If a node has another address for a shard than the other nodes, its map is
/// the same, but the shard at the address of the other nodes does not receive its heartbeats.
#[derive(Debug, Default)]
pub(crate) struct Missed(HashMap<Box<str>, Since>);

#[derive(Clone, Copy, Debug, Default)]
struct Since {
    looks: u32,
    /// The last reported number of missing nodes.
    told: u64,
}

impl Missed {
    /// Processes the counts of the shards that answered. Returns each shard with a changed number
    /// of missing nodes, and the new number.
    pub(crate) fn look<'h>(
        &mut self,
        counts_by_shard: &'h HashMap<Box<str>, HeartbeatCounts>,
    ) -> Vec<(&'h str, u64)> {
        let most = counts_by_shard.values().map(|it| it.alike).max().unwrap_or_default();
        let mut news = Vec::new();
        for (shard, it) in counts_by_shard {
            let missing = most - it.alike;
            let since = self.0.entry(shard.clone()).or_default();
            since.looks = if missing == 0 { 0 } else { since.looks.saturating_add(1) };
            let lasts = missing == 0 || since.looks >= LOOKS;
            if lasts && missing != since.told {
                since.told = missing;
                news.push((&**shard, missing));
            }
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts_by_shard(alike: [u64; 2]) -> HashMap<Box<str>, HeartbeatCounts> {
        let [a, b] = alike.map(|alike| HeartbeatCounts { alike, asked: 0, all: alike });
        [("a".into(), a), ("b".into(), b)].into()
    }

    #[test]
    fn a_shard_that_misses_a_node_for_long_is_reported_once_and_when_it_is_over() {
        let mut missed = Missed::default();
        let mut told: Vec<Vec<String>> = Vec::new();
        for alike in
            [[2, 2], [3, 2], [3, 2], [3, 3], [3, 2], [3, 2], [3, 2], [3, 2], [3, 2], [2, 2]]
        {
            let counts_by_shard = counts_by_shard(alike);
            told.push(
                missed
                    .look(&counts_by_shard)
                    .into_iter()
                    .map(|(it, by)| format!("{it} {by}"))
                    .collect(),
            );
        }
        let mut expected = vec![Vec::<String>::new(); 10];
        (expected[7], expected[9]) = (vec!["b 1".into()], vec!["b 0".into()]);
        assert_eq!(told, expected);
    }

    #[test]
    fn a_shard_that_does_not_answer_is_another_matter() {
        let mut missed = Missed::default();
        let mut counts_by_shard = counts_by_shard([2, 2]);
        counts_by_shard.remove("b");
        for _ in 0..9 {
            assert!(missed.look(&counts_by_shard).is_empty());
        }
    }
}
