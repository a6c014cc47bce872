//! Room for what a call will add: promised before anything is changed, so that a store without
//! room refuses the call whole.

use std::ops::{Add, AddAssign};

use tollgate_core::Limit;

use super::cells::{self, FRESH_HEAP, FRESH_RESERVATION_HEAP};

/// What is added to a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) entries: usize,
    /// States that are larger than an entry.
    pub(super) cells: usize,
    /// Bytes that those states allocate for themselves.
    pub(super) heap: usize,
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
        if cells::is_large(limit) {
            Self { cells: 1, heap: FRESH_HEAP, ..Self::NONE }
        } else {
            Self::NONE
        }
    }

    /// For a state in an entry of which something is held from now on.
    pub(super) const fn for_reservation() -> Self {
        Self { cells: 1, heap: FRESH_HEAP + FRESH_RESERVATION_HEAP, ..Self::NONE }
    }

    /// For a large state of which something is held from now on.
    pub(super) const fn for_first_reservation() -> Self {
        Self { heap: FRESH_RESERVATION_HEAP, ..Self::NONE }
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
