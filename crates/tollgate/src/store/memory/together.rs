//! Calls that change only entries of one shard. Such a call takes one lock and one pass over its
//! charges.

use smallvec::SmallVec;
use tollgate_core::decide::{charge_admitted, expires_at};
use tollgate_core::{Admission, Algorithm, Charge, Cost, Limit, Operation, Reading, Timestamp};

use super::call::INLINE;
use super::cells::{CELL_BYTES, heap_of};
use super::in_place::{InPlace, charged};
use super::packed::{Packed, Retention};
use super::shard::Shard;
use super::shares::{Usage, Weight};
use super::target::Target;

/// The change that a charge makes. The changes are applied after all charges of the call have been
/// found to fit.
enum Change {
    /// The entry in this slot is replaced.
    Entry(usize, Packed),
    /// The subject gets its first permit and a new entry for the permit.
    FirstPermit,
}

impl Shard {
    /// Applies `targets`, which are all in this shard, and appends their readings to `readings`.
    /// Returns false and changes nothing unless each target is a charge that fits and has its state
    /// in its entry. One target may instead be a subject's first permit.
    pub(super) fn charge_together(
        &mut self,
        now: Timestamp,
        targets: &[Target<'_>],
        readings: &mut Vec<Reading>,
    ) -> bool {
        let start = readings.len();
        let mut changes = SmallVec::<[Change; INLINE]>::new();
        for target in targets {
            let Some((change, reading)) = self.change_of(now, target, &changes) else {
                readings.truncate(start);
                return false;
            };
            changes.push(change);
            readings.push(reading);
        }
        let mut first_permit = None;
        for (index, (change, reading)) in changes.iter().zip(&readings[start..]).enumerate() {
            match *change {
                Change::Entry(slot, after) => {
                    if let Some(before) = self.table.replace(slot, after) {
                        self.turn(before, after, reading);
                    }
                }
                Change::FirstPermit => first_permit = Some(index),
            }
        }
        // Adding an entry moves other entries, so the entry is added after the slots of all other
        // charges have been used.
        if let Some(index) = first_permit {
            readings[start + index] = self.open_permit(now, &targets[index]);
        }
        true
    }

    /// Returns the change of `target` and its reading. `changes` are the changes of the call's
    /// earlier charges. For a first permit, the reading is a placeholder. Returns `None` if
    /// `target` is not a charge that fits, or needs more than one entry that no earlier charge
    /// changes.
    #[inline(always)]
    fn change_of(
        &self,
        now: Timestamp,
        target: &Target<'_>,
        changes: &[Change],
    ) -> Option<(Change, Reading)> {
        let Charge { limit, operation: Operation::Charge { cost, .. }, .. } = target.charge else {
            return None;
        };
        let Some(slot) = self.table.find(target.key) else {
            let is_first = |change: &Change| matches!(change, Change::FirstPermit);
            let fits = !changes.iter().any(is_first) && self.has_room_for_permit(limit, cost);
            return fits.then(|| (Change::FirstPermit, Reading::default()));
        };
        // If two charges have the same entry, the second depends on the first. This function does
        // not decide such calls.
        if changes.iter().any(|change| matches!(change, Change::Entry(other, _) if *other == slot))
        {
            return None;
        }
        let InPlace { reading, after } = charged(self.table.get(slot)?.1, limit, cost, now)?;
        (reading.admission == Admission::Now).then_some((Change::Entry(slot, after), reading))
    }

    /// Returns whether the first permit of a subject fits, both within the limit and into memory
    /// that is already allocated.
    fn has_room_for_permit(&self, limit: &Limit, cost: Cost) -> bool {
        let Algorithm::Concurrency(permits) = limit.algorithm() else { return false };
        if cost == Cost::PEEK || cost.needed() > permits.quota() || self.shares.has_counters() {
            return false;
        }
        let Some(share) = self.shares.find(limit.state_digest()) else { return false };
        let Some(heap) = self.cells.spare_heap() else { return false };
        let most = Usage { entries: self.bounds.max_entries, bytes: self.bounds.max_bytes };
        let more = Usage { entries: 1, bytes: CELL_BYTES + heap };
        self.table.has_room()
            && self.table.len() < self.bounds.max_entries
            && self.shares.may_pin(share, more, most)
    }

    /// Charges the first permit of a subject. [`has_room_for_permit`](Self::has_room_for_permit)
    /// must have returned true before.
    fn open_permit(&mut self, now: Timestamp, target: &Target<'_>) -> Reading {
        let Charge { limit, operation, .. } = target.charge;
        let share = self.shares.enter(limit.state_digest());
        let (reading, cell) = charge_admitted(self.cells.seed(limit), limit, operation, now);
        let Some(cell) = cell else { return reading };
        let (end, heap) = (expires_at(&cell, limit), heap_of(&cell));
        let index = self.cells.push(self.shares.bucket(share), target.key, cell);
        let (retention, bytes) = (Retention::Pinned, CELL_BYTES + heap);
        self.shares.add(Weight { share, retention, bytes });
        self.first_end = self.first_end.min(end);
        self.table.insert(target.key, Packed::large(index, end, retention).in_share(share));
        reading
    }
}
