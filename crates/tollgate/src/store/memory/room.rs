//! Room for the additions of a call. It is reserved before anything is changed, so a store without
//! room refuses the whole call.

use std::ops::{Add, AddAssign};

use tollgate_core::Limit;

use super::cells::{self, CELL_BYTES, FRESH_HEAP, FRESH_RESERVATION_HEAP};
use super::pool::LARGE;
use super::shares::Usage;

/// An addition to a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) entries: usize,
    /// States that are larger than an entry.
    pub(super) cells: usize,
    /// Bytes that those states allocate for themselves.
    pub(super) heap: usize,
    /// Bytes of the pool, for states that are large or become large.
    pub(super) pool: usize,
    /// Entries that are pinned from now on.
    pub(super) pinned: usize,
    /// Whether the entry that the room is for is pinned afterwards.
    pub(super) pins: bool,
}

impl Room {
    /// Nothing is added.
    pub(super) const NONE: Self =
        Self { entries: 0, cells: 0, heap: 0, pool: 0, pinned: 0, pins: false };
    /// An entry that contains its state.
    pub(super) const ENTRY: Self = Self { entries: 1, ..Self::NONE };

    /// For the first charge of a subject.
    pub(super) fn for_entry(limit: &Limit) -> Self {
        Self::ENTRY + Self::for_change(limit)
    }

    /// For the state of an entry that had another kind of content, or that contains its state.
    pub(super) fn for_change(limit: &Limit) -> Self {
        if cells::is_large(limit) {
            Self { cells: 1, heap: FRESH_HEAP, ..Self::NONE }
        } else {
            Self::NONE
        }
    }

    /// For a state in an entry that has reserved units from now on.
    pub(super) const fn for_reservation() -> Self {
        Self { cells: 1, heap: FRESH_HEAP + FRESH_RESERVATION_HEAP, ..Self::NONE }
    }

    /// For a large state that has reserved units from now on.
    pub(super) const fn for_first_reservation() -> Self {
        Self { heap: FRESH_RESERVATION_HEAP, ..Self::NONE }
    }

    /// For a state of `heap` bytes that grows by `growth`.
    pub(super) const fn for_growth(heap: usize, growth: usize) -> Self {
        if growth == 0 || heap + growth <= LARGE {
            return Self { heap: growth, ..Self::NONE };
        }
        let pool = if heap > LARGE { growth } else { heap + growth };
        Self { pool, ..Self::NONE }
    }

    /// Returns the room for an entry that is pinned after the call. `was_pinned` is whether it was
    /// pinned before.
    pub(super) const fn pinning(self, was_pinned: bool) -> Self {
        Self { pinned: if was_pinned { 0 } else { 1 }, pins: true, ..self }
    }

    /// Returns the part that is pinned in its shard.
    pub(super) const fn pinned_usage(self) -> Usage {
        if !self.pins {
            return Usage { entries: 0, bytes: 0 };
        }
        Usage { entries: self.pinned, ..self.usage() }
    }

    /// Returns the part that belongs to the shard, without the pool's.
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
