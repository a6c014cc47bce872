//! Overrides in the store. All nodes share the overrides, and the overrides outlive each node.

mod local;

use std::fmt;
use std::future::Future;
use std::mem::discriminant;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval};
use tollgate::Limiter;
use tollgate::model::{CasOutcome, Millis, SharedBlob, Store, StoreError, Timestamp};
use tollgate::overrides::{
    ChangeResult, NEVER, OverrideChange, OverrideStorage, OverrideStore, OverrideStoreError,
    OverrideTable, Overrides, TableError, TableVersion,
};

use self::local::LocalOverrides;
pub use self::local::MAX_LOCAL_OVERRIDES;
use crate::backend::Backend;
use crate::blob_store::{BlobStore, encoded, is_newer};

/// The time between two checks whether other nodes changed the overrides.
pub const OVERRIDES_PERIOD: Duration = Duration::from_millis(500);

/// The name of the document with the overrides.
const NAME: &str = "overrides";

/// The time after its last write at which a node writes the document again, if the document
/// contains an override without an end.
const RENEWAL: Millis = Millis::from_secs(7 * 24 * 3_600);

/// The most attempts to store a change while other nodes store changes too.
const ATTEMPTS: usize = 8;

/// The overrides of a limiter, stored in the same store as its limits.
///
/// In Redis, the overrides are one document on one shard, which a hash selects. In memcached, the
/// overrides are one item of at most 1 MiB on one server. Every node checks the version of the
/// document twice a second.
///
/// While the shard does not answer, nodes keep using the last overrides that they read. A change
/// that is made during this time is in force only on the node that made the change. This node
/// stores the change as soon as the shard answers, unless another node has changed the same target
/// by then. A node keeps at most [`MAX_LOCAL_OVERRIDES`] such changes.
///
/// If the shard loses the document in a failover, by a flush or by eviction, the first node that
/// detects the loss restores the document. While limits move to another shard map (`previous` in
/// the policy file) or in a rollout, the document moves too, and nodes from before and from after
/// the move share it. With a memory store, the overrides belong to this process.
///
/// The limiter's store is a [`Backend`], or a wrapper `S` around one.
#[derive(Debug)]
pub struct OverrideSync<S = Backend> {
    shared: Arc<Shared<S>>,
    watch: Option<AbortHandle>,
}

impl<S: Store + AsRef<Backend> + Send + Sync + 'static> OverrideSync<S> {
    /// Starts the synchronization of the overrides of `limiter`. If other nodes share the limiter's
    /// store, starts a task that reads the overrides periodically, which needs a tokio runtime.
    #[must_use]
    pub fn start(limiter: Arc<Limiter<S>>) -> Self {
        let shared = Arc::new(Shared {
            limiter,
            failure: Mutex::default(),
            local: Mutex::default(),
            renewed_at: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        });
        let is_shared = shared.blob_store().is_some();
        let watch = Handle::try_current()
            .ok()
            .filter(|_| is_shared)
            .map(|runtime| runtime.spawn(Arc::clone(&shared).watch()).abort_handle());
        Self { shared, watch }
    }

    /// Checks at once whether other nodes changed the overrides, and restores a lost document.
    ///
    /// # Errors
    /// [`StoreError`] if the store did not answer. The overrides that were last read stay in force.
    pub async fn refresh(&self) -> Result<(), StoreError> {
        self.shared.refresh().await.map_err(StoreError::from)
    }
}

impl<S> Drop for OverrideSync<S> {
    fn drop(&mut self) {
        if let Some(watch) = &self.watch {
            watch.abort();
        }
    }
}

impl<S> OverrideStore for OverrideSync<S>
where
    S: Store + AsRef<Backend> + fmt::Debug + Send + Sync + 'static,
{
    fn change(
        &self,
        now: Timestamp,
        change: OverrideChange,
    ) -> Pin<Box<dyn Future<Output = Result<ChangeResult, OverrideStoreError>> + Send + '_>> {
        if self.shared.blob_store().is_none() {
            return Box::pin(async move { self.shared.held().change(now, change).await });
        }
        Box::pin(async move { self.shared.change(now, &change).await })
    }

    fn table(&self) -> Arc<OverrideTable> {
        self.shared.held().table()
    }

    fn storage(&self) -> OverrideStorage {
        match self.shared.blob_store() {
            None => OverrideStorage::InProcess,
            Some(_) => {
                let failure = self.shared.failure.lock();
                let unread = failure.as_ref().filter(|one| !matches!(one, SyncError::Write(_)));
                OverrideStorage::InStore {
                    failure: unread.map(ToString::to_string),
                    pending: self.shared.local.lock().targets(),
                }
            }
        }
    }
}

