//! The sources of a shard's servers: the configuration, together with queries of their roles, or
//! sentinels.

mod discovery;
mod sentinel;
mod sentinels;

pub(crate) use discovery::ServerDiscovery;
pub(crate) use sentinels::SentinelWatch;
pub use sentinels::{Sentinels, ServerAccess};

use crate::connection::Endpoint;

/// The source of a shard's servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// The configuration names the servers. Their roles show which one is the primary.
    Static {
        /// The server that the configuration names as the primary.
        primary: Endpoint,
        /// The other servers of the shard. If one of them is promoted, the promotion is detected,
        /// and the promoted server receives the writes.
        replicas: Vec<Endpoint>,
    },
    /// Sentinels name the servers of the shard.
    Sentinel(Sentinels),
}
