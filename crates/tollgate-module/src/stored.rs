//! The encoding of the state of one subject, in a key of its own or in a table entry.
//!
//! The values in keys equal those of the Lua script in `tollgate-redis`. A fixed window is stored
//! as a decimal integer: the reset time in ms, followed by six digits of used units. If a fixed
//! window does not fit into such an integer, it is stored as [`Cell::to_bytes`], and so are the
//! states of the other algorithms. A refund that must not be repeated is stored as the letter `r`,
//! followed by the time until which it is remembered. In a table, every fixed window is stored as
//! [`Cell::to_bytes`].

use tollgate_core::algo::{concurrency, fixed_window};
use tollgate_core::{Algorithm, Cell, Limit, MAX_EXACT, Timestamp};

/// The stored state of one subject after it is decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stored {
    /// No state.
    #[default]
    Missing,
    Cell(Cell),
    /// A refund that is remembered until this time.
    Refund(Timestamp),
    /// A value that is neither a cell nor a remembered refund. It counts as discarded state.
    Foreign,
}

/// A stored value before it is decoded.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Loaded<'v> {
    Missing,
    /// A value that is not a string.
    Foreign,
    /// The string in a key, which contains the state of one subject.
    Key(&'v [u8]),
    /// The value of a table entry, and the slot of the entry in its table.
    Entry(&'v [u8], usize),
}

const REFUND: u8 = b'r';
const REFUND_BYTES: usize = 8;
const USED_DIGITS: u64 = 1_000_000;
/// The largest number of digits in the integer of a fixed window.
const MAX_DIGITS: usize = 19;
/// The latest reset time, in ms, for which the integer fits into the signed 64 bits of a server.
const LATEST_RESET: u64 = 9_223_372_036_853;

impl Stored {
    /// Decodes the value of a table entry.
    pub(crate) fn from_entry(bytes: &[u8]) -> Self {
        if let Some(cell) = Cell::from_bytes(bytes) {
            return Self::Cell(cell);
        }
        match bytes {
            [REFUND, until @ ..] if bytes.len() == REFUND_BYTES => {
                let mut wide = [0; 8];
                wide[..7].copy_from_slice(until);
                Self::Refund(Timestamp::from_millis(u64::from_le_bytes(wide)))
            }
            _ => Self::Foreign,
        }
    }

    /// Decodes the value of a key.
    pub(crate) fn from_key(bytes: &[u8]) -> Self {
        window(bytes).map_or_else(|| Self::from_entry(bytes), Self::Cell)
    }

    /// Appends the state to `bytes`, encoded as the value of a table entry. Appends nothing if
    /// there is no state to store.
    pub(crate) fn write_entry(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Cell(cell) if !is_blank(cell) => cell.append_to(bytes),
            Self::Refund(until) => {
                bytes.push(REFUND);
                bytes.extend_from_slice(&until.as_millis().to_le_bytes()[..7]);
            }
            _ => {}
        }
    }

    /// Appends the state to `bytes`, encoded as the value of a key. Appends nothing if there is no
    /// state to store.
    pub(crate) fn write_key(&self, bytes: &mut Vec<u8>) {
        if let Self::Cell(Cell::FixedWindow(window)) = self {
            let (resets_at, used) = (window.resets_at.as_millis(), window.used);
            if used < USED_DIGITS && (1..=LATEST_RESET).contains(&resets_at) {
                let number = resets_at * USED_DIGITS + used;
                bytes.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
                return;
            }
        }
        self.write_entry(bytes);
    }

    /// Takes the state out of this value and returns it as a cell. Returns `None` if there is no
    /// state. A state that is not a cell is returned as a cell of another algorithm than that of
    /// `limit`, so it counts as discarded.
    pub(crate) fn take_for(&mut self, limit: &Limit) -> Option<Cell> {
        match std::mem::take(self) {
            Self::Missing => None,
            Self::Cell(cell) => Some(cell),
            Self::Refund(_) | Self::Foreign => Some(of_another_algorithm(limit)),
        }
    }

    /// Returns a copy of the state if it is a remembered refund or a foreign value. Returns `None`
    /// for a cell and for no state.
    pub(crate) const fn clone_if_foreign(&self) -> Option<Self> {
        match self {
            Self::Refund(until) => Some(Self::Refund(*until)),
            Self::Foreign => Some(Self::Foreign),
            Self::Missing | Self::Cell(_) => None,
        }
    }

    /// Returns whether the location has any state.
    pub(crate) const fn exists(&self) -> bool {
        !matches!(self, Self::Missing)
    }
}

/// Returns a cell of another algorithm than `limit`. Such a cell counts as discarded state.
pub(crate) fn of_another_algorithm(limit: &Limit) -> Cell {
    if matches!(limit.algorithm(), Algorithm::FixedWindow(_)) {
        Cell::Concurrency(concurrency::State { permits: Vec::new() })
    } else {
        Cell::FixedWindow(fixed_window::State { used: 0, resets_at: Timestamp::EPOCH })
    }
}

/// Decodes a fixed window from its decimal integer. Returns `None` if `bytes` are not such an
/// integer.
fn window(bytes: &[u8]) -> Option<Cell> {
    let is_integer = (7..=MAX_DIGITS).contains(&bytes.len())
        && bytes[0] != b'0'
        && bytes.iter().all(u8::is_ascii_digit);
    if !is_integer {
        return None;
    }
    // Nineteen digits fit into 64 bits.
    let number = bytes.iter().fold(0_u64, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    let resets_at = number / USED_DIGITS;
    (resets_at <= LATEST_RESET.min(MAX_EXACT)).then(|| {
        let resets_at = Timestamp::from_millis(resets_at);
        Cell::FixedWindow(fixed_window::State { used: number % USED_DIGITS, resets_at })
    })
}

/// Returns whether a cell contains no blocks, entries or permits. Such a cell need not be stored.
fn is_blank(cell: &Cell) -> bool {
    match cell {
        Cell::SlidingWindow(state) => state.blocks.is_empty(),
        Cell::SlidingLog(state) => state.entries.is_empty(),
        Cell::Concurrency(state) => state.permits.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(used: u64, resets_at: u64) -> Stored {
        let resets_at = Timestamp::from_millis(resets_at);
        Stored::Cell(Cell::FixedWindow(fixed_window::State { used, resets_at }))
    }

    #[test]
    fn values_are_read_as_they_were_written() {
        let states = [
            cell(1, 1_700_000_000_123),
            cell(1_000_000, 5),
            cell(7, 5),
            cell(3, MAX_EXACT),
            cell(0, 0),
            Stored::Refund(Timestamp::from_millis(9)),
        ];
        for state in states {
            let (mut key, mut entry) = (Vec::new(), Vec::new());
            state.write_key(&mut key);
            state.write_entry(&mut entry);
            assert_eq!(
                (Stored::from_key(&key), Stored::from_entry(&entry)),
                (state.clone(), state)
            );
        }
        let mut key = Vec::new();
        cell(1, 1_700_000_000_123).write_key(&mut key);
        assert_eq!(key, b"1700000000123000001");
    }

    #[test]
    fn other_bytes_are_foreign() {
        for bytes in [&b""[..], b"x", b"0123456789", b"123456", b"9999999999999999999", b"r", b"f"]
        {
            assert_eq!(Stored::from_key(bytes), Stored::Foreign, "{bytes:?}");
        }
    }
}
