//! The room that a call needs for everything that it adds. The room is reserved before the call
//! changes anything, so a store without room refuses the whole call.

use std::ops::{Add, AddAssign};

use tollgate_core::Limit;

use super::cells::{self, CELL_BYTES, FRESH_HEAP, FRESH_RESERVATION_HEAP};
use super::pool::LARGE;
use super::shares::Usage;

/// The room that a call, or one charge of a call, needs in a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) entries: usize,
    /// New states that are stored outside the table, because they are larger than an entry.
    pub(super) cells: usize,
    /// The bytes that the states outside the table allocate on the heap.
    pub(super) heap: usize,
    /// Bytes of the pool, for states that exceed [`LARGE`] bytes after the call.
    pub(super) pool: usize,
    /// The number of entries that the call pins. A pinned entry is never dropped to make room.
    pub(super) pinned: usize,
    /// Whether the entry that needs this room is pinned after the call, so it is never dropped to
    /// make room.
    pub(super) pins: bool,
}

impl Room {
    /// No room, because nothing is added.
    pub(super) const NONE: Self =
        Self { entries: 0, cells: 0, heap: 0, pool: 0, pinned: 0, pins: false };
    /// The room for an entry that contains its state.
    pub(super) const ENTRY: Self = Self { entries: 1, ..Self::NONE };

    /// Returns the room for the first charge of a subject on `limit`.
    pub(super) fn for_entry(limit: &Limit) -> Self {
        Self::ENTRY + Self::for_change(limit)
    }

    /// Returns the room for a state of `limit` in an existing entry that has no state outside the
    /// table.
    pub(super) fn for_change(limit: &Limit) -> Self {
        if cells::is_large(limit) {
            Self { cells: 1, heap: FRESH_HEAP, ..Self::NONE }
        } else {
            Self::NONE
        }
    }

    /// Returns the room for the first reserved units of an entry that has no state outside the
    /// table.
    pub(super) const fn for_reservation() -> Self {
        Self { cells: 1, heap: FRESH_HEAP + FRESH_RESERVATION_HEAP, ..Self::NONE }
    }

    /// Returns the room for the first reserved units of a state that is outside the table already.
    pub(super) const fn for_first_reservation() -> Self {
        Self { heap: FRESH_RESERVATION_HEAP, ..Self::NONE }
    }

    /// Returns the room for a state that has allocated `heap` bytes and grows by `growth` bytes.
    pub(super) const fn for_growth(heap: usize, growth: usize) -> Self {
        if growth == 0 || heap + growth <= LARGE {
            return Self { heap: growth, ..Self::NONE };
        }
        let pool = if heap > LARGE { growth } else { heap + growth };
        Self { pool, ..Self::NONE }
    }

    /// Returns this room for an entry that is pinned after the call. `was_pinned` states whether
    /// the entry is pinned before the call.
    pub(super) const fn pinning(self, was_pinned: bool) -> Self {
        Self { pinned: if was_pinned { 0 } else { 1 }, pins: true, ..self }
    }

    /// Returns the portion of this room that counts as pinned in its shard.
    pub(super) const fn pinned_usage(self) -> Usage {
        if !self.pins {
            return Usage { entries: 0, bytes: 0 };
        }
        Usage { entries: self.pinned, ..self.usage() }
    }

    /// Returns the portion of this room that is in the shard, excluding the bytes of the pool.
    pub(super) const fn usage(self) -> Usage {
        Usage { entries: self.entries, bytes: self.cells * CELL_BYTES + self.heap }
    }
}

impl Add for Room {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            entries: self.entries + other.entries,
            cells: self.cells + other.cells,
            heap: self.heap + other.heap,
            pool: self.pool + other.pool,
            pinned: self.pinned + other.pinned,
            pins: self.pins || other.pins,
        }
    }
}

impl AddAssign for Room {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}
