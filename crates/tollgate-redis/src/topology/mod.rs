//! The sources of a shard's servers. Either the configuration names the servers and queries
//! determine their roles, or sentinels name the servers.

mod discovery;
mod sentinel;
mod sentinels;

pub(crate) use discovery::ServerDiscovery;
pub(crate) use sentinels::SentinelWatch;
pub use sentinels::{Sentinels, ServerAccess};

use crate::connection::Endpoint;

/// The source of the addresses of a shard's servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// The configuration names the servers. The roles that the servers report show which server is
    /// the primary.
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
