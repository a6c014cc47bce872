//! Documents that nodes share, at the primary that keeps their slot.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tollgate_core::{DOCUMENT_DEADLINE, Document, Replaced, StoreError};

use super::{Group, RedisCluster, Slot};
use crate::document::DocumentKeys;

impl RedisCluster {
    /// As [`RedisShard::document_version`](crate::RedisShard::document_version).
    ///
    /// # Errors
    /// As of a shard; also while the slot is on its way to another node.
    pub async fn document_version(&self, name: &str) -> Result<Vec<u8>, StoreError> {
        let keys = DocumentKeys::of(name);
        keys.version(self.keeper(&keys).await?.primary().link()).await
    }

    /// As [`RedisShard::document`](crate::RedisShard::document).
    ///
    /// # Errors
    /// As [`document_version`](Self::document_version).
    pub async fn document(&self, name: &str) -> Result<Document, StoreError> {
        let keys = DocumentKeys::of(name);
        keys.read(self.keeper(&keys).await?.primary().link()).await
    }

    /// As [`RedisShard::replace_document`](crate::RedisShard::replace_document).
    ///
    /// # Errors
    /// As [`document_version`](Self::document_version).
    pub async fn replace_document(
        &self,
        name: &str,
        before: &[u8],
        document: &Document,
        lasting: Duration,
    ) -> Result<Replaced, StoreError> {
        let keys = DocumentKeys::of(name);
        let keeper = self.keeper(&keys).await?;
        keys.replace(keeper.primary().link(), before, document, lasting).await
    }

    async fn keeper(&self, keys: &DocumentKeys) -> Result<Arc<Group>, StoreError> {
        let map = self.known.map(Instant::now() + DOCUMENT_DEADLINE).await;
        let owner = map.as_ref().and_then(|map| map.owner(Slot::of(keys.version.as_bytes())));
        owner.cloned().ok_or(StoreError::Unavailable)
    }
}
