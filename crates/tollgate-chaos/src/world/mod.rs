//! A world that changes: shards under sentinels, an old store in memcached, and nodes (processes of
//! `tollgate serve`) whose policy files move from one to the other, and from one map of shards to the
//! next.

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