#[derive(Debug)]
struct Shared<S> {
    limiter: Arc<Limiter<S>>,
    /// The error of the last check. `None` if the check succeeded.
    failure: Mutex<Option<SyncError>>,
    local: Mutex<LocalOverrides>,
    /// The time at which this node last wrote the document.
    renewed_at: Mutex<Timestamp>,
    /// The lock for reads and changes of overrides. The lock prevents an older read from replacing
    /// a newer change.
    turn: tokio::sync::Mutex<()>,
}

/// The reason why a check failed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum SyncError {
    /// The store did not answer, or refused the call.
    Store(StoreError),
    /// The document was written by another version of this program, or by another program.
    Table(TableError),
    /// The overrides were read, but could not be written to every place of the document.
    Write(StoreError),
}

impl fmt::Display for SyncError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) | Self::Write(error) => error.fmt(f),
            Self::Table(error) => error.fmt(f),
        }
    }
}

impl From<StoreError> for SyncError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<SyncError> for StoreError {
    fn from(unread: SyncError) -> Self {
        match unread {
            SyncError::Store(error) | SyncError::Write(error) => error,
            SyncError::Table(_) => Self::Corrupt,
        }
    }
}

impl<S: Store + AsRef<Backend> + Send + Sync + 'static> Shared<S> {
    fn held(&self) -> &Arc<Overrides> {
        self.limiter.overrides()
    }

    /// Returns the store of the document with the overrides, or `None` if only this process has the
    /// overrides.
    fn blob_store(&self) -> Option<BlobStore<'_>> {
        BlobStore::of(self.limiter.store().as_ref())
    }

    async fn watch(self: Arc<Self>) {
        let mut ticks = interval(OVERRIDES_PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            // The error is already recorded in the status.
            let _ = self.refresh().await;
        }
    }

    async fn refresh(&self) -> Result<(), SyncError> {
        let Some(blob_store) = self.blob_store() else { return Ok(()) };
        let _turn = self.turn.lock().await;
        let mut outcome = self.follow(&blob_store).await;
        if outcome.is_ok() {
            outcome = self.store_local(&blob_store).await;
        }
        if outcome.is_ok() {
            outcome = blob_store.copy(NAME).await.map_err(SyncError::Write);
        }
        let failure = outcome.as_ref().err().cloned();
        let before = std::mem::replace(&mut *self.failure.lock(), failure);
        let is_unchanged =
            before.as_ref().map(discriminant) == outcome.as_ref().err().map(discriminant);
        // Every check runs this code, but only a change of the state is logged.
        match &outcome {
            _ if is_unchanged => {}
            Err(SyncError::Write(error)) => tracing::warn!(
                "the overrides are read, but cannot be written to every place that keeps them: \
                 {error}"
            ),
            Err(error) => tracing::warn!(
                "cannot read the overrides, the last known ones stay in force: {error}"
            ),
            Ok(()) => tracing::info!("the overrides can be read and written again"),
        }
        outcome
    }

    /// Reads the document if the store has a newer version. Restores the document if the store lost
    /// it or has an older version.
    async fn follow(&self, blob_store: &BlobStore<'_>) -> Result<(), SyncError> {
        let held = self.local.lock().stored();
        let version = blob_store.version(NAME).await?;
        if is_newer(&version, held.version()) {
            return self.read(blob_store).await;
        }
        let is_lost =
            version != encoded(held.version()) && held.version() != TableVersion::default();
        let now = self.limiter.now();
        let is_old = now.since(*self.renewed_at.lock()) > RENEWAL;
        if !is_lost && is_old && held.expires_at() == NEVER {
            self.put(blob_store, &version, &held).await.map_err(SyncError::Write)?;
        }
        // Without this write, nodes that start would use an older document, of this place or of an
        // earlier one, even if all its overrides were removed since.
        if is_lost {
            // If this write fails, another node was the first to write the same document or a newer
            // document.
            self.put(blob_store, &version, &held).await.map_err(SyncError::Write)?;
        }
        Ok(())
    }

    /// Writes to the store the changes that only this node has.
    async fn store_local(&self, blob_store: &BlobStore<'_>) -> Result<(), SyncError> {
        let pending = self.local.lock().targets().len();
        if pending == 0 {
            return Ok(());
        }
        let (stored, table) = {
            let local = self.local.lock();
            (local.stored(), local.in_force(self.limiter.now()))
        };
        // If the versions are equal, other nodes have changed the same targets, or the changes have
        // expired.
        if table.version() != stored.version() {
            let version = blob_store.version(NAME).await?;
            if is_newer(&version, stored.version())
                || self.put(blob_store, &version, &table).await.map_err(SyncError::Write)?
                    != CasOutcome::Stored
            {
                // Another node stored a document first. The next check reads that document first.
                return Ok(());
            }
        }
        self.local.lock().write(Arc::clone(&table));
        self.held().set(table);
        tracing::info!(changes = pending, "stored the overrides that only this node had");
        Ok(())
    }

    async fn change(
        &self,
        now: Timestamp,
        change: &OverrideChange,
    ) -> Result<ChangeResult, OverrideStoreError> {
        let blob_store =
            self.blob_store().ok_or(OverrideStoreError::Store(StoreError::Unavailable))?;
        let _turn = self.turn.lock().await;
        match self.change_in_store(&blob_store, now, change).await {
            // An operator needs overrides most while some servers are down, so the change is kept.
            Err(OverrideStoreError::Store(error)) if error != StoreError::Corrupt => {
                let before = self.held().table().get(change.target(), now).cloned();
                let table = self.local.lock().add(change, now)?;
                self.held().set(Arc::clone(&table));
                tracing::warn!(
                    "cannot store the override, it is in force on this node only: {error}"
                );
                Ok(ChangeResult { before, table, pending: Some(error) })
            }
            outcome => outcome,
        }
    }

    async fn change_in_store(
        &self,
        blob_store: &BlobStore<'_>,
        now: Timestamp,
        change: &OverrideChange,
    ) -> Result<ChangeResult, OverrideStoreError> {
        for _ in 0..ATTEMPTS {
            self.follow(blob_store)
                .await
                .map_err(|unread| OverrideStoreError::Store(unread.into()))?;
            let (stored, current) = {
                let local = self.local.lock();
                (local.stored(), local.in_force(now))
            };
            let version = blob_store.version(NAME).await.map_err(OverrideStoreError::Store)?;
            // Another node stored a newer document first. If the stored document is older, the
            // store lost the newer document, so the older document is replaced.
            if is_newer(&version, stored.version()) {
                continue;
            }
            let before = current.get(change.target(), now).cloned();
            let table = Arc::new(current.changed(change, now)?);
            let put =
                self.put(blob_store, &version, &table).await.map_err(OverrideStoreError::Store)?;
            if put == CasOutcome::Stored {
                self.local.lock().write(Arc::clone(&table));
                self.held().set(Arc::clone(&table));
                return Ok(ChangeResult { before, table, pending: None });
            }
        }
        Err(OverrideStoreError::Contended)
    }

    async fn read(&self, blob_store: &BlobStore<'_>) -> Result<(), SyncError> {
        let document = blob_store.shared_blob(NAME).await?;
        // The document may have expired between the two reads, or the place with the newer version
        // did not answer the second one.
        if !is_newer(&document.version, self.local.lock().stored().version()) {
            return Ok(());
        }
        let table = OverrideTable::from_bytes(&document.bytes).map_err(SyncError::Table)?;
        let mut local = self.local.lock();
        local.read(Arc::new(table));
        self.held().set(local.in_force(self.limiter.now()));
        Ok(())
    }

    async fn put(
        &self,
        blob_store: &BlobStore<'_>,
        before: &[u8],
        table: &OverrideTable,
    ) -> Result<CasOutcome, StoreError> {
        let document = SharedBlob { version: encoded(table.version()), bytes: table.to_bytes() };
        let now = self.limiter.now();
        let put = blob_store.replace(NAME, before, &document).await?;
        if put == CasOutcome::Stored {
            *self.renewed_at.lock() = now;
        }
        Ok(put)
    }
}
