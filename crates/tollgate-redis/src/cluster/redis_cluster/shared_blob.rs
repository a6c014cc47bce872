//! Documents that all Tollgate nodes share, such as the table of overrides. Each document is stored
//! on the primary that owns the slot of the document's keys.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tollgate_core::{BLOB_DEADLINE, CasOutcome, SharedBlob, StoreError};

use super::{Group, RedisCluster, Slot};
use crate::shared_blob::BlobKeys;

impl RedisCluster {
    /// Returns the version of a document, like
    /// [`RedisShard::shared_blob_version`](crate::RedisShard::shared_blob_version).
    ///
    /// # Errors
    /// The errors of [`RedisShard::shared_blob_version`](crate::RedisShard::shared_blob_version).
    /// An error is also returned while the slot is being moved to another node.
    pub async fn shared_blob_version(&self, name: &str) -> Result<Vec<u8>, StoreError> {
        let keys = BlobKeys::of(name);
        keys.version(self.document_owner(&keys).await?.primary().link()).await
    }

    /// Returns a document with its version, like
    /// [`RedisShard::shared_blob`](crate::RedisShard::shared_blob).
    ///
    /// # Errors
    /// The same as [`shared_blob_version`](Self::shared_blob_version).
    pub async fn shared_blob(&self, name: &str) -> Result<SharedBlob, StoreError> {
        let keys = BlobKeys::of(name);
        keys.read(self.document_owner(&keys).await?.primary().link()).await
    }

    /// Replaces a document, like
    /// [`RedisShard::replace_shared_blob`](crate::RedisShard::replace_shared_blob).
    ///
    /// # Errors
    /// The same as [`shared_blob_version`](Self::shared_blob_version).
    pub async fn replace_shared_blob(
        &self,
        name: &str,
        before: &[u8],
        document: &SharedBlob,
        lasting: Duration,
    ) -> Result<CasOutcome, StoreError> {
        let keys = BlobKeys::of(name);
        let document_owner = self.document_owner(&keys).await?;
        keys.replace(document_owner.primary().link(), before, document, lasting).await
    }

    async fn document_owner(&self, keys: &BlobKeys) -> Result<Arc<Group>, StoreError> {
        let map = self.known.map(Instant::now() + BLOB_DEADLINE).await;
        let owner = map.as_ref().and_then(|map| map.owner(Slot::of(keys.version.as_bytes())));
        owner.cloned().ok_or(StoreError::Unavailable)
    }
}
