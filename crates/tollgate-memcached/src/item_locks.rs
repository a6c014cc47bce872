//! Locks on items. The locks prevent callers of one node from losing compare-and-swaps to each
//! other.

use std::hash::BuildHasher;
#[cfg(not(feature = "simulation"))]
use std::hash::RandomState as PlaceHasher;

use tokio::sync::{Mutex, MutexGuard};

/// The number of locks. Calls on different items that share a lock wait for each other. The wait
/// takes time but is otherwise harmless.
const LOCKS: usize = 1_024;

/// A hasher without random keys. With it, two runs of a simulation select the same locks for the
/// same items.
#[cfg(feature = "simulation")]
type PlaceHasher = std::hash::BuildHasherDefault<std::hash::DefaultHasher>;

/// Locks for items. The hash of an item's name selects the lock.
///
/// The locks serialize the callers of one node. Between nodes, compare-and-swap decides.
#[derive(Debug)]
pub(crate) struct ItemLocks {
    locks: Box<[Mutex<()>]>,
    hasher: PlaceHasher,
}

impl Default for ItemLocks {
    fn default() -> Self {
        Self { locks: (0..LOCKS).map(|_| Mutex::new(())).collect(), hasher: PlaceHasher::default() }
    }
}

impl ItemLocks {
    /// Locks the items called `names`, and waits until all of their locks are free. All callers
    /// acquire locks in the same order, so callers cannot deadlock.
    pub(crate) async fn at<'n>(
        &self,
        names: impl Iterator<Item = &'n [u8]>,
    ) -> Vec<MutexGuard<'_, ()>> {
        let mut indexes: Vec<_> =
            names.map(|name| self.hasher.hash_one(name) as usize % LOCKS).collect();
        indexes.sort_unstable();
        indexes.dedup();
        let mut locks = Vec::with_capacity(indexes.len());
        for place in indexes {
            locks.push(self.locks[place].lock().await);
        }
        locks
    }
}
