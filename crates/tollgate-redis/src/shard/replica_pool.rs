//! The batchers to the replicas that serve reads.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::RwLock;
use tokio::task::AbortHandle;
use tollgate_link::CircuitState;

use crate::batcher::{Batcher, BatcherStatus};
use crate::codec::Codec;
use crate::connection::Endpoint;
use crate::members::Members;

/// The batchers to a shard's replicas, used in rotation.
pub(crate) struct ReplicaPool<C: Codec> {
    batchers: Arc<RwLock<Batchers<C>>>,
    /// The index, in the rotation, of the next batcher.
    turn: AtomicUsize,
    following: Option<AbortHandle>,
}

type Batchers<C> = Arc<[Arc<Batcher<C>>]>;

impl<C: Codec> ReplicaPool<C> {
    /// Creates a pool with batchers that never change.
    pub(crate) fn fixed(batchers: impl IntoIterator<Item = Batcher<C>>) -> Self {
        let batchers: Batchers<C> = batchers.into_iter().map(Arc::new).collect();
        Self {
            batchers: Arc::new(RwLock::new(batchers)),
            turn: AtomicUsize::new(0),
            following: None,
        }
    }

    /// Creates a pool with a batcher to each server of `members`, except the primary that the
    /// sentinels name. The function `open` creates each batcher. When the servers change, the pool
    /// is updated. Needs a tokio runtime.
    pub(crate) fn follow(
        members: &Members,
        open: impl Fn(&Endpoint) -> Batcher<C> + Send + 'static,
    ) -> Self {
        let mut readers = Self::fixed([]);
        let (batchers, mut view) = (Arc::clone(&readers.batchers), members.view());
        let following = tokio::spawn(async move {
            let mut known = BTreeMap::<String, Arc<Batcher<C>>>::new();
            loop {
                let replicas = view.borrow_and_update().replicas();
                known.retain(|address, _| replicas.iter().any(|one| one.to_string() == *address));
                for replica in &replicas {
                    known.entry(replica.to_string()).or_insert_with(|| Arc::new(open(replica)));
                }
                *batchers.write() = known.values().cloned().collect();
                if view.changed().await.is_err() {
                    return;
                }
            }
        });
        readers.following = Some(following.abort_handle());
        readers
    }

    /// Returns the next batcher in rotation that is connected to a server that answers. Returns
    /// `None` if no server answers.
    pub(crate) fn next(&self) -> Option<Arc<Batcher<C>>> {
        let batchers = Arc::clone(&self.batchers.read());
        let first = self.turn.fetch_add(1, Ordering::Relaxed);
        (0..batchers.len())
            .map(|step| &batchers[first.wrapping_add(step) % batchers.len()])
            .find(|batcher| batcher.link().circuit().circuit_state() == CircuitState::Closed)
            .cloned()
    }

    /// Returns the status of the batchers.
    pub(crate) fn status(&self) -> Vec<BatcherStatus> {
        self.batchers.read().iter().map(|batcher| batcher.status()).collect()
    }
}

impl<C: Codec> Drop for ReplicaPool<C> {
    fn drop(&mut self) {
        if let Some(following) = &self.following {
            following.abort();
        }
    }
}

impl<C: Codec> fmt::Debug for ReplicaPool<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplicaPool").field("lanes", &self.batchers.read()).finish_non_exhaustive()
    }
}
