//! The overrides of a node: the shipped synchronization through the store.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::task::JoinSet;
use tollgate::Limiter;
use tollgate::overrides::{
    Effect, NEVER, Override, OverrideChange, OverrideScope, OverrideStore, OverrideStoreError,
    OverrideTarget,
};
use tollgate_backend::{Backend, OverrideSync};
use tollgate_core::{Millis, Store};

/// The overrides of a node whose limiter has the store `S`.
#[derive(Debug)]
pub(crate) struct NodeOverrides<S> {
    limiter: Arc<Limiter<S>>,
    sync: Arc<OverrideSync<S>>,
    /// The changes in progress. They end with the node.
    changes: Mutex<JoinSet<()>>,
}

impl<S: Store + AsRef<Backend> + fmt::Debug + Send + Sync + 'static> NodeOverrides<S> {
    pub(crate) fn start(limiter: Arc<Limiter<S>>) -> Self {
        let sync = Arc::new(OverrideSync::start(Arc::clone(&limiter)));
        Self { limiter, sync, changes: Mutex::default() }
    }

    /// Begins a change, which may fail.
    pub(crate) fn begin(&self, quota: Option<u64>, lasts: Option<u64>) {
        let change = self.change(quota, lasts);
        self.changes.lock().spawn(async move {
            // During faults, a change may fail, and its result is not checked.
            let _ = change.await;
        });
    }

    /// Sets the override of the second limit to `quota` for `lasts` ms, or removes it. Fails if the
    /// store does not have the change.
    pub(crate) fn change(
        &self,
        quota: Option<u64>,
        lasts: Option<u64>,
    ) -> impl Future<Output = Result<(), String>> + Send + use<S> {
        let (sync, now) = (Arc::clone(&self.sync), self.limiter.now());
        let expires_at = lasts.map_or(NEVER, |lasts| now.after(Millis::new(lasts)));
        let set = |quota| {
            let effect = Effect::Quota { quota, burst: None };
            OverrideChange::Set(Override {
                target: target(),
                effect,
                expires_at,
                reason: "".into(),
            })
        };
        let change = quota.map_or_else(|| OverrideChange::Remove(target()), set);
        async move {
            match sync.change(now, change).await {
                Ok(result) => result.pending.map_or(Ok(()), |error| Err(error.to_string())),
                Err(OverrideStoreError::Missing) => Ok(()),
                Err(error) => Err(error.to_string()),
            }
        }
    }

    /// Returns the quota of the override that is in force.
    pub(crate) fn quota(&self) -> Option<u64> {
        let table = self.sync.table();
        match table.get(&target(), self.limiter.now())?.effect {
            Effect::Quota { quota, .. } => Some(quota),
            _ => None,
        }
    }
}

/// The target of the override: all subjects of the second limit.
fn target() -> OverrideScope {
    OverrideScope { limit: Some("long".into()), target: OverrideTarget::AllSubjects }
}
