//! The sources of a shard's servers: the configuration with queries of roles, or sentinels.

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
        /// The primary in the configuration.
        primary: Endpoint,
        /// The replicas of the shard. If one of them is promoted, it is detected and receives the
        /// writes.
        replicas: Vec<Endpoint>,
    },
    /// Sentinels name the servers.
    Sentinel(Sentinels),
}
