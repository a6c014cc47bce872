//! Tenants in the store. All nodes share the tenants, and the tenants outlive each node.

mod index;
mod partitions;

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::mem::discriminant;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::{AbortHandle, spawn_blocking};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tollgate::Limiter;
use tollgate::model::{CasOutcome, SharedBlob, StoreError, Timestamp};
use tollgate::tenants::{
    NextPartitions, PARTITIONS, PartitionError, TenantBatch, TenantStorage, TenantStore,
    TenantStoreError, Tenants, TenantsChanged,
};

use self::index::Index;
use crate::backend::Backend;
use crate::blob_store::{BlobStore, encoded, is_newer};

/// The time between two checks whether other nodes changed tenants.
pub const TENANTS_PERIOD: Duration = Duration::from_millis(500);

/// The age at which a node writes a document of tenants again, so the store does not delete the
/// document.
pub const TENANTS_RENEWAL: Duration = Duration::from_secs(7 * 24 * 3_600);

/// The name of the document with the versions of all other documents.
const INDEX: &str = "tenants";

/// The most attempts to store a change while other nodes store changes too.
const ATTEMPTS: usize = 8;

/// The most documents that a node reads or writes concurrently.
const AT_ONCE: usize = 16;

/// The tenants of a limiter, stored in the same store as its limits.
///
/// The tenants are in [`PARTITIONS`] documents, called partitions. An index contains the version of
/// each document. A hash of a tenant's name selects its document. A change replaces the documents
/// of its tenants one by one, and then the index. Every node checks the index twice a second and
/// reads the documents that changed. Each check also compares one document, a different one each
/// time, with the node's own rows. If the store lost the document, the node writes it again. If the
/// document is newer than the index states, because a change failed before it replaced the index,
/// the node reads the document. While limits move to another shard map (`previous` in the policy
/// file) or in a rollout, the documents move too, and nodes from before and from after the move
/// share them. With a memory store, the tenants belong to this process.
#[derive(Debug)]
pub struct TenantSync {
    shared: Arc<Shared>,
    watch: Option<AbortHandle>,
}

impl TenantSync {
    /// Starts the synchronization of the tenants of `limiter`. If other nodes share the limiter's
    /// store, starts a task that reads the tenants periodically, which needs a tokio runtime.
    #[must_use]
    pub fn start(limiter: Arc<Limiter<Backend>>) -> Self {
        let shared = Arc::new(Shared {
            limiter,
            state: Mutex::default(),
            is_loaded: AtomicBool::new(false),
            sweep: AtomicUsize::new(0),
            turn: tokio::sync::Mutex::default(),
        });
        let is_shared = shared.blob_store().is_some();
        let watch = Handle::try_current()
            .ok()
            .filter(|_| is_shared)
            .map(|runtime| runtime.spawn(Arc::clone(&shared).watch()).abort_handle());
        Self { shared, watch }
    }

    /// Waits for at most `within` until all tenants are read. Returns true if all tenants are read
    /// or the policy has no tenants.
    pub async fn loaded(&self, within: Duration) -> bool {
        let all = async {
            // If a place of a move does not answer, the tenants of the other place are read.
            while self.refresh().await.is_err() && !self.shared.is_loaded.load(Ordering::Relaxed) {
                tokio::time::sleep(TENANTS_PERIOD).await;
            }
        };
        timeout(within, all).await.is_ok()
    }

    /// Checks at once whether other nodes changed tenants, and restores lost documents.
    ///
    /// # Errors
    /// The text of the error if the store did not answer. The tenants that were last read stay in
    /// force.
    pub async fn refresh(&self) -> Result<(), String> {
        self.shared.refresh().await.map_err(|error| error.to_string())
    }
}

impl Drop for TenantSync {
    fn drop(&mut self) {
        if let Some(watch) = &self.watch {
            watch.abort();
        }
    }
}

