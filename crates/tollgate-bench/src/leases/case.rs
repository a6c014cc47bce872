//! What is compared: a limit that the store decides, and one of which nodes take parts in advance.

use std::sync::Arc;
use std::time::Instant;

use tokio::task::JoinSet;

use super::nodes::{Nodes, Spent};
use crate::doors::load::{Load, LoadError};
use crate::doors::wire::Wire;

/// Connections to each node, and commands of each that wait at once.
const CONNECTIONS: usize = 16;
const IN_FLIGHT: usize = 16;

/// A limit that is charged.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// What it is called in the report.
    pub name: &'static str,
    /// The limit's name.
    pub limit: &'static str,
    /// Its mode.
    pub mode: &'static str,
    /// How much of what is asked it admits.
    pub room: Room,
}

/// How much of what is asked a limit admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// All of it, many times over.
    Enough,
    /// Half of it.
    Half,
}

/// Every case: the exact one before the leased one.
pub const CASES: [Case; 4] = [
    Case { name: "far from the limit", limit: "far-exact", mode: "exact", room: Room::Enough },
    Case { name: "", limit: "far-leased", mode: "leased", room: Room::Enough },
    Case { name: "half is refused", limit: "near-exact", mode: "exact", room: Room::Half },
    Case { name: "", limit: "near-leased", mode: "leased", room: Room::Half },
];

/// What one case did in one round.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    /// Charges that were decided.
    pub decided: usize,
    /// Those that were admitted.
    pub admitted: usize,
    /// Seconds from the first charge to the last answer.
    pub seconds: f64,
    /// What it took.
    pub spent: Spent,
}

impl Case {
    /// The units of its limit, where `scale` charges are made in a round.
    #[must_use]
    pub const fn quota(&self, scale: u64) -> u64 {
        match self.room {
            Room::Enough => 1_000_000_000,
            Room::Half => scale / 2,
        }
    }

    /// Charges one subject `scale` times, which no round charged before, through all nodes at once.
    ///
    /// # Errors
    /// If a connection breaks, an answer is none, or the admitted are not what the limit has.
    pub async fn round(
        &self,
        nodes: &mut Nodes,
        round: u32,
        scale: u64,
    ) -> Result<Round, LoadError> {
        let decided = usize::try_from(scale)?;
        let count = nodes.all().len();
        let subjects: Arc<[u32]> = vec![round; decided / count].into();
        let (before, begun) = (nodes.spent().await?, Instant::now());
        let mut loads = JoinSet::new();
        for node in nodes.all() {
            let (address, wire) = (node.address(), Wire::Charge(self.limit));
            let load = Load { address, wire, connections: CONNECTIONS, in_flight: IN_FLIGHT };
            let subjects = Arc::clone(&subjects);
            loads.spawn(async move { load.run(&subjects).await });
        }
        let mut admitted = 0;
        while let Some(load) = loads.join_next().await {
            admitted += load??;
        }
        let seconds = begun.elapsed().as_secs_f64();
        let spent = nodes.spent().await?.since(before);
        let round = Round { decided: decided / count * count, admitted, seconds, spent };
        if admitted as u64 > self.quota(scale) {
            return Err(format!("{}: {admitted} of {}", self.limit, self.quota(scale)).into());
        }
        Ok(round)
    }
}
