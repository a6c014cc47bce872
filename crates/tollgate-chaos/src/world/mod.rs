//! A changing world: shards with sentinels, an old store in memcached, and nodes (processes of
//! `tollgate serve`) with policy files that move from one to the other, and from one shard map to
//! the next.

mod client;
mod files;
mod fleet;
mod node;
mod sentinels;
mod serving;

pub(super) use files::Files;
pub(super) use fleet::WorldFleet;
pub(super) use node::WorldNode;
pub(super) use sentinels::{MonitoredPair, Sentinels};
