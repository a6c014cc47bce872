//! Documents that nodes share, at the primary.

use std::time::Duration;

use tollgate_core::{CasOutcome, SharedBlob, StoreError};

use super::RedisShard;
use crate::shared_blob::BlobKeys;

impl RedisShard {
    /// The version of the document of this name; empty where there is none.
    ///
    /// # Errors
    /// [`StoreError`] if the primary did not say within
    /// [`BLOB_DEADLINE`](tollgate_core::BLOB_DEADLINE).
    pub async fn shared_blob_version(&self, name: &str) -> Result<Vec<u8>, StoreError> {
        BlobKeys::of(name).version(self.shard.primary().link()).await
    }

    /// The document of this name, an empty one where there is none.
    ///
    /// # Errors
    /// As [`shared_blob_version`](Self::shared_blob_version).
    pub async fn shared_blob(&self, name: &str) -> Result<SharedBlob, StoreError> {
        BlobKeys::of(name).read(self.shard.primary().link()).await
    }

    /// Puts `document` in the place of the one of version `before`, in one atomic step. The server
    /// forgets it after `lasting`.
    ///
    /// # Errors
    /// As [`shared_blob_version`](Self::shared_blob_version); whether it was replaced is not known then.
    pub async fn replace_shared_blob(
        &self,
        name: &str,
        before: &[u8],
        document: &SharedBlob,
        lasting: Duration,
    ) -> Result<CasOutcome, StoreError> {
        let link = self.shard.primary().link();
        BlobKeys::of(name).replace(link, before, document, lasting).await
    }
}
