//! The histories that the data of a cluster's primaries is of.

use std::sync::Arc;

use tollgate_core::Millis;

use super::{Group, RedisCluster, Slot};

/// A history is one course of replication, as it is of [`RedisShard`](crate::RedisShard): each
/// primary's ends with its failover. All slots that a primary keeps are of its history, and a slot
/// that has moved is of that of its new primary, where it came with its keys.
///
/// A slot that is on its way is of the history of the node that it leaves, also for keys that have
/// gone ahead: these are never held back.
impl RedisCluster {
    /// The number of the history that charges at `partition` would go to now; zero while nobody knows
    /// it. No two histories have the same number.
    #[must_use]
    pub fn epoch_at(&self, partition: usize) -> u64 {
        self.owner(partition).map_or(0, |group| group.primary().history())
    }

    /// Whether charges at `partition` are [held](crate::AfterFailover::Pause) now.
    #[must_use]
    pub fn is_paused_at(&self, partition: usize) -> bool {
        self.owner(partition).is_some_and(|group| group.primary().holds())
    }

    /// For how long nothing had been answered at `partition` when its history began.
    #[must_use]
    pub fn outage_at(&self, partition: usize) -> Millis {
        self.owner(partition).map_or(Millis::ZERO, |group| group.primary().outage())
    }

    /// One partition of each primary whose charges are held now.
    #[must_use]
    pub fn held(&self) -> Vec<usize> {
        let map = self.known.current();
        map.map_or_else(Vec::new, |map| map.first_slots(|group| group.primary().holds()))
    }

    /// Charges may go to `history`, if a primary's data is of it.
    pub fn release(&self, history: u64) {
        let Some(map) = self.known.current() else { return };
        for group in map.groups().iter().filter(|group| group.primary().history() == history) {
            group.primary().release(history);
        }
    }

    fn owner(&self, partition: usize) -> Option<Arc<Group>> {
        let slot = Slot::new(u16::try_from(partition).ok()?)?;
        self.known.current()?.owner(slot).cloned()
    }
}
