//! Callers of one node take locks at an item, so that they do not outrun each other.

use std::hash::{BuildHasher, RandomState};

use tokio::sync::{Mutex, MutexGuard};

/// Places to wait at. Items that share one wait for each other, which costs time and nothing else.
const PLACES: usize = 1_024;

/// Turns at items, by their names. Between nodes compare-and-swap decides.
#[derive(Debug)]
pub(crate) struct ItemLocks {
    places: Box<[Mutex<()>]>,
    hasher: RandomState,
}

impl Default for ItemLocks {
    fn default() -> Self {
        Self { places: (0..PLACES).map(|_| Mutex::new(())).collect(), hasher: RandomState::new() }
    }
}

impl ItemLocks {
    /// Waits for the turn at all of `names`. Everybody asks in the same order, so nobody waits in
    /// a circle.
    pub(crate) async fn at<'n>(
        &self,
        names: impl Iterator<Item = &'n [u8]>,
    ) -> Vec<MutexGuard<'_, ()>> {
        let mut places: Vec<_> =
            names.map(|name| self.hasher.hash_one(name) as usize % PLACES).collect();
        places.sort_unstable();
        places.dedup();
        let mut locks = Vec::with_capacity(places.len());
        for place in places {
            locks.push(self.places[place].lock().await);
        }
        locks
    }
}
