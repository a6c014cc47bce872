//! Overrides in the store, so that every node goes by them and none ends with its node.

mod blob_store;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval};
use tollgate::Limiter;
use tollgate::core::{CasOutcome, SharedBlob, StoreError, Timestamp};
use tollgate::overrides::{
    ChangeResult, OverrideChange, OverrideStorage, OverrideStore, OverrideStoreError,
    OverrideTable, Overrides, TableError, TableVersion,
};

use self::blob_store::BlobStore;
use crate::backend::Backend;

/// How often a node looks whether others changed the overrides.
pub const OVERRIDES_PERIOD: Duration = Duration::from_millis(500);

/// How often a change is tried that others were faster than.
const ATTEMPTS: usize = 8;

/// How much longer than the last override the document lasts: which version was the last one is
/// known so long.
const BLOB_TTL_MARGIN: Duration = Duration::from_secs(24 * 3_600);

/// The overrides of a limiter, kept where its limits are.
///
/// In Redis they are one document on one shard, which a hash chooses, and every node looks at its
/// version twice a second; in memcached they are one item on one server, of 1 MiB at most. While the
/// shard does not answer nodes go on with the last ones that they read, and a change is refused. What
/// the shard lost, in a failover, a flush or by eviction, the first node
/// that sees it puts back. In memory they are this process's.
#[derive(Debug)]
pub struct OverrideSync {
    shared: Arc<Shared>,
    watch: Option<AbortHandle>,
}

impl OverrideSync {
    /// Keeps those of `limiter`. Where its store shares them, they are read from now on; needs a
    /// tokio runtime then.
    #[must_use]
    pub fn start(limiter: Arc<Limiter<Backend>>) -> Self {
        let shared = Arc::new(Shared {
            limiter,
            failure: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        });
        let is_shared = shared.blob_store().is_some();
        let watch = Handle::try_current()
            .ok()
            .filter(|_| is_shared)
            .map(|runtime| runtime.spawn(Arc::clone(&shared).watch()).abort_handle());
        Self { shared, watch }
    }

    /// Looks at once whether others changed them; what was lost is put back.
    ///
    /// # Errors
    /// [`StoreError`] if the store could not say; the last ones that were read stay in force.
    pub async fn refresh(&self) -> Result<(), StoreError> {
        self.shared.refresh().await.map_err(StoreError::from)
    }
}

impl Drop for OverrideSync {
    fn drop(&mut self) {
        if let Some(watch) = &self.watch {
            watch.abort();
        }
    }
}

impl OverrideStore for OverrideSync {
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
                OverrideStorage::InStore { failure: failure.as_ref().map(ToString::to_string) }
            }
        }
    }
}

#[derive(Debug)]
struct Shared {
    limiter: Arc<Limiter<Backend>>,
    /// Why they were not read the last time.
    failure: Mutex<Option<ReadError>>,
    /// Held by who reads or changes them: what was read is not put over what was changed since.
    turn: tokio::sync::Mutex<()>,
}

/// Why the overrides could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ReadError {
    /// their store has no answer.
    Store(StoreError),
    /// Another version of this program wrote them, or something else did.
    Table(TableError),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Table(error) => error.fmt(f),
        }
    }
}

impl From<StoreError> for ReadError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<ReadError> for StoreError {
    fn from(unread: ReadError) -> Self {
        match unread {
            ReadError::Store(error) => error,
            ReadError::Table(_) => Self::Corrupt,
        }
    }
}

impl Shared {
    fn held(&self) -> &Arc<Overrides> {
        self.limiter.overrides()
    }

    /// Who keeps them, if not this process alone.
    fn blob_store(&self) -> Option<BlobStore<'_>> {
        BlobStore::of(self.limiter.store())
    }

    async fn watch(self: Arc<Self>) {
        let mut looks = interval(OVERRIDES_PERIOD);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            // What went wrong is noted.
            let _ = self.refresh().await;
        }
    }

    async fn refresh(&self) -> Result<(), ReadError> {
        let Some(blob_store) = self.blob_store() else { return Ok(()) };
        let _turn = self.turn.lock().await;
        let outcome = self.follow(blob_store).await;
        let failure = outcome.as_ref().err().cloned();
        let before = std::mem::replace(&mut *self.failure.lock(), failure);
        // At each look it is asked again, and told when it begins.
        match (before, &outcome) {
            (None, Err(error)) | (Some(ReadError::Store(_)), Err(error @ ReadError::Table(_))) => {
                tracing::warn!("{error}: the last overrides that were read stay in force");
            }
            (Some(_), Ok(())) => tracing::info!("the overrides are read again"),
            _ => {}
        }
        outcome
    }

    /// Takes over what is newer there, and puts back what is older or lost.
    async fn follow(&self, blob_store: BlobStore<'_>) -> Result<(), ReadError> {
        let held = self.held().table();
        let version = blob_store.version().await?;
        if is_newer(&version, held.version()) {
            return self.read(blob_store).await;
        }
        let is_lost = version != told(held.version()) && held.version() != TableVersion::default();
        // What is older there would go on for nodes that start, also where all was removed since.
        if is_lost && (!version.is_empty() || held.expires_at() > self.limiter.now()) {
            // Whoever was faster put back the same, or something newer.
            self.put(blob_store, &version, &held).await?;
        }
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
        for _ in 0..ATTEMPTS {
            self.follow(blob_store)
                .await
                .map_err(|unread| OverrideStoreError::Store(unread.into()))?;
            let held = self.held().table();
            let version = blob_store.version().await.map_err(OverrideStoreError::Store)?;
            // Others were faster. What is older than what this node knows was lost, and is replaced.
            if is_newer(&version, held.version()) {
                continue;
            }
            let before = held.get(change.target(), now).cloned();
            let table = Arc::new(held.changed(change, now)?);
            let put =
                self.put(blob_store, &version, &table).await.map_err(OverrideStoreError::Store)?;
            if put == CasOutcome::Stored {
                self.held().set(Arc::clone(&table));
                return Ok(ChangeResult { before, table });
            }
        }
        Err(OverrideStoreError::Contended)
    }

    async fn read(&self, blob_store: BlobStore<'_>) -> Result<(), ReadError> {
        let document = blob_store.shared_blob().await?;
        // It may have gone between the two looks.
        if document.version.is_empty() {
            return Ok(());
        }
        let table = OverrideTable::from_bytes(&document.bytes).map_err(ReadError::Table)?;
        self.held().set(Arc::new(table));
        Ok(())
    }

    async fn put(
        &self,
        blob_store: BlobStore<'_>,
        before: &[u8],
        table: &OverrideTable,
    ) -> Result<CasOutcome, StoreError> {
        let document = SharedBlob { version: told(table.version()), bytes: table.to_bytes() };
        let left = table.expires_at().since(self.limiter.now());
        let lasting = Duration::from_millis(left.get()) + BLOB_TTL_MARGIN;
        blob_store.replace(before, &document, lasting).await
    }
}

/// A version as it lies in the store.
fn told(version: TableVersion) -> Vec<u8> {
    [version.changes.to_be_bytes(), version.drawn.to_be_bytes()].concat()
}

/// Whether `version` is another one than `held`, and no older one: of two that followed the same one
/// that which the store has counts.
fn is_newer(version: &[u8], held: TableVersion) -> bool {
    version != told(held) && changes(version) >= held.changes.max(1)
}

/// How many changes led to a version; none to what is no version.
fn changes(version: &[u8]) -> u64 {
    match version.split_first_chunk() {
        Some((changes, drawn)) if drawn.len() == 8 => u64::from_be_bytes(*changes),
        _ => 0,
    }
}
