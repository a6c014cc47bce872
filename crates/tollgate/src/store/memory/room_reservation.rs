//! Promises of room: evicting what may go, or refusing the call before anything is changed.

use tollgate_core::{StoreError, Timestamp};

use super::fingerprint::Fingerprint;
use super::packed::Packed;
use super::room::Room;
use super::shard::Shard;
use super::table::Table;

type Slots = Table<Packed>;

impl Shard {
    /// Promises `room` until [`Self::release_room`], evicting what may go if it must, but none
    /// of the entries that the call itself is about.
    ///
    /// # Errors
    /// [`StoreError::Full`] if there is not enough and everything else is in force.
    pub(super) fn reserve_room(
        &mut self,
        now: Timestamp,
        room: Room,
        pinned: &impl Fn(Fingerprint) -> bool,
    ) -> Result<(), StoreError> {
        if room == Room::NONE {
            return Ok(());
        }
        let wanted = self.reserved_room + room;
        while !self.fits(now, wanted, pinned) {
            if self.evict(now, pinned) == 0 {
                self.counts.full += 1;
                return Err(StoreError::Full);
            }
        }
        self.reserved_room = wanted;
        Ok(())
    }

    /// Ends all promises: what they were for is done, or will not be.
    pub(super) fn release_room(&mut self) {
        self.reserved_room = Room::NONE;
    }

    /// The bytes that the shard has allocated.
    pub(super) fn bytes(&self) -> usize {
        Slots::bytes(self.table.capacity()) + self.cells.bytes()
    }

    /// Whether `wanted` fits within the bounds; then the table has the slots for it.
    fn fits(
        &mut self,
        now: Timestamp,
        wanted: Room,
        pinned: &impl Fn(Fingerprint) -> bool,
    ) -> bool {
        let entries = self.table.len() + wanted.entries;
        if entries > self.bounds.max_entries {
            return false;
        }
        let beside = self.cells.bytes_with(wanted.cells) + wanted.heap;
        let Some(for_table) = self.bounds.max_bytes.checked_sub(beside) else { return false };
        let largest = for_table / Slots::bytes(1);
        let needed = Slots::capacity_for(entries);
        if needed <= self.table.capacity() && self.table.capacity() <= largest {
            return true;
        }
        // Whatever is over goes before room is made for more.
        if self.drop_expired(now, pinned) > 0 {
            return self.fits(now, wanted, pinned);
        }
        if needed > largest {
            return false;
        }
        let capacity = self.table.grown().min(largest).max(needed);
        self.table.resize(capacity);
        true
    }
}
