//! Sliding window: counts the charges in the blocks of the last window.
//!
//! Source: the sub-bucket ("rolling window") counter, as in Hystrix's metrics and Redis recipes.
//! The window is divided into blocks of length `precision`, and whole blocks expire. With
//! `precision = window`, the algorithm equals a fixed window that starts at multiples of its
//! length.

use alloc::vec::Vec;

use super::{CellStep, StepTime, admission_after_expiry, merge_series};
use crate::charge_id::ChargeId;
use crate::charge_position::ChargePosition;
use crate::cost::Cost;
use crate::limit_error::{LimitError, check_range, check_span, check_units};
use crate::reading::{Admission, Reading, StoredState};
use crate::time::{MAX_EXACT, Millis, Timestamp};

/// The largest number of blocks in one window, which bounds the size of one subject's state.
pub const MAX_BLOCKS: u64 = 1_000;

/// A limit of at most `quota` units in the blocks of one window. The window consists of the current
/// block and the blocks before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingWindow {
    quota: u64,
    window: Millis,
    precision: Millis,
}

/// The units of one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The number of the block: the block's start divided by the precision.
    pub number: u64,
    /// The used units of the block. Only the newest block can have zero units. An empty newest
    /// block is kept, because later decisions must not use a time before that block.
    pub used: u64,
}

/// The stored state: the blocks of the last window. Blocks without units are left out, except the
/// newest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The blocks, sorted by number, the oldest first.
    pub blocks: Vec<Block>,
}

/// The sum of a series of blocks: the numbers of the oldest and of the newest block, and the units
/// of all blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeriesSum {
    pub(crate) oldest: u64,
    pub(crate) newest: u64,
    pub(crate) units: u64,
}

impl SlidingWindow {
    /// Creates a limit of `quota` units per `window`. Used units expire in blocks of length
    /// `precision`.
    ///
    /// # Errors
    /// [`LimitError`] if a number is zero or above its largest allowed value, if `precision` is
    /// above `window`, or if the window has more than [`MAX_BLOCKS`] blocks.
    pub fn new(quota: u64, window: Millis, precision: Millis) -> Result<Self, LimitError> {
        check_units("quota", quota)?;
        check_span("window", window)?;
        check_span("precision", precision)?;
        if precision > window {
            return Err(LimitError::PrecisionAboveWindow { precision, window });
        }
        let blocks = window.get().div_ceil(precision.get());
        let because = "the most blocks of window / precision that a subject's state may have";
        check_range("number of blocks", blocks, MAX_BLOCKS, because)?;
        Ok(Self { quota, window, precision })
    }

    /// Returns the units per window.
    #[must_use]
    pub const fn quota(&self) -> u64 {
        self.quota
    }

    /// Returns the length of the window.
    #[must_use]
    pub const fn window(&self) -> Millis {
        self.window
    }

    /// Returns the length of one block.
    #[must_use]
    pub const fn precision(&self) -> Millis {
        self.precision
    }

    /// Returns the number of blocks in a window, including the current block.
    #[must_use]
    pub const fn blocks(&self) -> u64 {
        self.window.get().div_ceil(self.precision.get())
    }

    /// Returns the time from which the units of the block `number` are free again.
    fn leaves_at(&self, number: u64) -> Timestamp {
        let after = number.saturating_add(self.blocks());
        Timestamp::from_millis(after.saturating_mul(self.precision.get()))
    }

    /// Returns the blocks that have not expired, the number of the current block, and whether the
    /// state was missing, present or discarded. The current block is the block of the time of `at`,
    /// or the newest stored block if that is later.
    fn current<'a>(
        &self,
        state: Option<&'a State>,
        at: StepTime,
    ) -> (&'a [Block], u64, StoredState) {
        let head = at.now.as_millis() / self.precision.get();
        let Some(newest) = state.and_then(|state| state.blocks.last()) else {
            return (&[], head, StoredState::Missing);
        };
        let newest_starts = newest.number.saturating_mul(self.precision.get());
        if newest_starts > MAX_EXACT || at.is_from_future(Timestamp::from_millis(newest_starts)) {
            return (&[], head, StoredState::Discarded);
        }
        let head = head.max(newest.number);
        let blocks = state.map_or(&[][..], |state| &state.blocks);
        let left =
            blocks.partition_point(|block| block.number.saturating_add(self.blocks()) <= head);
        let found = if left < blocks.len() { StoredState::Present } else { StoredState::Missing };
        (&blocks[left..], head, found)
    }
}

impl SlidingWindow {
    /// Returns the reading after an admitted charge, for the case that a second charge of the same
    /// cost would also fit. `used` is the number of units in all blocks, including the admitted
    /// charge. `newest` is the number of the newest block.
    fn reading_with_room(&self, used: u64, newest: u64) -> Reading {
        Reading {
            admission: Admission::Now,
            fits_again: Admission::Now,
            used,
            full_reset_at: self.leaves_at(newest),
            position: ChargePosition(newest),
            found: StoredState::Present,
            ..Reading::default()
        }
    }

