//! The overrides of a node: the shipped synchronization through the store.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::task::JoinSet;
use tollgate::overrides::{
    Effect, NEVER, Override, OverrideChange, OverrideScope, OverrideStore, OverrideStoreError,
    OverrideTarget,
};
use tollgate::{HashKey, Limiter};
use tollgate_backend::{Backend, OverrideSync};
use tollgate_core::{Millis, Store, Subject, Value};

use crate::plan::OverrideEffect;

/// The overrides of a node whose limiter has the store `S`.
#[derive(Debug)]
pub(crate) struct NodeOverrides<S> {
    limiter: Arc<Limiter<S>>,
    /// The key by which the limiter hashes the values of subjects.
    key: HashKey,
    sync: Arc<OverrideSync<S>>,
    /// The changes in progress. They end with the node.
    changes: Mutex<JoinSet<()>>,
}

impl<S: Store + AsRef<Backend> + fmt::Debug + Send + Sync + 'static> NodeOverrides<S> {
    pub(crate) fn start(limiter: Arc<Limiter<S>>, key: HashKey) -> Self {
        let sync = Arc::new(OverrideSync::start(Arc::clone(&limiter)));
        Self { limiter, key, sync, changes: Mutex::default() }
    }

    /// Begins a change, which may fail.
    pub(crate) fn begin(
        &self,
        subject: Option<&str>,
        effect: Option<OverrideEffect>,
        lasts: Option<u64>,
    ) {
        let change = self.change(subject, effect, lasts);
        self.changes.lock().spawn(async move {
            // During faults, a change may fail, and its result is not checked.
            let _ = change.await;
        });
    }

    /// Sets the override of the second limit for a subject, or for all subjects. The override is in
    /// force for `lasts` ms. Removes the override if `effect` is `None`. Fails if the store does
    /// not have the change.
    pub(crate) fn change(
        &self,
        subject: Option<&str>,
        effect: Option<OverrideEffect>,
        lasts: Option<u64>,
    ) -> impl Future<Output = Result<(), String>> + Send + use<S> {
        let (sync, now) = (Arc::clone(&self.sync), self.limiter.now());
        let target = self.target(subject);
        let expires_at = lasts.map_or(NEVER, |lasts| now.after(Millis::new(lasts)));
        let change = match effect {
            None => OverrideChange::Remove(target),
            Some(effect) => {
                let (effect, reason) = (shipped(effect), "".into());
                OverrideChange::Set(Override { target, effect, expires_at, reason })
            }
        };
        async move {
            match sync.change(now, change).await {
                Ok(result) => result.pending.map_or(Ok(()), |error| Err(error.to_string())),
                Err(OverrideStoreError::Missing) => Ok(()),
                Err(error) => Err(error.to_string()),
            }
        }
    }

    /// Returns all overrides that are in force.
    pub(crate) fn in_force(&self) -> Vec<Arc<Override>> {
        let (table, now) = (self.sync.table(), self.limiter.now());
        table.overrides().iter().filter(|one| now < one.expires_at).cloned().collect()
    }

    /// Returns the effect of the override of a subject, or of all subjects, that is in force.
    pub(crate) fn effect(&self, subject: Option<&str>) -> Option<OverrideEffect> {
        let table = self.sync.table();
        let effect = table.get(&self.target(subject), self.limiter.now())?.effect;
        Some(match effect {
            Effect::Quota { quota, .. } => OverrideEffect::Quota(quota),
            Effect::Unlimited => OverrideEffect::Unlimited,
            Effect::Blocked => OverrideEffect::Blocked,
            Effect::Counted => OverrideEffect::Counted,
        })
    }

    /// Returns the target of an override of the second limit: a subject, or all subjects.
    fn target(&self, subject: Option<&str>) -> OverrideScope {
        let target = subject.map_or(OverrideTarget::AllSubjects, |name| {
            let subject = Subject::new([("user", Value::Clear(name.as_bytes()))], &self.key);
            OverrideTarget::subject(&subject.veiled(&self.key))
        });
        OverrideScope { limit: Some("long".into()), target }
    }
}

const fn shipped(effect: OverrideEffect) -> Effect {
    match effect {
        OverrideEffect::Quota(quota) => Effect::Quota { quota, burst: None },
        OverrideEffect::Unlimited => Effect::Unlimited,
        OverrideEffect::Blocked => Effect::Blocked,
        OverrideEffect::Counted => Effect::Counted,
    }
}
