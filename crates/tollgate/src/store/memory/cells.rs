//! States that are larger than two words. They are stored outside the table, in a list without
//! gaps.

use std::sync::Arc;
use tollgate_core::algo::{concurrency, fixed_window, sliding_log, sliding_window};

use tollgate_core::decide::ReservedCell;
use tollgate_core::{Algorithm, Cell, Limit, Reservation, Timestamp};

use super::fingerprint::Fingerprint;
use super::pool::{LARGE, Pool};

/// The large states of one shard and the bytes that they use.
///
/// The states are stored without gaps, so the memory can shrink. When a state is removed, the last
/// state moves to the free index. The [`Pool`] accounts for the bytes of a state larger than
/// [`LARGE`].
pub(super) struct Cells {
    cells: Vec<(Fingerprint, Cell)>,
    /// The bytes that the states of at most [`LARGE`] bytes have allocated on the heap.
    heap: usize,
    /// The bytes of the pool that the states of more than [`LARGE`] bytes have allocated.
    pooled: usize,
    /// The empty list of a subject whose last permit was released, kept for the first permit of
    /// another subject. Most requests of a concurrency limit take the first permit of their subject
    /// and release this permit, so keeping the list saves an allocation.
    spare: Vec<concurrency::Permit>,
    pool: Arc<Pool>,
}

/// The bytes of one state outside the table, without the memory that the state itself allocates.
pub(super) const CELL_BYTES: usize = size_of::<(Fingerprint, Cell)>();

/// The most bytes that a new state of any algorithm allocates: the size of four permits.
pub(super) const FRESH_HEAP: usize = 4 * size_of::<concurrency::Permit>();

/// The bytes that the first reservation of a state allocates: a new cell, and room for four
/// reservations.
pub(super) const FRESH_RESERVATION_HEAP: usize =
    size_of::<ReservedCell>() + 4 * size_of::<Reservation>();

/// A placeholder in the list while the state at its index is taken out for a decision.
const TAKEN: Cell = Cell::FixedWindow(fixed_window::State { used: 0, resets_at: Timestamp::EPOCH });

impl Cells {
    /// Creates an empty collection. States larger than [`LARGE`] will be charged to `pool`.
    pub(super) const fn new(pool: Arc<Pool>) -> Self {
        Self { cells: Vec::new(), heap: 0, pooled: 0, spare: Vec::new(), pool }
    }

    /// Returns the bytes of the pool that the states have allocated.
    pub(super) const fn pooled(&self) -> usize {
        self.pooled
    }

    /// Returns the bytes that are allocated now, excluding the bytes of the pool.
    pub(super) fn bytes(&self) -> usize {
        Self::bytes_of(self.cells.capacity()) + self.heap + bytes_of(&self.spare)
    }

    /// Returns the bytes that will be allocated after the collection has grown by `more` states,
    /// excluding the bytes of the pool.
    pub(super) fn bytes_with(&self, more: usize) -> usize {
        Self::bytes_of(self.capacity_with(more)) + self.heap + bytes_of(&self.spare)
    }

    /// Returns the empty list that is kept for the first permit of another subject.
    pub(super) fn take_spare(&mut self) -> Vec<concurrency::Permit> {
        std::mem::take(&mut self.spare)
    }

    /// Returns an empty state, like [`seed`]. Uses memory that is already allocated, if there is
    /// any.
    pub(super) fn seed(&mut self, limit: &Limit) -> Option<Cell> {
        match limit.algorithm() {
            Algorithm::Concurrency(_) if self.spare.capacity() > 0 => {
                let permits = self.take_spare();
                Some(Cell::Concurrency(concurrency::State { permits }))
            }
            _ => seed(limit),
        }
    }

    /// Keeps the memory of a state that is no longer needed, if the next state can use this memory.
    pub(super) fn recycle(&mut self, cell: Cell) {
        let Cell::Concurrency(concurrency::State { mut permits }) = cell else { return };
        if self.spare.capacity() == 0 && bytes_of(&permits) <= FRESH_HEAP {
            permits.clear();
            self.spare = permits;
        }
    }

    /// Returns the bytes of `spare`, the empty list that is kept for the first permit of another
    /// subject. Returns `None` if no list is kept, or if the collection must grow for one more
    /// state.
    pub(super) fn spare_heap(&self) -> Option<usize> {
        let is_ready = self.spare.capacity() > 0 && self.cells.len() < self.cells.capacity();
        is_ready.then(|| bytes_of(&self.spare))
    }

    /// Allocates memory for `more` additional states in the list.
    pub(super) fn reserve(&mut self, more: usize) {
        let capacity = self.capacity_with(more);
        self.cells.reserve_exact(capacity - self.cells.len());
    }

    /// Returns the state at `index`.
    pub(super) fn get(&self, index: usize) -> Option<&Cell> {
        self.cells.get(index).map(|(_, cell)| cell)
    }

