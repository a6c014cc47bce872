//! Where limits are kept in the end.

use tollgate::core::Timestamp;
use tollgate::store::Memory;

use crate::memcached_backend::MemcachedBackend;
use crate::redis_backend::RedisBackend;
use crate::status::ShardStatus;

/// A store with nothing behind it but this process or servers: the whole of a backend, or one of
/// two at once.
#[derive(Clone, Copy, Debug)]
pub enum BaseStore<'b> {
    /// In this process.
    Memory(&'b Memory),
    /// In Redis or Valkey.
    Redis(&'b RedisBackend),
    /// In memcached.
    Memcached(&'b MemcachedBackend),
}

impl BaseStore<'_> {
    /// How the shards stand, in the order of the settings: those in Redis.
    #[must_use]
    pub fn shards(&self) -> Vec<ShardStatus> {
        match self {
            Self::Memory(_) | Self::Memcached(_) => Vec::new(),
            Self::Redis(fleet) => fleet.status(),
        }
    }

    /// Gives back what this node took in advance and did not use: before the process ends.
    pub(crate) async fn refund_leases(&self, now: Timestamp) {
        match self {
            // Nobody else waits for it.
            Self::Memory(_) => {}
            Self::Redis(fleet) => fleet.refund_leases(now).await,
            Self::Memcached(fleet) => fleet.refund_leases(now).await,
        }
    }
}
