//! Reserves room for a call before the call changes anything. Drops entries if necessary, or
//! reports that there is no room.

use tollgate_core::{Millis, Timestamp};

use super::fingerprint::Fingerprint;
use super::packed::Packed;
use super::room::Room;
use super::shard::Shard;
use super::shares::{OTHERS, Resource, Usage};
use super::table::Table;

type Slots = Table<Packed>;

impl Shard {
    /// Reserves `room` for the limit in `share` until [`Self::release_room`]. Drops entries if
    /// necessary, except the entries that `exempt` selects by their keys, because the call uses
    /// them. Returns whether the room was reserved.
    pub(super) fn reserve_room(
        &mut self,
        now: Timestamp,
        share: u8,
        room: Room,
        exempt: &impl Fn(Fingerprint) -> bool,
    ) -> bool {
        if room == Room::NONE {
            return true;
        }
        let most = Usage { entries: self.bounds.max_entries, bytes: self.bounds.max_bytes };
        // Entries of limits without a share of their own are never dropped to make room, so they
        // count as pinned.
        let pinned = if share == OTHERS { room.usage() } else { room.pinned_usage() };
        if !self.shares.may_pin(share, pinned, most) {
            let dropped = self.drop_expired(now, Millis::ZERO, exempt);
            if dropped == 0 || !self.shares.may_pin(share, pinned, most) {
                return false;
            }
        }
        let wanted = self.reserved_room + room;
        while let Err(short) = self.fits(now, wanted, exempt) {
            if !self.make_room(now, share, short, exempt) {
                return false;
            }
        }
        if room.pool > 0 && !self.promise_pool(share, room.pool) {
            return false;
        }
        self.reserved_room = wanted;
        true
    }

    /// Reserves `bytes` of the pool for the limit in `share`. Returns whether enough bytes were
    /// free.
    pub(super) fn promise_pool(&mut self, share: u8, bytes: usize) -> bool {
        let bucket = self.shares.bucket(share);
        let fits = self.pool.try_allocate(bucket, bytes);
        if fits {
            self.promised_pool.push((bucket, bytes));
        }
        fits
    }

    /// Ends all reservations of room, after the call was applied or refused.
    pub(super) fn release_room(&mut self) {
        self.reserved_room = Room::NONE;
        for (bucket, bytes) in self.promised_pool.drain(..) {
            self.pool.release(bucket, bytes);
        }
    }

    /// Returns the bytes that the shard has allocated, including the bytes of the pool.
    pub(super) fn bytes(&self) -> usize {
        let pooled = self.cells.pooled() + self.shares.pooled;
        Slots::bytes(self.table.capacity()) + self.cells.bytes() + self.shares.bytes() + pooled
    }

    /// Checks whether the shard has room for `wanted` within its bounds, and grows the table if
    /// necessary. If there is no room, returns the resource that is used up as an error. Keeps the
    /// entries that `exempt` selects by their keys.
    fn fits(
        &mut self,
        now: Timestamp,
        wanted: Room,
        exempt: &impl Fn(Fingerprint) -> bool,
    ) -> Result<(), Resource> {
        let entries = self.table.len() + wanted.entries;
        if entries > self.bounds.max_entries {
            return Err(Resource::Entries);
        }
        let beside = self.cells.bytes_with(wanted.cells) + wanted.heap;
        let Some(for_table) = self.bounds.max_bytes.checked_sub(beside) else {
            return Err(Resource::Bytes);
        };
        let largest = for_table / Slots::bytes(1);
        let needed = Slots::capacity_for(entries);
        if needed <= self.table.capacity() && self.table.capacity() <= largest {
            return Ok(());
        }
        // Before the table grows, expired entries are removed, because they may leave enough room.
        if self.drop_over_for_all(now, exempt) > 0 {
            return self.fits(now, wanted, exempt);
        }
        if needed > largest {
            // The cause is the states outside the table if they use more than half of the bytes.
            // Otherwise the cause is the table.
            let is_table = beside <= self.bounds.max_bytes / 2;
            return Err(if is_table { Resource::Entries } else { Resource::Bytes });
        }
        let capacity = self.table.grown().min(largest).max(needed);
        self.table.resize(capacity);
        Ok(())
    }
}