    /// Adds `cell`, the state of the entry `owner`, and returns its index. `bucket` is the bucket
    /// of the state's limit in the pool.
    pub(super) fn push(&mut self, bucket: u8, owner: Fingerprint, cell: Cell) -> usize {
        self.reserve(1);
        self.charge(bucket, heap_of(&cell));
        self.cells.push((owner, cell));
        self.cells.len() - 1
    }

    /// Takes the state at `index` out until [`Self::put_back`] is called. `bucket` is the bucket of
    /// the state's limit in the pool.
    pub(super) fn lend(&mut self, bucket: u8, index: usize) -> Option<Cell> {
        let cell = std::mem::replace(&mut self.cells.get_mut(index)?.1, TAKEN);
        self.release(bucket, heap_of(&cell));
        Some(cell)
    }

    /// Puts a state back at `index`, and frees the memory that the state no longer needs. `bucket`
    /// is the bucket of the state's limit in the pool.
    pub(super) fn put_back(&mut self, bucket: u8, index: usize, mut cell: Cell) {
        trim(&mut cell);
        self.charge(bucket, heap_of(&cell));
        if let Some((_, place)) = self.cells.get_mut(index) {
            *place = cell;
        }
    }

    /// Removes the state at `index`, whose limit has the bucket `bucket` in the pool. If another
    /// state moves to `index`, returns the owner of that state.
    pub(super) fn remove(&mut self, bucket: u8, index: usize) -> Option<Fingerprint> {
        if index >= self.cells.len() {
            return None;
        }
        let (_, cell) = self.cells.swap_remove(index);
        self.release(bucket, heap_of(&cell));
        if self.cells.len() < self.cells.capacity() / 4 {
            self.cells.shrink_to(self.cells.len() * 2);
        }
        self.cells.get(index).map(|(owner, _)| *owner)
    }

    /// Adds the `bytes` that a state has allocated to the bytes in use: of the pool, under
    /// `bucket`, if they are more than [`LARGE`], and otherwise of the shard.
    fn charge(&mut self, bucket: u8, bytes: usize) {
        if bytes > LARGE {
            self.pooled += bytes;
            self.pool.allocate(bucket, bytes);
        } else {
            self.heap += bytes;
        }
    }

    /// Subtracts the `bytes` that [`Self::charge`] added, because a state has freed them.
    fn release(&mut self, bucket: u8, bytes: usize) {
        if bytes > LARGE {
            self.pooled -= bytes;
            self.pool.release(bucket, bytes);
        } else {
            self.heap -= bytes;
        }
    }

    /// Returns the bytes that the state at `index` has allocated for itself.
    pub(super) fn heap(&self, index: usize) -> usize {
        self.get(index).map_or(0, heap_of)
    }

    /// Returns the bytes that the state at `index` must allocate before one more charge fits in it.
    pub(super) fn growth(&self, index: usize) -> usize {
        self.get(index).map_or(0, growth_of_cell)
    }

    fn capacity_with(&self, more: usize) -> usize {
        let needed = self.cells.len() + more;
        let capacity = self.cells.capacity();
        if needed <= capacity { capacity } else { needed.max(capacity + capacity / 4) }
    }

    const fn bytes_of(capacity: usize) -> usize {
        capacity * CELL_BYTES
    }
}

/// Returns an empty state with room for exactly one charge, or `None` if the states of `limit` are
/// not lists. An empty state is equivalent to no state. Most subjects that occur only once keep a
/// state of this size.
pub(super) fn seed(limit: &Limit) -> Option<Cell> {
    match limit.algorithm() {
        Algorithm::SlidingWindow(_) => {
            Some(Cell::SlidingWindow(sliding_window::State { blocks: Vec::with_capacity(1) }))
        }
        Algorithm::SlidingLog(_) => {
            Some(Cell::SlidingLog(sliding_log::State { entries: Vec::with_capacity(1) }))
        }
        Algorithm::Concurrency(_) => {
            Some(Cell::Concurrency(concurrency::State { permits: Vec::with_capacity(1) }))
        }
        Algorithm::FixedWindow(_) | Algorithm::TokenBucket(_) | Algorithm::TwoBucket(_) => None,
    }
}

/// Returns whether the states of `limit` are lists.
pub(super) const fn is_list(limit: &Limit) -> bool {
    let algorithm = limit.algorithm();
    !matches!(
        algorithm,
        Algorithm::FixedWindow(_) | Algorithm::TokenBucket(_) | Algorithm::TwoBucket(_)
    )
}

/// Returns whether the states of `limit` are stored outside the table.
pub(super) const fn is_large(limit: &Limit) -> bool {
    !matches!(limit.algorithm(), Algorithm::FixedWindow(_) | Algorithm::TokenBucket(_))
}

