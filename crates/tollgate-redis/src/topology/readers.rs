//! The lanes to the servers that are read from.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::RwLock;
use tokio::task::AbortHandle;

use super::roster::Roster;
use crate::circuit::Gate;
use crate::codec::Codec;
use crate::lane::{Lane, LaneStatus};
use crate::link::Endpoint;

/// The lanes to a shard's replicas, which take turns.
pub(crate) struct Readers<C: Codec> {
    lanes: Arc<RwLock<Lanes<C>>>,
    /// Whose turn it is to be read from.
    turn: AtomicUsize,
    following: Option<AbortHandle>,
}

type Lanes<C> = Arc<[Arc<Lane<C>>]>;

impl<C: Codec> Readers<C> {
    /// These lanes, and no others.
    pub(crate) fn fixed(lanes: impl IntoIterator<Item = Lane<C>>) -> Self {
        let lanes: Lanes<C> = lanes.into_iter().map(Arc::new).collect();
        Self { lanes: Arc::new(RwLock::new(lanes)), turn: AtomicUsize::new(0), following: None }
    }

    /// A lane, as `open` makes it, to each server of `roster` but the primary that is announced,
    /// as they come and go. Needs a tokio runtime.
    pub(crate) fn follow(
        roster: &Roster,
        open: impl Fn(&Endpoint) -> Lane<C> + Send + 'static,
    ) -> Self {
        let mut readers = Self::fixed([]);
        let (lanes, mut view) = (Arc::clone(&readers.lanes), roster.view());
        let following = tokio::spawn(async move {
            let mut known = BTreeMap::<String, Arc<Lane<C>>>::new();
            loop {
                let replicas = view.borrow_and_update().replicas();
                known.retain(|address, _| replicas.iter().any(|one| one.to_string() == *address));
                for replica in &replicas {
                    known.entry(replica.to_string()).or_insert_with(|| Arc::new(open(replica)));
                }
                *lanes.write() = known.values().cloned().collect();
                if view.changed().await.is_err() {
                    return;
                }
            }
        });
        readers.following = Some(following.abort_handle());
        readers
    }

    /// The next lane in turn whose server answers, if one does.
    pub(crate) fn next(&self) -> Option<Arc<Lane<C>>> {
        let lanes = Arc::clone(&self.lanes.read());
        let first = self.turn.fetch_add(1, Ordering::Relaxed);
        (0..lanes.len())
            .map(|step| &lanes[first.wrapping_add(step) % lanes.len()])
            .find(|lane| lane.link().circuit().gate() == Gate::Closed)
            .cloned()
    }

    /// How the lanes stand.
    pub(crate) fn status(&self) -> Vec<LaneStatus> {
        self.lanes.read().iter().map(|lane| lane.status()).collect()
    }
}

impl<C: Codec> Drop for Readers<C> {
    fn drop(&mut self) {
        if let Some(following) = &self.following {
            following.abort();
        }
    }
}

impl<C: Codec> fmt::Debug for Readers<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readers").field("lanes", &self.lanes.read()).finish_non_exhaustive()
    }
}
