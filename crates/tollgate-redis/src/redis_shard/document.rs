//! Documents that nodes share, at the primary.

use std::time::Duration;

use tollgate_core::{Document, Replaced, StoreError};

use super::RedisShard;
use crate::document::DocumentKeys;

impl RedisShard {
    /// The version of the document of this name; empty where there is none.
    ///
    /// # Errors
    /// [`StoreError`] if the primary did not say within
    /// [`DOCUMENT_DEADLINE`](tollgate_core::DOCUMENT_DEADLINE).
    pub async fn document_version(&self, name: &str) -> Result<Vec<u8>, StoreError> {
        DocumentKeys::of(name).version(self.shard.primary().link()).await
    }

    /// The document of this name, an empty one where there is none.
    ///
    /// # Errors
    /// As [`document_version`](Self::document_version).
    pub async fn document(&self, name: &str) -> Result<Document, StoreError> {
        DocumentKeys::of(name).read(self.shard.primary().link()).await
    }

    /// Puts `document` in the place of the one of version `before`, in one atomic step. The server
    /// forgets it after `lasting`.
    ///
    /// # Errors
    /// As [`document_version`](Self::document_version); whether it was replaced is not known then.
    pub async fn replace_document(
        &self,
        name: &str,
        before: &[u8],
        document: &Document,
        lasting: Duration,
    ) -> Result<Replaced, StoreError> {
        let link = self.shard.primary().link();
        DocumentKeys::of(name).replace(link, before, document, lasting).await
    }
}
