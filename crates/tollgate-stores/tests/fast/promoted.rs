//! A primary and a replica in memory, with a replication lag that the test controls.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tollgate::model::{
    Cell, CellKey, CellTransfer, Charge, Millis, Readings, ReplicationEpochs, Store, StoreError,
    Timestamp,
};
use tollgate::store::Memory;

/// An action that runs during the release of an epoch.
type Meanwhile = Box<dyn FnOnce() + Send>;

/// The primary as one node uses it. The primary holds charges back until the node has released the
/// current epoch.
pub(crate) struct Promoted {
    servers: Arc<Servers>,
    released: AtomicU64,
    /// The duration of each promotion, in milliseconds.
    pub(crate) outage: AtomicU64,
    /// Whether joins never return.
    pub(crate) hangs: AtomicBool,
    /// Whether joins fail, because the primary cannot be reached.
    pub(crate) is_lost: AtomicBool,
    /// The number of joined cells.
    pub(crate) joined: AtomicU64,
    /// The permits for answers. If set, each charge waits for a permit before it is answered.
    pub(crate) answers: Mutex<Option<Arc<Semaphore>>>,
    /// The action to run just before the next release.
    pub(crate) before_release: Mutex<Option<Meanwhile>>,
}

#[derive(Debug, Default)]
pub(crate) struct Servers {
    primary: Mutex<Arc<Memory>>,
    replica: Mutex<Arc<Memory>>,
    lags: AtomicBool,
    epoch: AtomicU64,
}

impl Servers {
    /// Stops the replication to the replica.
    pub(crate) fn cut(&self) {
        self.lags.store(true, Ordering::SeqCst);
    }

    /// Promotes the replica. `follower` must have the same data and becomes the new replica.
    pub(crate) fn promote(&self, follower: Memory) {
        let promoted = std::mem::replace(&mut *self.replica.lock(), Arc::new(follower));
        *self.primary.lock() = promoted;
        self.lags.store(true, Ordering::SeqCst);
        self.epoch.fetch_add(1, Ordering::SeqCst);
    }
}

impl Promoted {
    pub(crate) fn on(servers: &Arc<Servers>) -> Self {
        Self {
            servers: Arc::clone(servers),
            released: AtomicU64::new(0),
            outage: AtomicU64::new(0),
            hangs: AtomicBool::new(false),
            is_lost: AtomicBool::new(false),
            joined: AtomicU64::new(0),
            answers: Mutex::default(),
            before_release: Mutex::default(),
        }
    }

    fn primary(&self) -> Arc<Memory> {
        Arc::clone(&self.servers.primary.lock())
    }
}

impl Store for Promoted {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        let is_read_only = charges.iter().all(|charge| charge.operation.is_read_only());
        if !is_read_only && self.released.load(Ordering::SeqCst) != self.epoch() {
            return Err(StoreError::Unavailable);
        }
        if !self.servers.lags.load(Ordering::SeqCst) {
            let replica = Arc::clone(&self.servers.replica.lock());
            replica.apply(now, charges).await?;
        }
        let answer = self.primary().apply(now, charges).await;
        let gate = self.answers.lock().clone();
        if let Some(gate) = gate
            && let Ok(permit) = gate.acquire().await
        {
            permit.forget();
        }
        answer
    }
}

impl CellTransfer for Promoted {
    async fn cells(
        &self,
        now: Timestamp,
        places: &[CellKey<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        self.primary().cells(now, places).await
    }

    async fn join(&self, now: Timestamp, cells: &[(CellKey<'_>, Cell)]) -> Result<(), StoreError> {
        if self.hangs.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        if self.is_lost.load(Ordering::SeqCst) {
            return Err(StoreError::Unavailable);
        }
        self.joined.fetch_add(cells.len() as u64, Ordering::SeqCst);
        self.primary().join(now, cells).await
    }
}

impl ReplicationEpochs for Promoted {
    fn epoch(&self) -> u64 {
        self.servers.epoch.load(Ordering::SeqCst)
    }

    fn holds(&self) -> bool {
        self.released.load(Ordering::SeqCst) != self.epoch()
    }

    fn outage(&self) -> Millis {
        Millis::new(self.outage.load(Ordering::SeqCst))
    }

    fn release(&self, epoch: u64) {
        if let Some(meanwhile) = self.before_release.lock().take() {
            meanwhile();
        }
        self.released.fetch_max(epoch, Ordering::SeqCst);
    }
}

impl fmt::Debug for Promoted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Promoted").field("servers", &self.servers).finish_non_exhaustive()
    }
}
