//! The known owner of each slot.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use super::group::Group;
use super::layout::{GroupLayout, Layout};
use crate::node_address::NodeAddress;
use crate::slot::{SLOTS, Slot};

/// The owner index of a slot without an owner. No group has this index, because there are at most
/// [`MAX_NODES`](super::MAX_NODES) groups.
const NOBODY: u16 = u16::MAX;

/// The groups of a cluster, and the owner of each slot.
#[derive(Debug)]
pub(super) struct SlotMap {
    groups: Vec<Arc<Group>>,
    /// For each slot, the index of the group that owns the slot.
    owners: Box<[AtomicU16]>,
}

impl SlotMap {
    /// Creates the map of `layout`. Calls `group` to find or open each group.
    pub(super) fn new(layout: &Layout, mut group: impl FnMut(&GroupLayout) -> Arc<Group>) -> Self {
        let owners: Box<[AtomicU16]> = (0..SLOTS).map(|_| AtomicU16::new(NOBODY)).collect();
        for (index, owner) in (0..).zip(&layout.groups) {
            for slot in owner.slots.iter().cloned().flatten() {
                owners[usize::from(slot)].store(index, Ordering::Relaxed);
            }
        }
        Self { groups: layout.groups.iter().map(&mut group).collect(), owners }
    }

    /// Returns the group that owns `slot`, or `None` if no group owns the slot.
    pub(super) fn owner(&self, slot: Slot) -> Option<&Arc<Group>> {
        self.groups.get(usize::from(self.owners[slot.index()].load(Ordering::Relaxed)))
    }

    /// Returns the groups that own any of `slots`.
    pub(super) fn owners(&self, slots: &[RangeInclusive<u16>]) -> impl Iterator<Item = &Group> {
        let owner = |slot: u16| self.owners[usize::from(slot)].load(Ordering::Relaxed);
        let indexes: BTreeSet<_> = slots.iter().cloned().flatten().map(owner).collect();
        indexes.into_iter().filter_map(|index| self.groups.get(usize::from(index)).map(Arc::as_ref))
    }

    /// Records that the group that contains `node` owns `slot` now, and returns this group. Returns
    /// `None` if `node` is in no group.
    pub(super) fn moved(&self, slot: Slot, node: &NodeAddress) -> Option<&Arc<Group>> {
        let index = self.groups.iter().position(|group| group.has(node))?;
        self.owners[slot.index()].store(u16::try_from(index).ok()?, Ordering::Relaxed);
        self.groups.get(index)
    }

    /// Returns the group that `node` belongs to, or `None` if `node` is in no group.
    pub(super) fn group_of(&self, node: &NodeAddress) -> Option<&Arc<Group>> {
        self.groups.iter().find(|group| group.has(node))
    }

    /// Returns the groups for which `is_such` returns true, each as the number of its first slot.
    pub(super) fn first_slots(&self, is_such: impl Fn(&Group) -> bool) -> Vec<usize> {
        let such = (0_u16..).zip(&self.groups).filter(|(_, group)| is_such(group));
        let first = |index| self.owners.iter().position(|it| it.load(Ordering::Relaxed) == index);
        such.filter_map(|(index, _)| first(index)).collect()
    }

    /// Returns the groups. Their order is the order of their first slots at the time when the map
    /// was created.
    pub(super) fn groups(&self) -> &[Arc<Group>] {
        &self.groups
    }

    /// Returns the number of slots that each group owns, in the order of the groups, and the number
    /// of slots without an owner.
    pub(super) fn spread(&self) -> (Vec<u16>, u16) {
        let (mut kept, mut lost) = (vec![0; self.groups.len()], 0);
        for owner in &self.owners {
            match kept.get_mut(usize::from(owner.load(Ordering::Relaxed))) {
                Some(slots) => *slots += 1,
                None => lost += 1,
            }
        }
        (kept, lost)
    }
}
