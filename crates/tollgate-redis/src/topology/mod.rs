//! The servers of a shard, and the election of its primary.

mod data_loss;
mod discovery;
mod members;
mod primary_election;
mod sentinel;
mod sentinels;

pub use data_loss::DataLoss;
pub(crate) use data_loss::generation_at;
pub(crate) use discovery::ServerDiscovery;
pub(crate) use members::Members;
pub(crate) use sentinels::SentinelWatch;
pub use sentinels::{Sentinels, ServerAccess};

use crate::connection::Endpoint;

/// The source of a shard's servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// The configuration names them. Their roles show which one is the primary.
    Static {
        /// The primary in the configuration.
        primary: Endpoint,
        /// Its replicas. If one of them is promoted, it is detected and receives the writes.
        replicas: Vec<Endpoint>,
    },
    /// Sentinels name them.
    Sentinel(Sentinels),
}
