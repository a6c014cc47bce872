//! Reads and writes single partitions, the documents over which the tenants are distributed.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use futures_util::future::join_all;
use tollgate::model::{CasOutcome, SharedBlob, StoreError, Timestamp};
use tollgate::overrides::TableVersion;
use tollgate::tenants::{TenantBatch, TenantPartition, TenantStoreError, Tenants};

use super::index::version_of;
use super::{ATTEMPTS, Shared, SyncError, encoded, is_newer};
use crate::blob_store::BlobStore;

/// Returns the name of the document of a partition.
fn name(partition: usize) -> String {
    format!("tenants.{partition}")
}

/// Returns a new version that follows the version `before`.
pub(super) fn following(before: TableVersion) -> TableVersion {
    let drawn = RandomState::new().hash_one(before.drawn);
    TableVersion { changes: before.changes.saturating_add(1), drawn }
}

/// Copies the newest documents of `partitions` to the places that lack them.
pub(super) async fn copy(
    blob_store: &BlobStore<'_>,
    partitions: &[usize],
) -> Result<(), StoreError> {
    let each = partitions.iter().map(async |partition| blob_store.copy(&name(*partition)).await);
    join_all(each).await.into_iter().collect()
}

impl Shared {
    /// Returns the version of this node's rows of a partition.
    pub(super) fn held(&self, partition: usize) -> TableVersion {
        self.tenants().partition(partition).map(|held| held.version()).unwrap_or_default()
    }

    pub(super) fn install(&self, partition: usize, updated: Arc<TenantPartition>) {
        self.tenants().install(partition, updated);
        self.state.lock().unlisted.insert(partition);
    }

    /// Reads the documents of `partitions` that are newer in the store. Restores the documents that
    /// the store lost or has in an older version.
    pub(super) async fn compare(
        &self,
        blob_store: &BlobStore<'_>,
        partitions: &[usize],
    ) -> Result<(), SyncError> {
        let each = partitions.iter().map(|partition| self.compare_one(blob_store, *partition));
        join_all(each).await.into_iter().collect()
    }

    async fn compare_one(
        &self,
        blob_store: &BlobStore<'_>,
        partition: usize,
    ) -> Result<(), SyncError> {
        let version = blob_store.version(&name(partition)).await?;
        let held = self.held(partition);
        if is_newer(&version, held) {
            return self.read(blob_store, partition).await;
        }
        if version != encoded(held)
            && let Some(rows) = self.tenants().partition(partition)
        {
            // If this write fails, another node was the first to write the same document or a newer
            // document.
            let put = self.put(blob_store, partition, &version, &rows).await;
            if put.map_err(SyncError::Write)? == CasOutcome::Stored {
                tracing::info!(partition, "restored tenants that the store had lost");
            }
        }
        Ok(())
    }

    async fn read(&self, blob_store: &BlobStore<'_>, partition: usize) -> Result<(), SyncError> {
        let document = blob_store.shared_blob(&name(partition)).await?;
        let Some(version) = version_of(&document.version) else { return Ok(()) };
        // The document may have expired between the two reads, or the place with the newer version
        // did not answer the second one.
        if !is_newer(&document.version, self.held(partition)) {
            return Ok(());
        }
        let rows = TenantPartition::from_bytes(version, document.bytes);
        let rows = rows.map_err(SyncError::Partition)?;
        self.tenants().install(partition, Arc::new(rows));
        Ok(())
    }

    pub(super) async fn put(
        &self,
        blob_store: &BlobStore<'_>,
        partition: usize,
        before: &[u8],
        rows: &TenantPartition,
    ) -> Result<CasOutcome, StoreError> {
        let document =
            SharedBlob { version: encoded(rows.version()), bytes: rows.as_bytes().to_vec() };
        blob_store.replace(&name(partition), before, &document).await
    }

    /// Writes `next`, the next versions of some partitions, to the store. Returns one result for
    /// each partition, in the same order. The partitions that were stored are in force on this node
    /// at once.
    pub(super) async fn write(
        &self,
        blob_store: &BlobStore<'_>,
        next: &[(usize, Arc<TenantPartition>)],
        batch: &TenantBatch,
        now: Timestamp,
    ) -> Vec<Result<(), TenantStoreError>> {
        let each = next.iter().map(|(partition, updated)| {
            self.write_one(blob_store, (*partition, updated), batch, now)
        });
        join_all(each).await
    }

    async fn write_one(
        &self,
        blob_store: &BlobStore<'_>,
        (partition, updated): (usize, &Arc<TenantPartition>),
        batch: &TenantBatch,
        now: Timestamp,
    ) -> Result<(), TenantStoreError> {
        let refused = |error: SyncError| error.refusal(0, 1);
        let mut updated = Arc::clone(updated);
        let mut before = match self.held(partition) {
            held if held == TableVersion::default() => Vec::new(),
            held => encoded(held),
        };
        for _ in 0..ATTEMPTS {
            let put = self.put(blob_store, partition, &before, &updated).await;
            if put.map_err(|error| refused(error.into()))? == CasOutcome::Stored {
                self.install(partition, updated);
                return Ok(());
            }
            // Another node changed the document first, or the store lost the document. A lost
            // document is replaced.
            before = blob_store
                .version(&name(partition))
                .await
                .map_err(|error| refused(error.into()))?;
            if is_newer(&before, self.held(partition)) {
                self.read(blob_store, partition).await.map_err(refused)?;
                before = encoded(self.held(partition));
            }
            let held = self.tenants().partition(partition);
            updated =
                Tenants::next_partition(held.as_deref(), partition, batch, now.as_secs_ceil())?;
        }
        Err(TenantStoreError::Contended)
    }
}
