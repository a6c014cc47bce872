//! Room for what a call will add: promised before anything is changed, so that a store without
//! room refuses the call whole.

use std::ops::{Add, AddAssign};

use tollgate_core::{Limit, StoreError, Timestamp};

use super::cells::{self, FRESH_HEAP, FRESH_HOLD_HEAP};
use super::fingerprint::Fingerprint;
use super::packed::Packed;
use super::shard::Shard;
use super::table::Table;

type Slots = Table<Packed>;

/// What is added to a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Room {
    entries: usize,
    /// States that are larger than an entry.
    cells: usize,
    /// Bytes that those states allocate for themselves.
    heap: usize,
}

impl Room {
    /// Nothing is added.
    pub(super) const NONE: Self = Self { entries: 0, cells: 0, heap: 0 };
    /// An entry whose state is in it.
    pub(super) const ENTRY: Self = Self { entries: 1, ..Self::NONE };

    /// For the first charge of a subject.
    pub(super) fn for_entry(limit: &Limit) -> Self {
        Self::ENTRY + Self::for_change(limit)
    }

    /// For the state of an entry that was of another kind before, or is in the entry.
    pub(super) fn for_change(limit: &Limit) -> Self {
        if cells::holds(limit) {
            Self { cells: 1, heap: FRESH_HEAP, ..Self::NONE }
        } else {
            Self::NONE
        }
    }

    /// For a state in an entry of which something is held from now on.
    pub(super) const fn for_hold() -> Self {
        Self { cells: 1, heap: FRESH_HEAP + FRESH_HOLD_HEAP, ..Self::NONE }
    }

    /// For a large state of which something is held from now on.
    pub(super) const fn for_first_hold() -> Self {
        Self { heap: FRESH_HOLD_HEAP, ..Self::NONE }
    }

    /// For a state that grows by `heap` bytes.
    pub(super) const fn for_growth(heap: usize) -> Self {
        Self { heap, ..Self::NONE }
    }
}

impl Add for Room {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            entries: self.entries + other.entries,
            cells: self.cells + other.cells,
            heap: self.heap + other.heap,
        }
    }
}

impl AddAssign for Room {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Shard {
    /// Promises `room` until [`Self::forget_promises`], evicting what may go if it must, but none
    /// of the entries that the call itself is about.
    ///
    /// # Errors
    /// [`StoreError::Full`] if there is not enough and everything else is in force.
    pub(super) fn promise(
        &mut self,
        now: Timestamp,
        room: Room,
        spared: &impl Fn(Fingerprint) -> bool,
    ) -> Result<(), StoreError> {
        if room == Room::NONE {
            return Ok(());
        }
        let wanted = self.promised + room;
        while !self.fits(now, wanted, spared) {
            if self.evict(now, spared) == 0 {
                self.counts.full += 1;
                return Err(StoreError::Full);
            }
        }
        self.promised = wanted;
        Ok(())
    }

    /// Ends all promises: what they were for is done, or will not be.
    pub(super) fn forget_promises(&mut self) {
        self.promised = Room::NONE;
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
        spared: &impl Fn(Fingerprint) -> bool,
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
        if self.drop_over(now, spared) > 0 {
            return self.fits(now, wanted, spared);
        }
        if needed > largest {
            return false;
        }
        let capacity = self.table.grown().min(largest).max(needed);
        self.table.resize(capacity);
        true
    }
}