impl TenantStore for TenantSync {
    fn apply(
        &self,
        now: Timestamp,
        batch: TenantBatch,
    ) -> Pin<Box<dyn Future<Output = Result<TenantsChanged, TenantStoreError>> + Send + '_>> {
        if self.shared.blob_store().is_none() {
            return Box::pin(async move { self.shared.tenants().apply(now, batch).await });
        }
        // The task continues if its caller disconnects, so the index is always updated after the
        // documents.
        let shared = Arc::clone(&self.shared);
        let batch = Arc::new(batch);
        let task = tokio::spawn(async move { shared.apply(now, &batch).await });
        Box::pin(async move { task.await.unwrap_or(Err(unavailable(0, 1))) })
    }

    fn storage(&self) -> TenantStorage {
        if self.shared.blob_store().is_none() {
            return TenantStorage::InProcess;
        }
        let failure = self.shared.state.lock().failure;
        let unread = failure.filter(|one| !matches!(one, SyncError::Write(_)));
        let failure = unread.map(|error| error.to_string());
        TenantStorage::InStore { is_loaded: self.shared.is_loaded.load(Ordering::Relaxed), failure }
    }
}

const fn unavailable(stored: usize, parts: usize) -> TenantStoreError {
    TenantStoreError::Store { error: StoreError::Unavailable, stored, parts }
}

#[derive(Debug)]
struct Shared {
    limiter: Arc<Limiter<Backend>>,
    state: Mutex<State>,
    is_loaded: AtomicBool,
    /// The index of the partition that the next check compares with the document in the store.
    sweep: AtomicUsize,
    /// The lock for reads and changes of tenants. The lock prevents an older read from replacing a
    /// newer change.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    /// The error of the last check. `None` if the check succeeded.
    failure: Option<SyncError>,
    /// The encoded version of an index: the last one of which this node has read all partitions.
    index: Vec<u8>,
    /// The partitions that the index may lack. The node adds them to the index at the next check.
    unlisted: BTreeSet<usize>,
    /// The partitions that some places of the documents may lack, while the documents move.
    uncopied: BTreeSet<usize>,
}

/// The reason why a check failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SyncError {
    Store(StoreError),
    Partition(PartitionError),
    /// The changes of other nodes were read, but a document could not be compared with all its
    /// places or written to them.
    Write(StoreError),
}

impl fmt::Display for SyncError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) | Self::Write(error) => error.fmt(f),
            Self::Partition(error) => error.fmt(f),
        }
    }
}

impl From<StoreError> for SyncError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl SyncError {
    /// Returns the error of a step after all changes of other nodes were read.
    const fn after_read(self) -> Self {
        match self {
            Self::Store(error) => Self::Write(error),
            other => other,
        }
    }

    /// Returns the error of a batch with `parts` changed partitions, of which only `stored`
    /// partitions were stored.
    const fn refusal(self, stored: usize, parts: usize) -> TenantStoreError {
        match self {
            Self::Store(error) | Self::Write(error) => {
                TenantStoreError::Store { error, stored, parts }
            }
            Self::Partition(error) => TenantStoreError::Partition(error),
        }
    }
}

impl Shared {
    fn tenants(&self) -> &Arc<Tenants> {
        self.limiter.tenants()
    }

