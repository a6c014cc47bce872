//! The total results of many worlds, by the kind of world.

use std::collections::BTreeMap;

use tollgate_sim::{Kind, Outcome};

/// The total results of the worlds of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    worlds: u64,
    failed: u64,
    decisions: u64,
    by_nodes: u64,
    longest_wait: u64,
    store_excess: Option<u64>,
    local_bound: u64,
}

/// The total results by the name of the kind of world.
#[derive(Debug, Default)]
pub(crate) struct Sums(BTreeMap<String, Sum>);

impl Sums {
    pub(crate) fn add(&mut self, kind: Kind, outcome: &Outcome) {
        let figures = &outcome.figures;
        let one = Sum {
            worlds: 1,
            failed: u64::from(!outcome.violations.is_empty()),
            decisions: figures.decisions,
            by_nodes: figures.by_nodes,
            longest_wait: figures.longest_wait,
            store_excess: figures.store_excess,
            local_bound: figures.local_bound,
        };
        self.0.entry(kind.to_string()).or_default().join(one);
    }

    pub(crate) fn join(&mut self, other: Self) {
        for (kind, sum) in other.0 {
            self.0.entry(kind).or_default().join(sum);
        }
    }

    /// Returns the number of worlds, and the number of those that failed.
    pub(crate) fn worlds(&self) -> (u64, u64) {
        self.0
            .values()
            .fold((0, 0), |(worlds, failed), sum| (worlds + sum.worlds, failed + sum.failed))
    }

    pub(crate) fn has_failures(&self) -> bool {
        self.worlds().1 > 0
    }

    pub(crate) fn print(&self) {
        println!(
            "{:<14} {:>7} {:>7} {:>10} {:>10} {:>12} {:>12} {:>12}",
            "kind",
            "worlds",
            "failed",
            "decisions",
            "by nodes",
            "longest, ms",
            "store excess",
            "local bound"
        );
        for (kind, sum) in &self.0 {
            let excess =
                sum.store_excess.map_or_else(|| "none".to_owned(), |excess| format!("{excess}%"));
            println!(
                "{kind:<14} {:>7} {:>7} {:>10} {:>10} {:>12} {excess:>12} {:>11}%",
                sum.worlds,
                sum.failed,
                sum.decisions,
                sum.by_nodes,
                sum.longest_wait,
                sum.local_bound
            );
        }
    }
}

impl Sum {
    fn join(&mut self, other: Self) {
        self.worlds += other.worlds;
        self.failed += other.failed;
        self.decisions += other.decisions;
        self.by_nodes += other.by_nodes;
        self.longest_wait = self.longest_wait.max(other.longest_wait);
        self.store_excess = self.store_excess.max(other.store_excess);
        self.local_bound = self.local_bound.max(other.local_bound);
    }
}
