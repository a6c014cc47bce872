//! Where limits are kept in the end.

use tollgate::core::Timestamp;
use tollgate::store::Memory;

use crate::memcached_fleet::MemcachedFleet;
use crate::redis_fleet::RedisFleet;
use crate::status::ShardStatus;

/// A store with nothing behind it but this process or servers: the whole of a backend, or one of
/// two at once.
#[derive(Clone, Copy, Debug)]
pub enum Leaf<'b> {
    /// In this process.
    Memory(&'b Memory),
    /// In Redis or Valkey.
    Redis(&'b RedisFleet),
    /// In memcached.
    Memcached(&'b MemcachedFleet),
}

impl Leaf<'_> {
    /// How the shards stand, in the order of the settings: those in Redis.
    #[must_use]
    pub fn shards(&self) -> Vec<ShardStatus> {
        match self {
            Self::Memory(_) | Self::Memcached(_) => Vec::new(),
            Self::Redis(fleet) => fleet.status(),
        }
    }

    /// Gives back what this node took in advance and did not use: before the process ends.
    pub(crate) async fn give_back_leases(&self, now: Timestamp) {
        match self {
            // Nobody else waits for it.
            Self::Memory(_) => {}
            Self::Redis(fleet) => fleet.give_back_leases(now).await,
            Self::Memcached(fleet) => fleet.give_back_leases(now).await,
        }
    }
}
