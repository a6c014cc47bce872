//! The bytes of a slot of a [table](crate::table): the key, the expiry and the value of an entry.
//!
//! | bytes | content |
//! | --- | --- |
//! | 0 to 11 | the key: the id of the entry and two zero bytes |
//! | 12 to 15 | the expiry of the entry in seconds by the server's clock, little-endian |
//! | 16 to 31 | the value, or a [`Long`]. The first byte is zero in an empty slot |

use crate::request::{ID_BYTES, Id};

/// The size in bytes of a slot. It is also the unit in which long values are stored.
pub(crate) const UNIT_BYTES: usize = 32;
pub(crate) const KEY_BYTES: usize = 12;
pub(crate) const VALUE_BYTES: usize = 16;
/// The byte offset of the expiry in a slot.
pub(crate) const END: usize = KEY_BYTES;
/// The byte offset of the value in a slot.
pub(crate) const VALUE: usize = END + 4;
/// The first byte of a slot's value if the value is long. The three numbers of [`Long`] follow.
const LONG: u8 = 1;
/// The largest size in bytes of the value of an entry.
pub(crate) const MAX_VALUE: usize = 1 << 20;

pub(crate) type SlotKey = [u8; KEY_BYTES];
pub(crate) type Slot = [u8; UNIT_BYTES];

/// A long value: its length in bytes, the number of its first unit, and its number of units.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Long {
    pub(crate) length: usize,
    pub(crate) unit: usize,
    pub(crate) units: usize,
}

/// Returns the only length at which a value with the first byte `tag` fits into a slot, if any.
#[inline]
pub(crate) const fn short_length(tag: u8) -> Option<usize> {
    match tag {
        b'f' | b't' | b'w' => Some(15),
        b'r' => Some(8),
        _ => None,
    }
}

/// Returns whether a value fits into a slot.
#[inline]
pub(crate) fn is_short(value: &[u8]) -> bool {
    value.first().is_some_and(|tag| short_length(*tag) == Some(value.len()))
}

/// Returns the units for `length` bytes, rounded up to one of four size classes per power of two.
pub(crate) const fn units_of(length: usize) -> usize {
    let units = length.div_ceil(UNIT_BYTES);
    if units <= 8 {
        return units;
    }
    units.next_multiple_of(units.next_power_of_two() / 8)
}

/// Returns the key of the slot that contains the entry `id`.
#[inline]
pub(crate) fn slot_key(id: Id) -> SlotKey {
    let mut key = [0; KEY_BYTES];
    key[..ID_BYTES].copy_from_slice(&id);
    key
}

/// Returns the slot key at the start of `bytes` as two numbers, which sort like the key.
#[inline]
pub(crate) fn order(bytes: &[u8]) -> (u64, u32) {
    let (mut first, mut second) = ([0; 8], [0; 4]);
    first.copy_from_slice(&bytes[..8]);
    second.copy_from_slice(&bytes[8..KEY_BYTES]);
    (u64::from_be_bytes(first), u32::from_be_bytes(second))
}

/// Returns the number of four bytes, little-endian, at the offset `at` of `bytes`.
#[inline]
pub(crate) fn number(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}

impl Long {
    /// Reads the long value of `slot`. Returns `None` if the value is short or its numbers are wrong.
    pub(crate) fn of(slot: &Slot) -> Option<Self> {
        let part = |at| number(slot, VALUE + at) as usize;
        let long = Self { length: part(1), unit: part(5), units: part(9) };
        let fits = long.length <= MAX_VALUE && long.length <= long.units * UNIT_BYTES;
        (slot[VALUE] == LONG && fits).then_some(long)
    }

    /// Returns the value of a slot that refers to this long value.
    pub(crate) fn to_value(self) -> [u8; VALUE_BYTES] {
        let mut value = [0; VALUE_BYTES];
        value[0] = LONG;
        for (at, part) in [(1, self.length), (5, self.unit), (9, self.units)] {
            value[at..at + 4].copy_from_slice(&(part as u32).to_le_bytes());
        }
        value
    }
}
