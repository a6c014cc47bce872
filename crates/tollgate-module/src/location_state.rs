//! The state at one location while a command is executed. A location is a key or a table entry that
//! contains the state of one subject.

use std::ops::Range;

use tollgate_core::decide::{Plain, expires_at};
use tollgate_core::{Cell, Limit, Timestamp};

use crate::stored::{Loaded, Stored};

/// The state at one location (a key or a table entry) while a command is executed.
#[derive(Debug, Default)]
pub(crate) struct LocationState {
    pub(crate) is_loaded: bool,
    pub(crate) existed: bool,
    pub(crate) slot: usize,
    pub(crate) stored: Stored,
    /// The range of the encoded state in `Lists::values`, while the state is not decoded.
    pub(crate) bytes: Option<Range<usize>>,
    /// The last change of the state by this command, if there was one: the index of the charged
    /// limit, and the time of the change.
    pub(crate) changed: Option<(usize, Timestamp)>,
    /// Whether a change moved the time at which the state expires.
    pub(crate) is_end_moved: bool,
}

/// The values that undo a charge on a state of two numbers: the location of the state, and its
/// content before the charge.
#[derive(Debug)]
pub(crate) struct Undo {
    pub(crate) location: usize,
    pub(crate) before: Plain,
    pub(crate) changed: Option<(usize, Timestamp)>,
    pub(crate) is_end_moved: bool,
}

impl LocationState {
    /// Creates the state from a stored value. The bytes of a long sliding window are copied to
    /// `values` and not decoded, because most charges change only the last bytes.
    #[inline]
    pub(crate) fn of(value: Loaded<'_>, values: &mut Vec<u8>) -> Self {
        let mut state = Self { is_loaded: true, ..Self::default() };
        match value {
            Loaded::Missing => return state,
            Loaded::Key(bytes) | Loaded::Entry(bytes, _) if is_long_window(bytes) => {
                let begin = values.len();
                values.extend_from_slice(bytes);
                state.bytes = Some(begin..values.len());
            }
            Loaded::Key(bytes) => state.stored = Stored::from_key(bytes),
            Loaded::Entry(bytes, _) => state.stored = Stored::from_entry(bytes),
            Loaded::Foreign => state.stored = Stored::Foreign,
        }
        state.existed = true;
        if let Loaded::Entry(_, slot) = value {
            state.slot = slot;
        }
        state
    }

    /// Decodes the state from `values`, unless it is already decoded.
    pub(crate) fn decode(&mut self, values: &[u8]) {
        if let Some(bytes) = self.bytes.take() {
            self.stored = Stored::from_key(&values[bytes]);
        }
    }

    /// Returns the time at which the state expires. Returns `None` if the state is not a decoded
    /// cell.
    #[inline]
    pub(crate) fn end(&self, limit: &Limit) -> Option<Timestamp> {
        match &self.stored {
            Stored::Cell(cell) => Some(expires_at(cell, limit)),
            _ => None,
        }
    }

    /// Replaces the state by `state`. This is fastest if both states are of the same algorithm,
    /// which is the usual case.
    #[inline]
    pub(crate) fn replace_plain(&mut self, state: Plain) {
        match (&mut self.stored, state) {
            (Stored::Cell(Cell::FixedWindow(old)), Plain::FixedWindow(new)) => *old = new,
            (Stored::Cell(Cell::TokenBucket(old)), Plain::TokenBucket(new)) => *old = new,
            (stored, new) => *stored = Stored::Cell(new.into()),
        }
    }
}

fn is_long_window(value: &[u8]) -> bool {
    const MANY_BLOCKS: usize = 8;
    value.first() == Some(&b'w') && value.len() > MANY_BLOCKS * 14
}