    /// Returns the reading after a charge of `cost` on the newest block, computed only from `sum`,
    /// the sum of all blocks. The caller adds the cost to the stored block. Returns `None` if a
    /// block has expired, if a new block has to begin, or if the next charge of the same cost would
    /// have to wait.
    pub(crate) fn charge_newest(
        &self,
        sum: SeriesSum,
        cost: Cost,
        at: StepTime,
    ) -> Option<Reading> {
        let head = at.now.as_millis() / self.precision.get();
        let newest_starts = sum.newest.saturating_mul(self.precision.get());
        let is_current = head <= sum.newest
            && newest_starts <= MAX_EXACT
            && !at.is_from_future(Timestamp::from_millis(newest_starts))
            && sum.oldest.saturating_add(self.blocks()) > sum.newest;
        let used = sum.units.saturating_add(cost.get());
        let has_room = used.saturating_add(cost.needed()) <= self.quota.min(MAX_EXACT);
        let is_charge = cost != Cost::PEEK;
        (is_current && has_room && is_charge).then(|| self.reading_with_room(used, sum.newest))
    }
}

impl CellStep for SlidingWindow {
    type State = State;

    fn read(&self, state: Option<&State>, cost: Cost, at: StepTime) -> Reading {
        let (blocks, head, found) = self.current(state, at);
        let used = blocks.iter().fold(0_u64, |sum, block| sum.saturating_add(block.used));
        let leaving = blocks.iter().map(|block| (block.used, self.leaves_at(block.number)));
        let admission = admission_after_expiry(self.quota, used, cost.needed(), leaving);
        Reading {
            admission,
            fits_again: admission,
            used: used.min(MAX_EXACT),
            full_reset_at: blocks
                .iter()
                .rfind(|block| block.used > 0)
                .map_or(at.now, |block| self.leaves_at(block.number)),
            position: ChargePosition(head),
            refunded: 0,
            added: 0,
            reserved: 0,
            found,
        }
    }

    fn charge(&self, state: Option<State>, cost: Cost, _id: ChargeId, at: StepTime) -> State {
        let (blocks, head, _) = self.current(state.as_ref(), at);
        let counted = blocks.len();
        let mut blocks = state.map(|state| state.blocks).unwrap_or_default();
        blocks.drain(..blocks.len() - counted);
        match blocks.last_mut() {
            Some(block) if block.number == head => {
                block.used = block.used.saturating_add(cost.get()).min(MAX_EXACT);
            }
            _ if cost != Cost::PEEK => {
                blocks.pop_if(|block| block.used == 0);
                blocks.push(Block { number: head, used: cost.get() });
            }
            _ => {}
        }
        State { blocks }
    }

    /// Computes the reading from `before` and `cost`, without adding up the blocks again. If the
    /// next charge of the same cost would have to wait for blocks to expire, the method reads all
    /// blocks.
    fn read_after(&self, before: &Reading, state: &State, cost: Cost, at: StepTime) -> Reading {
        let used = before.used.saturating_add(cost.get());
        let fits = used.saturating_add(cost.needed()) <= self.quota.min(MAX_EXACT);
        match state.blocks.last() {
            Some(newest) if fits && newest.used > 0 && before.found != StoredState::Discarded => {
                self.reading_with_room(used, newest.number)
            }
            _ => self.read(Some(state), cost, at),
        }
    }

    fn refund(
        &self,
        state: &mut State,
        cost: Cost,
        position: ChargePosition,
        _id: ChargeId,
        at: StepTime,
    ) -> u64 {
        let (blocks, _, _) = self.current(Some(state), at);
        let counted = blocks.len();
        let first = state.blocks.len() - counted;
        let Some(index) = state.blocks.iter().position(|block| block.number == position.0) else {
            return 0;
        };
        if index < first {
            return 0;
        }
        let block = &mut state.blocks[index];
        let refunded = cost.get().min(block.used);
        block.used -= refunded;
        // The newest block is kept even if it is empty. Without that block, a decision could use an
        // earlier time, although blocks that were valid at that time are already removed.
        if block.used == 0 && index + 1 < state.blocks.len() {
            state.blocks.remove(index);
        }
        refunded
    }

    fn join(&self, one: State, other: State) -> State {
        let larger = |a: Block, b: Block| Block { used: a.used.max(b.used), ..a };
        let mut blocks = merge_series(&one.blocks, &other.blocks, |block| block.number, larger);
        keep_newest_of_empty(&mut blocks);
        State { blocks }
    }

    fn expires_at(&self, state: &State) -> Timestamp {
        state.blocks.last().map_or(Timestamp::EPOCH, |block| self.leaves_at(block.number))
    }

    fn refundable_until(&self, position: ChargePosition) -> Timestamp {
        self.leaves_at(position.0)
    }
}

/// Removes every block without units, except the newest block.
fn keep_newest_of_empty(blocks: &mut Vec<Block>) {
    let newest = blocks.last().map(|block| block.number);
    blocks.retain(|block| block.used > 0 || Some(block.number) == newest);
}
