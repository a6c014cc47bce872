//! The store of the documents that all nodes share, such as the overrides and the tenants: a shard
//! in Redis, a Redis Cluster, or a memcached server.

use std::time::Duration;

use tollgate::model::{CasOutcome, SharedBlob, StoreError, Subject};
use tollgate::overrides::TableVersion;
use tollgate_memcached::Memcached;
use tollgate_redis::{RedisCluster, RedisShard};

use crate::backend::Backend;
use crate::shards::RedisServers;

/// The store of the documents that all nodes share, such as the overrides and the tenants.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BlobStore<'s> {
    Shard(&'s RedisShard),
    Cluster(&'s RedisCluster),
    Memcached(&'s Memcached),
}

impl<'s> BlobStore<'s> {
    /// Returns the server or cluster of `store` that keeps the documents. The hash of the empty
    /// subject selects the server, so every node selects the same server. In a rollout, the
    /// documents are in the new store, or in the old store if the new store is in memory. Returns
    /// `None` if no nodes share the store.
    pub(crate) fn of(store: &'s Backend) -> Option<Self> {
        let nobody = Subject::default();
        match store {
            Backend::Memory(_) => None,
            Backend::Redis(redis) => Some(match redis.shards().servers_of(&nobody) {
                RedisServers::Shard(shard) => Self::Shard(shard),
                RedisServers::Cluster(cluster) => Self::Cluster(cluster),
            }),
            Backend::Memcached(memcached) => Some(Self::Memcached(memcached.server_of(&nobody))),
            Backend::Rollout(moving) => Self::of(moving.to()).or_else(|| Self::of(moving.from())),
            Backend::Shadow(compared) => Self::of(compared.store()),
        }
    }

    /// Returns the version of the document called `name`. Returns an empty version if no document
    /// has this name.
    pub(crate) async fn version(self, name: &str) -> Result<Vec<u8>, StoreError> {
        match self {
            Self::Shard(shard) => shard.shared_blob_version(name).await,
            Self::Cluster(cluster) => cluster.shared_blob_version(name).await,
            // memcached can read an item only as a whole.
            Self::Memcached(server) => Ok(server.shared_blob(name).await?.version),
        }
    }

    /// Returns the document called `name`. Returns an empty document if no document has this name.
    pub(crate) async fn shared_blob(self, name: &str) -> Result<SharedBlob, StoreError> {
        match self {
            Self::Shard(shard) => shard.shared_blob(name).await,
            Self::Cluster(cluster) => cluster.shared_blob(name).await,
            Self::Memcached(server) => Ok(server.shared_blob(name).await?),
        }
    }

    /// Replaces the document called `name` by `document`, if the stored version is `before`. The
    /// new document expires after `lasting`. If the stored version is not `before`, nothing is
    /// changed, and the result is `CasOutcome::Stale`.
    pub(crate) async fn replace(
        self,
        name: &str,
        before: &[u8],
        document: &SharedBlob,
        lasting: Duration,
    ) -> Result<CasOutcome, StoreError> {
        match self {
            Self::Shard(shard) => shard.replace_shared_blob(name, before, document, lasting).await,
            Self::Cluster(cluster) => {
                cluster.replace_shared_blob(name, before, document, lasting).await
            }
            Self::Memcached(server) => {
                Ok(server.replace_shared_blob(name, before, document, lasting).await?)
            }
        }
    }
}

/// Returns the bytes by which the store represents `version`.
pub(crate) fn encoded(version: TableVersion) -> Vec<u8> {
    [version.changes.to_be_bytes(), version.drawn.to_be_bytes()].concat()
}

/// Returns whether `version`, the version of a document in the store, differs from `held`, the
/// version that this node has, and is not older. If two nodes made different changes to the same
/// version, the version in the store counts as newer.
pub(crate) fn is_newer(version: &[u8], held: TableVersion) -> bool {
    version != encoded(held) && changes(version) >= held.changes.max(1)
}

/// Returns the number of changes after which a document has this version. Returns 0 for an invalid
/// version.
fn changes(version: &[u8]) -> u64 {
    match version.split_first_chunk() {
        Some((changes, drawn)) if drawn.len() == 8 => u64::from_be_bytes(*changes),
        _ => 0,
    }
}
