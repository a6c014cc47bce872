//! States that consist of two numbers: those of fixed windows and token buckets.

use super::Cell;
use crate::algo::{fixed_window, token_bucket};

/// A state that consists of two numbers. The type is `Copy`, and
/// [`charge_plain`](super::charge_plain) executes charges on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plain {
    /// The state of a fixed window.
    FixedWindow(fixed_window::State),
    /// The state of a token bucket.
    TokenBucket(token_bucket::State),
}

impl From<Plain> for Cell {
    #[inline]
    fn from(state: Plain) -> Self {
        match state {
            Plain::FixedWindow(state) => Self::FixedWindow(state),
            Plain::TokenBucket(state) => Self::TokenBucket(state),
        }
    }
}

impl TryFrom<Cell> for Plain {
    type Error = Cell;

    /// Converts the cell of a fixed window or a token bucket without reservations to its two
    /// numbers.
    ///
    /// # Errors
    /// Returns `cell` itself if it is the state of another algorithm, or if it has reservations.
    fn try_from(cell: Cell) -> Result<Self, Cell> {
        match cell {
            Cell::FixedWindow(state) => Ok(Self::FixedWindow(state)),
            Cell::TokenBucket(state) => Ok(Self::TokenBucket(state)),
            _ => Err(cell),
        }
    }
}
