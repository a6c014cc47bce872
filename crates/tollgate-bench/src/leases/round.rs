//! Measures one case. All nodes are charged at the same time.

use std::sync::Arc;
use std::time::Instant;

use tokio::task::JoinSet;

use super::case::Case;
use super::nodes::{Nodes, Usage};
use crate::listeners::load::{Load, LoadError};
use crate::listeners::wire::Wire;

/// The number of connections to each node. Each connection has [`IN_FLIGHT`] pending commands.
const CONNECTIONS: usize = 16;
const IN_FLIGHT: usize = 16;

/// The result of one case in one round.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    /// The number of charges that were decided.
    pub decided: usize,
    /// The number of charges that were admitted.
    pub admitted: usize,
    /// The seconds from the first charge to the last answer.
    pub seconds: f64,
    /// The resources that the round used.
    pub usage: Usage,
}

impl Case {
    /// Charges a new subject `scale` times, through all nodes at the same time.
    ///
    /// # Errors
    /// If a connection breaks, an answer is invalid, or the number of admitted charges is not the
    /// number that the limit permits.
    pub async fn round(
        &self,
        nodes: &mut Nodes,
        round: u32,
        scale: u64,
    ) -> Result<Round, LoadError> {
        let decided = usize::try_from(scale)?;
        let count = nodes.all().len();
        let subjects: Arc<[u32]> = vec![round; decided / count].into();
        let (before, started) = (nodes.usage().await?, Instant::now());
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
        let seconds = started.elapsed().as_secs_f64();
        let usage = nodes.usage().await?.since(before);
        let round = Round { decided: decided / count * count, admitted, seconds, usage };
        if admitted as u64 > self.quota(scale) {
            return Err(format!("{}: {admitted} of {}", self.limit, self.quota(scale)).into());
        }
        Ok(round)
    }
}
