//! Which servers make up a shard, and which of them is its primary now.

mod data_loss;
mod discovery;
mod members;
mod primary_election;
mod replica_pool;
mod sentinel;
mod sentinels;

pub use data_loss::DataLoss;
pub(crate) use data_loss::generation_at;
pub(crate) use discovery::ServerDiscovery;
pub(crate) use members::Members;
pub(crate) use replica_pool::ReplicaPool;
pub(crate) use sentinels::SentinelWatch;
pub use sentinels::{Sentinels, ServerAccess};

use crate::link::Endpoint;

/// How it is known which servers a shard has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// The configuration names them. Which one is the primary, they say themselves.
    Static {
        /// The server that takes writes, as far as the configuration knows.
        primary: Endpoint,
        /// Those that follow it. One of them that was promoted is found, and takes the writes.
        replicas: Vec<Endpoint>,
    },
    /// Sentinels name them.
    Sentinel(Sentinels),
}
