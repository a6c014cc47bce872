//! The stores that contain limits.

use tollgate::model::Timestamp;
use tollgate::store::Memory;

use crate::memcached_backend::MemcachedBackend;
use crate::redis_backend::RedisBackend;
use crate::status::ShardStatus;

/// A store that contains limits itself, in this process or on servers: the whole of a backend, or
/// one of its two stores.
#[derive(Clone, Copy, Debug)]
pub enum BaseStore<'b> {
    /// The memory of this process.
    Memory(&'b Memory),
    /// Redis or Valkey.
    Redis(&'b RedisBackend),
    /// memcached.
    Memcached(&'b MemcachedBackend),
}

impl BaseStore<'_> {
    /// Returns the status of the Redis shards, in the order of the settings.
    #[must_use]
    pub fn shards(&self) -> Vec<ShardStatus> {
        match self {
            Self::Memory(_) | Self::Memcached(_) => Vec::new(),
            Self::Redis(fleet) => fleet.status(),
        }
    }

    /// Checks that the store's clock and this node's clock agree as closely as the limits require.
    /// A memory store has no clock of its own.
    ///
    /// # Errors
    /// The difference, and what to do about it.
    pub fn check_clock(&self) -> Result<(), String> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Redis(fleet) => fleet.check_clock(),
            Self::Memcached(fleet) => fleet.check_clock(),
        }
    }

    /// Refunds the unused units of this node's quota leases. Called before the process ends.
    pub(crate) async fn refund_leases(&self, now: Timestamp) {
        match self {
            // No other node shares a memory store.
            Self::Memory(_) => {}
            Self::Redis(fleet) => fleet.refund_leases(now).await,
            Self::Memcached(fleet) => fleet.refund_leases(now).await,
        }
    }
}
