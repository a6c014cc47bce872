//! The environment of the scenario `changing-world`: shards with sentinels, an old store in
//! memcached, and nodes, which are processes of `tollgate serve`. Changes of the nodes' policy
//! files move the subjects from memcached to the shards, and after that to a new shard map.

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
