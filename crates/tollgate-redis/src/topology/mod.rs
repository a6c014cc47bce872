//! Which servers make up a shard, and which of them is its primary now.

mod census;
mod claims;
mod losses;
mod readers;
mod roster;
mod sentinel;
mod sentinels;

pub(crate) use census::Census;
pub use losses::Loss;
pub(crate) use losses::generation_at;
pub(crate) use readers::Readers;
pub(crate) use roster::Roster;
pub(crate) use sentinels::SentinelWatch;
pub use sentinels::{Access, Sentinels};

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
