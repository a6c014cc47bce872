//! A changing world: shards with sentinels, an old store in memcached, and nodes, which are
//! processes of `tollgate serve`. The nodes' policy files change, and move the subjects from
//! memcached to the shards, and then to a new shard map.

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
