//! A world that changes: shards under sentinels, an old store in memcached, and nodes whose policy
//! files move from one to the other, and from one map of shards to the next.

mod files;
mod memcached;
mod node;
mod sentinels;

pub(super) use files::Files;
pub(super) use memcached::MemcachedServer;
pub(super) use node::WorldNode;
pub(super) use sentinels::{Sentinels, Watched};
