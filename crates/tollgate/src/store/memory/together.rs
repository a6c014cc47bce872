//! Calls that change only entries of one shard. Such a call takes one lock and one pass over its
//! charges.

use smallvec::SmallVec;
use tollgate_core::decide::first_permit;
use tollgate_core::policy::PlannedCharge;
use tollgate_core::{Admission, Algorithm, ChargeId, Cost, Limit, Operation, Reading, Timestamp};

use super::call::INLINE;
use super::cells::CELL_BYTES;
use super::fingerprint::{Fingerprint, SubjectHash};
use super::in_place::{InPlace, charged};
use super::packed::{Packed, Retention};
use super::shard::Shard;
use super::shares::{Usage, Weight};
use super::target::Target;

/// A charge on a limit for the subject of `key`.
#[derive(Clone, Copy)]
struct KeyedCharge<'a> {
    limit: &'a Limit,
    cost: Cost,
    id: ChargeId,
    key: Fingerprint,
}

/// The changes that the charges of a call make. The store applies the changes only after all
/// charges of the call were found to fit.
#[derive(Default)]
struct Changes<'a> {
    /// For each charge in order, the slot of an entry and the entry after the charge.
    entries: SmallVec<[(usize, Packed); INLINE]>,
    /// The first permit of a subject, which needs a new entry: the index of the charge in the call,
    /// the charge, and the room for the entry.
    first_permit: Option<(usize, KeyedCharge<'a>, PermitRoom)>,
}

/// The room for the first permit of a subject: the share of the limit, and the bytes of the state.
#[derive(Clone, Copy)]
struct PermitRoom {
    share: u8,
    bytes: usize,
}

impl Shard {
    /// Charges all of `planned`, whose subject has this `hash` and is in this shard, as
    /// [`charge_together`](Self::charge_together) does.
    #[inline]
    pub(super) fn charge_planned(
        &mut self,
        now: Timestamp,
        id: ChargeId,
        hash: SubjectHash,
        planned: &[PlannedCharge],
        readings: &mut Vec<Reading>,
    ) -> bool {
        if let [PlannedCharge { limit, cost, .. }] = planned {
            let reading = self.charge_in_place(now, limit, *cost, hash.on(limit));
            readings.extend(reading);
            return reading.is_some();
        }
        let charges = planned.iter().map(|planned| {
            let PlannedCharge { limit, cost, .. } = planned;
            Some(KeyedCharge { limit, cost: *cost, id, key: hash.on(limit) })
        });
        self.charge_all(now, charges, readings)
    }

    /// Applies `targets`, which are all in this shard, and appends their readings to `readings`.
    /// Returns false and changes nothing unless each target is a charge that fits and has its state
    /// in its entry. One target may instead be a subject's first permit.
    pub(super) fn charge_together(
        &mut self,
        now: Timestamp,
        targets: &[Target<'_>],
        readings: &mut Vec<Reading>,
    ) -> bool {
        let charges = targets.iter().map(|target| match target.charge.operation {
            Operation::Charge { cost, id } => {
                Some(KeyedCharge { limit: target.charge.limit, cost, id, key: target.key })
            }
            _ => None,
        });
        self.charge_all(now, charges, readings)
    }

    /// Makes the charges of [`charge_together`](Self::charge_together). An element of `charges` is
    /// `None` if the operation is not a charge. Such a call is not decided here: the result is
    /// false, and nothing changes.
    #[inline(always)]
    fn charge_all<'a>(
        &mut self,
        now: Timestamp,
        charges: impl Iterator<Item = Option<KeyedCharge<'a>>>,
        readings: &mut Vec<Reading>,
    ) -> bool {
        let start = readings.len();
        let mut changes = Changes::default();
        for charge in charges {
            let index = readings.len() - start;
            let Some(reading) =
                charge.and_then(|charge| self.plan_change(now, (index, charge), &mut changes))
            else {
                readings.truncate(start);
                return false;
            };
            readings.push(reading);
        }
        let Changes { entries, first_permit } = changes;
        let permit_index = first_permit.map(|(index, ..)| index);
        let of_entries =
            readings[start..].iter().enumerate().filter(|(index, _)| Some(*index) != permit_index);
        for ((slot, after), (_, reading)) in entries.iter().zip(of_entries) {
            if let Some(before) = self.table.replace(*slot, *after) {
                self.turn(before, *after, reading);
            }
        }
        // Adding an entry moves other entries, so the entry is added after the slots of all other
        // charges have been used.
        if let Some((index, charge, room)) = first_permit {
            readings[start + index] = self.open_permit(now, charge, room);
        }
        true
    }

    /// Adds the change that `charge` makes to `changes`, and returns the reading of the charge.
    /// `index` is the index of the charge in the call. For a first permit, the reading is a
    /// placeholder. Returns `None` if this module cannot make the charge or the charge does not
    /// fit.
    #[inline(always)]
    fn plan_change<'a>(
        &self,
        now: Timestamp,
        (index, charge): (usize, KeyedCharge<'a>),
        changes: &mut Changes<'a>,
    ) -> Option<Reading> {
        let KeyedCharge { limit, cost, key, .. } = charge;
        let Some((slot, before)) = self.table.find_entry(key) else {
            let room = self.room_for_permit(limit, cost)?;
            let is_first = changes.first_permit.replace((index, charge, room)).is_none();
            return is_first.then(Reading::default);
        };
        // If two charges have the same entry, the second depends on the first. This function does
        // not decide such calls.
        if changes.entries.iter().any(|(other, _)| *other == slot) {
            return None;
        }
        let InPlace { reading, after } = charged(before, limit, cost, now)?;
        changes.entries.push((slot, after));
        (reading.admission == Admission::Now).then_some(reading)
    }

    /// Returns the room for the first permit of a subject, if the permit fits both within the limit
    /// and into memory that is already allocated.
    fn room_for_permit(&self, limit: &Limit, cost: Cost) -> Option<PermitRoom> {
        let Algorithm::Concurrency(permits) = limit.algorithm() else { return None };
        if cost == Cost::PEEK || cost.needed() > permits.quota() || self.shares.has_counters() {
            return None;
        }
        let share = self.shares.find(limit.state_digest())?;
        let bytes = CELL_BYTES + self.cells.spare_heap()?;
        let most = Usage { entries: self.bounds.max_entries, bytes: self.bounds.max_bytes };
        let has_room = self.table.has_room()
            && self.table.len() < self.bounds.max_entries
            && self.shares.may_pin(share, Usage { entries: 1, bytes }, most);
        has_room.then_some(PermitRoom { share, bytes })
    }

    /// Charges the first permit of a subject, in the room that
    /// [`room_for_permit`](Self::room_for_permit) returned for the charge.
    fn open_permit(
        &mut self,
        now: Timestamp,
        charge: KeyedCharge<'_>,
        room: PermitRoom,
    ) -> Reading {
        let KeyedCharge { limit, cost, id, key } = charge;
        let PermitRoom { share, bytes } = room;
        let first = first_permit(self.cells.take_spare(), limit, (cost, id), now);
        let Some((reading, cell)) = first else { return Reading::default() };
        let end = reading.full_reset_at;
        let index = self.cells.push(self.shares.bucket(share), key, cell);
        let retention = Retention::Pinned;
        self.shares.add(Weight { share, retention, bytes });
        self.first_end = self.first_end.min(end);
        self.table.insert(key, Packed::large(index, end, retention).in_share(share));
        reading
    }
}
