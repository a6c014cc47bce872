//! Documents that all Tollgate nodes share, such as the table of overrides. The primary stores
//! these documents.

use std::time::Duration;

use tollgate_core::{CasOutcome, SharedBlob, StoreError};

use super::RedisShard;
use crate::shared_blob::BlobKeys;

impl RedisShard {
    /// Returns the version of the document called `name`. Returns an empty version if no document
    /// has this name.
    ///
    /// # Errors
    /// [`StoreError`] if the primary did not answer within
    /// [`BLOB_DEADLINE`](tollgate_core::BLOB_DEADLINE).
    pub async fn shared_blob_version(&self, name: &str) -> Result<Vec<u8>, StoreError> {
        BlobKeys::of(name).version(self.shard.primary().link()).await
    }

    /// Returns the document called `name`. Returns an empty document if no document has this name.
    ///
    /// # Errors
    /// The same as [`shared_blob_version`](Self::shared_blob_version).
    pub async fn shared_blob(&self, name: &str) -> Result<SharedBlob, StoreError> {
        BlobKeys::of(name).read(self.shard.primary().link()).await
    }

    /// Replaces the document called `name` by `document`, if the stored version is `before`. The
    /// comparison and the replacement are one atomic step. The new document expires after
    /// `lasting`. If the stored version is not `before`, nothing is changed, and
    /// [`CasOutcome::Stale`] is returned.
    ///
    /// # Errors
    /// The same as [`shared_blob_version`](Self::shared_blob_version). After an error, it is
    /// unknown whether the document was replaced.
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
