//! A node's store in the world that changes: the one that its policy file names.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;
use tollgate::HashKey;
use tollgate::core::{Charge, Readings, Store, StoreError, Timestamp};
use tollgate::store::Percent;
use tollgate::store::carry::Phase;
use tollgate_backend::{Backend, Leaf, MoveStatus, Refunds, ShardStatus};

use crate::chaos::error::ChaosError;
use crate::chaos::policy::text;

/// A node, which can be started anew under another policy file.
///
/// The one that comes is connected before the one that goes stops, as `--reuse-port` or a balancer
/// in front has it: no caller finds nobody.
#[derive(Debug)]
pub(crate) struct WorldNode {
    key: HashKey,
    file: PathBuf,
    backend: watch::Sender<Arc<Backend>>,
    /// What those that went had taken along from the old store.
    rolled_out: AtomicU64,
}

impl WorldNode {
    /// A node under the policy over `store`, which is what follows `store:` in its `file`.
    pub(crate) async fn start(
        key: HashKey,
        file: PathBuf,
        store: &str,
    ) -> Result<Self, ChaosError> {
        let backend = watch::Sender::new(open(&key, &file, store).await?);
        Ok(Self { key, file, backend, rolled_out: AtomicU64::new(0) })
    }

    /// Writes another `store` into the file, and starts under it.
    pub(crate) async fn restart(&self, store: &str) -> Result<(), ChaosError> {
        let opened = open(&self.key, &self.file, store).await?;
        self.rolled_out.store(self.rolled_out(), Ordering::Relaxed);
        self.backend.send_replace(opened);
        Ok(())
    }

    /// Sends so many of a hundred subjects to the new store, as `PUT /v1/rollout` does.
    pub(crate) fn turn(&self, percent: Percent) {
        if let Backend::Rollout(moving) = &*self.backend() {
            moving.dial().set(percent);
        }
    }

    /// Cells that moved from the old store to the shards or back.
    pub(crate) fn rolled_out(&self) -> u64 {
        let now = match &*self.backend() {
            Backend::Rollout(moving) => moving.carried(),
            _ => 0,
        };
        self.rolled_out.load(Ordering::Relaxed) + now
    }

    /// Cells that moved from shard to shard.
    pub(crate) fn carried(&self) -> u64 {
        self.moving().map_or(0, |moving| moving.carried)
    }

    /// Whether the owners of the new map of shards decide.
    pub(crate) fn leads(&self) -> bool {
        self.moving().is_some_and(|moving| moving.phase != Phase::Following)
    }

    /// Where the primary of the shard `name` is, if one answers.
    pub(crate) fn primary(&self, name: &str) -> Option<String> {
        let shards = self.backend().status();
        let shard = shards.iter().find(|shard| &*shard.name == name)?;
        shard.primary().map(str::to_owned)
    }

    /// Whether every shard is decided by a primary that answers.
    pub(crate) fn is_served(&self) -> bool {
        self.backend().status().iter().all(ShardStatus::is_served)
    }

    fn moving(&self) -> Option<MoveStatus> {
        self.backend().leaves().into_iter().find_map(|(_, leaf)| match leaf {
            Leaf::Redis(fleet) => fleet.map_status().moving,
            Leaf::Memory(_) | Leaf::Memcached(_) => None,
        })
    }

    fn backend(&self) -> Arc<Backend> {
        Arc::clone(&self.backend.borrow())
    }
}

impl Store for WorldNode {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        self.backend().apply(now, charges).await
    }
}

/// Opens what the file says once it says `store`.
async fn open(key: &HashKey, file: &PathBuf, store: &str) -> Result<Arc<Backend>, ChaosError> {
    fs::write(file, text(store)).map_err(|error| ChaosError::File(file.clone(), error))?;
    let loaded = tollgate_policy::load(file).map_err(ChaosError::Load)?;
    let refunds = Refunds::ByAnswers;
    let backend = Backend::open(&loaded.settings, key.clone(), &loaded.policy, refunds)
        .map_err(ChaosError::Open)?;
    backend.started().await;
    Ok(Arc::new(backend))
}