    /// Returns the store of the documents with the tenants, or `None` if only this process has the
    /// tenants.
    fn blob_store(&self) -> Option<BlobStore<'_>> {
        BlobStore::of(self.limiter.store())
    }

    async fn watch(self: Arc<Self>) {
        let mut ticks = interval(TENANTS_PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            // The error is already recorded in the status.
            let _ = self.refresh().await;
        }
    }

    async fn refresh(&self) -> Result<(), SyncError> {
        let Some(blob_store) = self.blob_store() else { return Ok(()) };
        // Nothing is read for policies without tenants.
        if self.limiter.policy().tenant_dimension().is_none() {
            return Ok(());
        }
        let _turn = self.turn.lock().await;
        let mut outcome = self.follow(&blob_store).await;
        if outcome.is_ok() {
            self.is_loaded.store(true, Ordering::Relaxed);
            outcome = self.maintain(&blob_store).await.map_err(SyncError::after_read);
        }
        let failure = outcome.err();
        let before = std::mem::replace(&mut self.state.lock().failure, failure);
        let is_unchanged = before.as_ref().map(discriminant) == failure.as_ref().map(discriminant);
        // Every check runs this code, but only a change of the state is logged.
        match failure {
            _ if is_unchanged => {}
            Some(SyncError::Write(error)) => tracing::warn!(
                "{error}: the tenants are read, but cannot be written to every place that keeps \
                 them"
            ),
            Some(error) if self.is_loaded.load(Ordering::Relaxed) => {
                tracing::warn!("{error}: the last tenants that were read stay in force");
            }
            Some(error) => {
                tracing::warn!("{error}: no tenants are read yet, so all have the default quotas");
            }
            None => tracing::info!("the tenants are read and written again"),
        }
        outcome
    }

    /// Compares one partition with the store, and writes what the index and places of the documents
    /// lack.
    async fn maintain(&self, blob_store: &BlobStore<'_>) -> Result<(), SyncError> {
        self.sweep(blob_store).await?;
        self.list(blob_store).await?;
        self.copy(blob_store).await
    }

    /// Reads the partitions that changed since the last index, and restores partitions that the
    /// store lost.
    async fn follow(&self, blob_store: &BlobStore<'_>) -> Result<(), SyncError> {
        let version = blob_store.version(INDEX).await?;
        if version == self.state.lock().index {
            return Ok(());
        }
        let document = blob_store.shared_blob(INDEX).await?;
        let index = Index::from_bytes(&document.bytes);
        let index = index.ok_or(SyncError::Partition(PartitionError::Garbled))?;
        let is_behind = |partition: &usize| {
            let listed = index.0.get(partition).copied().unwrap_or_default();
            listed != self.held(*partition)
        };
        let behind: Vec<usize> = (0..PARTITIONS).filter(is_behind).collect();
        for part in behind.chunks(AT_ONCE) {
            self.compare(blob_store, part).await?;
        }
        let listed = |partition: &usize| index.0.get(partition).copied().unwrap_or_default();
        let mut state = self.state.lock();
        // The index does not contain such a partition yet.
        let is_unlisted = |partition: &&usize| {
            let (held, listed) = (self.held(**partition), listed(partition));
            held != listed && held.changes >= listed.changes
        };
        state.unlisted.extend(behind.iter().filter(is_unlisted));
        if blob_store.is_moving() {
            state.uncopied.extend(&behind);
            // The place with the listed version did not answer, and the next check reads it again.
            if behind.iter().any(|one| self.held(*one).changes < listed(one).changes) {
                return Ok(());
            }
        }
        state.index = document.version;
        Ok(())
    }

    /// Compares the next partition with the document in the store, and writes a partition that must
    /// be renewed.
    async fn sweep(&self, blob_store: &BlobStore<'_>) -> Result<(), SyncError> {
        let partition = self.sweep.fetch_add(1, Ordering::Relaxed) % PARTITIONS;
        self.compare(blob_store, &[partition]).await?;
        if blob_store.is_moving() {
            self.state.lock().uncopied.insert(partition);
        }
        let Some(held) = self.tenants().partition(partition) else { return Ok(()) };
        let now = self.limiter.now().as_secs_ceil();
        if now.saturating_sub(held.written_at()) > TENANTS_RENEWAL.as_secs() {
            let batch = TenantBatch::default();
            // Another node renewed the document first.
            if let Ok(updated) = Tenants::next_partition(Some(&held), partition, &batch, now)
                && self.put(blob_store, partition, &encoded(held.version()), &updated).await?
                    == CasOutcome::Stored
            {
                self.install(partition, updated);
            }
        }
        Ok(())
    }

    /// Adds the partitions that the index lacks to the index.
    async fn list(&self, blob_store: &BlobStore<'_>) -> Result<(), SyncError> {
        let unlisted = self.state.lock().unlisted.clone();
        if unlisted.is_empty() {
            return Ok(());
        }
        for _ in 0..ATTEMPTS {
            let document = blob_store.shared_blob(INDEX).await?;
            let mut index = Index::from_bytes(&document.bytes).unwrap_or_default();
            for partition in &unlisted {
                let held = self.held(*partition);
                let listed = index.0.entry(*partition).or_default();
                if held.changes >= listed.changes {
                    *listed = held;
                }
            }
            let before = index::version_of(&document.version).unwrap_or_default();
            let version = partitions::following(before);
            let next = SharedBlob { version: encoded(version), bytes: index.to_bytes() };
            let put = blob_store.replace(INDEX, &document.version, &next).await?;
            if put == CasOutcome::Stored {
                let mut state = self.state.lock();
                state.unlisted.retain(|partition| !unlisted.contains(partition));
                // If this node has read all partitions of the previous index, the node has also
                // read all partitions of this index.
                if state.index == document.version {
                    state.index = next.version;
                }
                return Ok(());
            }
        }
        // The next check tries again.
        Ok(())
    }

    /// Copies the partitions that places may lack to these places, and then the index.
    async fn copy(&self, blob_store: &BlobStore<'_>) -> Result<(), SyncError> {
        let uncopied: Vec<_> = self.state.lock().uncopied.iter().copied().collect();
        for part in uncopied.chunks(AT_ONCE) {
            partitions::copy(blob_store, part).await?;
            self.state.lock().uncopied.retain(|partition| !part.contains(partition));
        }
        Ok(blob_store.copy(INDEX).await?)
    }

    /// Returns the next version of every partition that `batch` changes. A batch of a million rows
    /// takes about a second of processor time, so a large batch does not run on the threads of the
    /// runtime's tasks.
    async fn next(
        &self,
        batch: &Arc<TenantBatch>,
        now: Timestamp,
    ) -> Result<NextPartitions, TenantStoreError> {
        let (tenants, batch) = (Arc::clone(self.tenants()), Arc::clone(batch));
        let seconds = now.as_secs_ceil();
        let updated = spawn_blocking(move || tenants.next(&batch, seconds)).await;
        updated.unwrap_or(Err(unavailable(0, 1)))
    }

    async fn apply(
        &self,
        now: Timestamp,
        batch: &Arc<TenantBatch>,
    ) -> Result<TenantsChanged, TenantStoreError> {
        let blob_store = self.blob_store().ok_or(unavailable(0, 1))?;
        let _turn = self.turn.lock().await;
        self.follow(&blob_store).await.map_err(|error| error.refusal(0, 1))?;
        self.is_loaded.store(true, Ordering::Relaxed);
        let before = self.tenants().len();
        let next = self.next(batch, now).await?;
        let (parts, mut stored) = (next.len(), 0);
        let mut outcome = Ok(());
        for part in next.chunks(AT_ONCE) {
            let written = self.write(&blob_store, part, batch, now).await;
            let done = written.iter().filter(|one| one.is_ok()).count();
            stored += done;
            outcome = written.into_iter().find_map(Result::err).map_or(Ok(()), Err);
            if outcome.is_err() {
                break;
            }
        }
        // Without the index, other nodes find a changed partition too, but later.
        let listed = self.list(&blob_store).await;
        match outcome {
            Ok(()) => listed.map_err(|error| error.refusal(stored, parts))?,
            Err(TenantStoreError::Store { error, .. }) => {
                return Err(TenantStoreError::Store { error, stored, parts });
            }
            Err(other) => return Err(other),
        }
        Ok(TenantsChanged { before, after: self.tenants().len() })
    }
}