pub(super) fn heap_of(cell: &Cell) -> usize {
    match cell {
        Cell::SlidingWindow(state) => bytes_of(&state.blocks),
        Cell::SlidingLog(state) => bytes_of(&state.entries),
        Cell::Concurrency(state) => bytes_of(&state.permits),
        Cell::Reserved(reserved) => {
            size_of::<ReservedCell>() + heap_of(&reserved.cell) + bytes_of(&reserved.reservations)
        }
        Cell::FixedWindow(_) | Cell::TokenBucket(_) | Cell::TwoBucket(_) => 0,
    }
}

/// Returns `cell` with memory for one more charge, so the charge itself allocates nothing.
pub(super) fn grown(mut cell: Cell) -> Cell {
    grow_cell(&mut cell);
    cell
}

/// Returns `cell` without memory that it does not use.
pub(super) fn fitted(mut cell: Cell) -> Cell {
    admission(&mut cell);
    cell
}

fn admission(cell: &mut Cell) {
    match cell {
        Cell::SlidingWindow(state) => state.blocks.shrink_to_fit(),
        Cell::SlidingLog(state) => state.entries.shrink_to_fit(),
        Cell::Concurrency(state) => state.permits.shrink_to_fit(),
        Cell::Reserved(reserved) => {
            admission(&mut reserved.cell);
            reserved.reservations.shrink_to_fit();
        }
        Cell::FixedWindow(_) | Cell::TokenBucket(_) | Cell::TwoBucket(_) => {}
    }
}

/// Frees the unused memory of `cell` if most of its memory is unused.
fn trim(cell: &mut Cell) {
    match cell {
        Cell::SlidingWindow(state) => shrink(&mut state.blocks),
        Cell::SlidingLog(state) => shrink(&mut state.entries),
        Cell::Concurrency(state) => shrink(&mut state.permits),
        Cell::Reserved(reserved) => {
            trim(&mut reserved.cell);
            shrink(&mut reserved.reservations);
        }
        Cell::FixedWindow(_) | Cell::TokenBucket(_) | Cell::TwoBucket(_) => {}
    }
}

/// Returns the bytes that `cell` must allocate before one more charge fits in it.
pub(super) fn growth_of_cell(cell: &Cell) -> usize {
    match cell {
        Cell::SlidingWindow(state) => growth_of(&state.blocks),
        Cell::SlidingLog(state) => growth_of(&state.entries),
        Cell::Concurrency(state) => growth_of(&state.permits),
        Cell::Reserved(reserved) => {
            growth_of_cell(&reserved.cell) + growth_of(&reserved.reservations)
        }
        Cell::FixedWindow(_) | Cell::TokenBucket(_) | Cell::TwoBucket(_) => 0,
    }
}

/// Allocates the bytes that [`growth_of_cell`] returns for `cell`.
fn grow_cell(cell: &mut Cell) {
    match cell {
        Cell::SlidingWindow(state) => grow(&mut state.blocks),
        Cell::SlidingLog(state) => grow(&mut state.entries),
        Cell::Concurrency(state) => grow(&mut state.permits),
        Cell::Reserved(reserved) => {
            grow_cell(&mut reserved.cell);
            grow(&mut reserved.reservations);
        }
        Cell::FixedWindow(_) | Cell::TokenBucket(_) | Cell::TwoBucket(_) => {}
    }
}

/// Returns all units in `cell`, of every window. The sum is an upper bound of the usage of its
/// subject.
pub(super) fn units_of(cell: &Cell) -> u64 {
    let sum = |units: u64, more: u64| units.saturating_add(more);
    match cell {
        Cell::FixedWindow(state) => state.used,
        Cell::SlidingWindow(state) => state.blocks.iter().map(|block| block.used).fold(0, sum),
        Cell::SlidingLog(state) => state.entries.iter().map(|entry| entry.used).fold(0, sum),
        Cell::TwoBucket(state) => state.previous.saturating_add(state.current),
        Cell::TokenBucket(_) => 0,
        Cell::Concurrency(state) => state.permits.iter().map(|lease| lease.used).fold(0, sum),
        Cell::Reserved(reserved) => units_of(&reserved.cell),
    }
}

fn bytes_of<T>(list: &Vec<T>) -> usize {
    list.capacity() * size_of::<T>()
}

fn growth_of<T>(list: &Vec<T>) -> usize {
    if list.len() < list.capacity() { 0 } else { step(list) * size_of::<T>() }
}

fn grow<T>(list: &mut Vec<T>) {
    if list.len() == list.capacity() {
        list.reserve_exact(step(list));
    }
}

/// Returns the number of items by which a full list grows: half of its length. Growing by a
/// constant factor keeps the mean cost per item small.
fn step<T>(list: &[T]) -> usize {
    (list.len() / 2).max(1)
}

fn shrink<T>(list: &mut Vec<T>) {
    if list.len() < list.capacity() / 4 {
        list.shrink_to(list.len() * 2);
    }
}
