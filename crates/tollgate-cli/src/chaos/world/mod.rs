//! A world that changes: shards under sentinels, an old store in memcached, and nodes that move
//! from one to the other, and from one map of shards to the next.

mod memcached;
mod moving;
mod sentinels;
mod stores;

pub(super) use memcached::MemcachedServer;
pub(super) use sentinels::{Sentinels, Watched};
pub(super) use stores::{WorldStore, shard_of};
