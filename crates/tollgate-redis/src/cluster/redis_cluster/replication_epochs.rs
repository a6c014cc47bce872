//! The replication epochs of a cluster's primaries.

use std::sync::Arc;

use tollgate_core::Millis;

use super::{Group, RedisCluster, Slot};

/// Each primary has its own replication epochs, like the epochs of a
/// [`RedisShard`](crate::RedisShard). An epoch ends with the primary's failover. All slots of a
/// primary belong to its epoch. A slot that has moved belongs to the epoch of its new primary,
/// which received the slot together with its keys.
///
/// While a slot is being moved, the slot belongs to the epoch of its old primary. Keys of the slot
/// that have already moved belong to this epoch too: charges on these keys are never held back.
impl RedisCluster {
    /// Returns the number of the replication epoch that receives charges at `partition` now, or
    /// zero while the epoch is unknown. No two epochs have the same number.
    #[must_use]
    pub fn epoch_at(&self, partition: usize) -> u64 {
        self.owner(partition).map_or(0, |group| group.primary().epoch())
    }

    /// Returns whether charges at `partition` are [held back](crate::AfterFailover::Pause) now.
    #[must_use]
    pub fn is_paused_at(&self, partition: usize) -> bool {
        self.owner(partition).is_some_and(|group| group.primary().holds())
    }

    /// Returns the time since the start of the outage of `partition` before its current epoch, or
    /// zero if there was none.
    #[must_use]
    pub fn outage_at(&self, partition: usize) -> Millis {
        self.owner(partition).map_or(Millis::ZERO, |group| group.primary().outage())
    }

    /// Returns the primaries for which charges are held back now, each as the number of one of its
    /// partitions.
    #[must_use]
    pub fn held(&self) -> Vec<usize> {
        let map = self.known.current();
        map.map_or_else(Vec::new, |map| map.first_slots(|group| group.primary().holds()))
    }

    /// Permits charges in the replication epoch with the number `epoch`, if it is the current
    /// epoch of a primary.
    pub fn release(&self, epoch: u64) {
        let Some(map) = self.known.current() else { return };
        for group in map.groups().iter().filter(|group| group.primary().epoch() == epoch) {
            group.primary().release(epoch);
        }
    }

    fn owner(&self, partition: usize) -> Option<Arc<Group>> {
        let slot = Slot::new(u16::try_from(partition).ok()?)?;
        self.known.current()?.owner(slot).cloned()
    }
}
