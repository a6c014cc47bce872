//! A packed table of many subjects, which is the value of one string key.
//!
//! A header of 32 bytes, then slots of 32 bytes: an id of twelve bytes, the end of the entry in
//! seconds by the server's clock (four bytes), and the value (sixteen bytes, the first of which is
//! zero in an empty slot). Numbers in the header and the ends are little-endian.
//!
//! - Slots use Robin Hood hashing: entries are ordered by their home slot and then by their id. Two
//!   tables with the same entries and the same number of slots are therefore equal bytes.
//! - A value of more than sixteen bytes continues in the slots with the following ids.
//! - Every write removes expired entries of [`SWEEP`] slots. Growth removes all of them.
//! - Nothing in this module trusts the bytes: a table that another program wrote gives wrong
//!   answers at worst.

use crate::request::{ID_BYTES, Id};

/// The most slots of a table: 16 MiB.
pub(crate) const MAX_SLOTS: usize = (1 << 19) - 2;
/// The slots that each write checks for expired entries.
pub(crate) const SWEEP: usize = 8;

const MAGIC: [u8; 4] = *b"tgt1";
const HEADER_BYTES: usize = 32;
const SLOT_BYTES: usize = 32;
const KEY_BYTES: usize = 12;
const VALUE_BYTES: usize = 16;
/// The first byte of a value that continues in the next slots; its length follows.
const LONG: u8 = 1;
/// The first byte of a continued value.
const REST: u8 = 2;
const LONG_HEAD: usize = VALUE_BYTES - 5;
const LONG_REST: usize = VALUE_BYTES - 1;
const FEWEST_SLOTS: usize = 8;

type SlotKey = [u8; KEY_BYTES];

/// The reason why an entry was not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoRoom;

/// A table in borrowed bytes.
#[derive(Debug)]
pub(crate) struct Table<B> {
    bytes: B,
    slots: usize,
}

/// Returns the number of slots that a value needs.
pub(crate) const fn slots_of(value: usize) -> usize {
    if value <= VALUE_BYTES {
        return 1;
    }
    1 + value.saturating_sub(LONG_HEAD).div_ceil(LONG_REST)
}

/// Returns the length of a value that fits into one slot, from its first byte.
const fn short_length(tag: u8) -> Option<usize> {
    match tag {
        b'f' | b't' => Some(15),
        b'r' => Some(8),
        _ => None,
    }
}

fn slot_key(id: Id, part: usize) -> SlotKey {
    let mut key = [0; KEY_BYTES];
    key[..ID_BYTES].copy_from_slice(&id);
    key[ID_BYTES..].copy_from_slice(&(part as u16).to_be_bytes());
    key
}

/// Writes one part of a value that continues in several slots.
fn write_part(slot: &mut [u8; VALUE_BYTES], value: &[u8], part: usize) {
    let (first, rest) = value.split_at(value.len().min(LONG_HEAD));
    if part == 0 {
        slot[0] = LONG;
        slot[1..5].copy_from_slice(&(value.len() as u32).to_le_bytes());
        slot[5..5 + first.len()].copy_from_slice(first);
    } else {
        let rest = rest.chunks(LONG_REST).nth(part - 1).unwrap_or_default();
        slot[0] = REST;
        slot[1..=rest.len()].copy_from_slice(rest);
    }
}

impl<B: AsRef<[u8]>> Table<B> {
    /// Opens a table; returns `None` if the bytes are none of this version.
    pub(crate) fn open(bytes: B) -> Option<Self> {
        let all = bytes.as_ref();
        let slots = all.len().checked_sub(HEADER_BYTES)? / SLOT_BYTES;
        let is_table = all.starts_with(&MAGIC)
            && all.len() == HEADER_BYTES + slots * SLOT_BYTES
            && (FEWEST_SLOTS..=MAX_SLOTS).contains(&slots);
        is_table.then_some(Self { bytes, slots })
    }

    /// Returns what `decode` makes of the value of `id`, if there is one, and its slot.
    pub(crate) fn read<T>(&self, id: Id, decode: impl FnOnce(&[u8]) -> T) -> Option<(T, usize)> {
        let at = self.find(&slot_key(id, 0)).ok()?;
        let value = self.value(at);
        if value[0] == LONG {
            return self.long(id, at).map(|whole| (decode(&whole), at));
        }
        short_length(value[0]).map(|length| (decode(&value[..length]), at))
    }

    /// Returns a value that begins in the slot `at` and continues in the next ones.
    fn long(&self, id: Id, mut at: usize) -> Option<Vec<u8>> {
        let value = self.value(at);
        let mut length = [0; 4];
        length.copy_from_slice(&value[1..5]);
        let length = u32::from_le_bytes(length) as usize;
        if slots_of(length) > self.slots {
            return None;
        }
        let mut whole = Vec::with_capacity(length + LONG_REST);
        whole.extend_from_slice(&value[5..]);
        for part in 1..slots_of(length) {
            at = self.next(at);
            let (tag, rest) = self.value(at).split_first()?;
            if *tag != REST || !self.holds(at, &slot_key(id, part)) {
                return None;
            }
            whole.extend_from_slice(rest);
        }
        whole.truncate(length);
        Some(whole)
    }

    fn holds(&self, at: usize, key: &SlotKey) -> bool {
        !self.is_empty(at) && self.slot(at)[..KEY_BYTES] == key[..]
    }

    fn is_of(&self, at: usize, id: Id) -> bool {
        !self.is_empty(at) && self.slot(at)[..ID_BYTES] == id
    }

    /// Returns the number of used slots.
    pub(crate) fn used(&self) -> usize {
        (self.header(4) as usize).min(self.slots)
    }

    /// Returns the time in seconds at which the whole table expires.
    pub(crate) fn last_end(&self) -> u32 {
        self.header(12)
    }

    /// Returns whether so many more slots can be used before the table has to grow.
    pub(crate) fn has_room(&self, more: usize) -> bool {
        (self.used() + more) * 10 <= self.slots * 9
    }

    /// Returns a table with the entries that have not ended at `now` and room for `more` slots, or
    /// [`NoRoom`] if that is more than [`MAX_SLOTS`].
    pub(crate) fn rebuilt(&self, more: usize, now: u32) -> Result<Vec<u8>, NoRoom> {
        let is_live = |at: &usize| !self.is_empty(*at) && self.end(*at) > now;
        let live = (0..self.slots).filter(is_live).count();
        let mut table = Table::<Vec<u8>>::with_room(live + more)?;
        let mut before: Option<(SlotKey, usize)> = None;
        for at in (0..self.slots).filter(is_live) {
            let mut key = [0; KEY_BYTES];
            key.copy_from_slice(&self.slot(at)[..KEY_BYTES]);
            // A later slot of a long value follows the one before, so nothing is searched.
            let is_next = |other: &SlotKey| other[..ID_BYTES] == key[..ID_BYTES];
            let place = match before.filter(|(other, _)| is_next(other)) {
                Some((_, slot)) => Some(table.next(slot)),
                None => table.find(&key).err().ok_or(NoRoom)?,
            };
            let place = place.ok_or(NoRoom)?;
            table.insert(place, &key, self.end(at), self.value(at))?;
            before = Some((key, place));
        }
        table.set_header(12, self.last_end());
        Ok(table.bytes)
    }

    fn header(&self, at: usize) -> u32 {
        let mut number = [0; 4];
        number.copy_from_slice(&self.bytes.as_ref()[at..at + 4]);
        u32::from_le_bytes(number)
    }

    fn slot(&self, at: usize) -> &[u8] {
        let begin = HEADER_BYTES + at * SLOT_BYTES;
        &self.bytes.as_ref()[begin..begin + SLOT_BYTES]
    }

    fn value(&self, at: usize) -> &[u8] {
        &self.slot(at)[KEY_BYTES + 4..]
    }

    fn end(&self, at: usize) -> u32 {
        let mut number = [0; 4];
        number.copy_from_slice(&self.slot(at)[KEY_BYTES..KEY_BYTES + 4]);
        u32::from_le_bytes(number)
    }

    fn is_empty(&self, at: usize) -> bool {
        self.value(at)[0] == 0
    }

    /// Returns the slot in which the search for a key begins.
    fn home(&self, key: &[u8]) -> usize {
        let mut head = [0; 4];
        head.copy_from_slice(&key[..4]);
        ((u64::from(u32::from_be_bytes(head)) * self.slots as u64) >> 32) as usize
    }

    const fn next(&self, at: usize) -> usize {
        if at + 1 == self.slots { 0 } else { at + 1 }
    }

    /// Returns the slot that is `steps` after `at`; `steps` is at most the number of slots.
    const fn after(&self, at: usize, steps: usize) -> usize {
        let at = at + steps;
        if at >= self.slots { at - self.slots } else { at }
    }

    /// Returns how far the entry in `at` is from its home.
    fn distance(&self, at: usize) -> usize {
        let home = self.home(self.slot(at));
        if at >= home { at - home } else { at + self.slots - home }
    }

    /// Returns the slot of `key`, or the slot before which it belongs, if there is one.
    fn find(&self, key: &SlotKey) -> Result<usize, Option<usize>> {
        let mut at = self.home(key);
        for distance in 0..self.slots {
            if self.is_empty(at) {
                return Err(Some(at));
            }
            let slot = &self.slot(at)[..KEY_BYTES];
            if slot == key {
                return Ok(at);
            }
            let other = self.distance(at);
            if other < distance || (other == distance && slot > &key[..]) {
                return Err(Some(at));
            }
            at = self.next(at);
        }
        Err(None)
    }
}

impl Table<Vec<u8>> {
    /// Creates an empty table in which so many slots use at most 21 of 25.
    ///
    /// With a string's own header, its size is one of the size classes of the servers' allocator:
    /// four for each power of two.
    pub(crate) fn with_room(used: usize) -> Result<Self, NoRoom> {
        let needed = used.saturating_mul(25).div_ceil(21).max(FEWEST_SLOTS);
        if needed > MAX_SLOTS {
            return Err(NoRoom);
        }
        // The string's header and the table's take two slots.
        let least = needed + 2;
        let step = (least.next_power_of_two() / 8).max(1);
        let slots = least.next_multiple_of(step).saturating_sub(2).min(MAX_SLOTS);
        let mut bytes = vec![0; HEADER_BYTES + slots * SLOT_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        Ok(Self { bytes, slots })
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Table<B> {
    /// Sets the value of `id`; an empty value removes it. The search begins in the slot `near`,
    /// where the entry was read. `end` returns the end in seconds, from the end until now.
    pub(crate) fn set(
        &mut self,
        near: usize,
        id: Id,
        value: &[u8],
        end: impl FnOnce(Option<u32>) -> u32,
    ) -> Result<(), NoRoom> {
        let parts = if value.is_empty() { 0 } else { slots_of(value.len()) };
        if parts > self.slots.min(usize::from(u16::MAX)) {
            return Err(NoRoom);
        }
        let key = slot_key(id, 0);
        let is_near = near < self.slots && self.holds(near, &key);
        let found = if is_near { Ok(near) } else { self.find(&key) };
        let end = end(found.ok().map(|at| self.end(at)));
        let first = found.or_else(|at| at.ok_or(NoRoom))?;
        // The slots of an id follow each other: they have one home, and no other id is between
        // them. A sweep may have removed some of them.
        let mut before = 0;
        while before < parts && self.holds(self.after(first, before), &slot_key(id, before)) {
            before += 1;
        }
        let rest = self.after(first, before);
        while self.is_of(rest, id) {
            self.remove_slot(rest);
        }
        let is_short = value.first().is_some_and(|tag| short_length(*tag) == Some(value.len()));
        for part in 0..parts {
            let at = self.after(first, part);
            let mut slot = [0; VALUE_BYTES];
            if is_short {
                slot[..value.len()].copy_from_slice(value);
            } else {
                write_part(&mut slot, value, part);
            }
            if part < before {
                self.overwrite(at, end, &slot);
            } else {
                self.insert(at, &slot_key(id, part), end, &slot)?;
            }
        }
        Ok(())
    }

    /// Sets the time in seconds at which the whole table expires.
    pub(crate) fn set_last_end(&mut self, end: u32) {
        self.set_header(12, end);
    }

    /// Removes the entries of the next few slots that ended before `now`.
    pub(crate) fn sweep(&mut self, now: u32) {
        let mut at = self.header(8) as usize % self.slots;
        for _ in 0..SWEEP {
            if !self.is_empty(at) && self.end(at) < now {
                self.remove_slot(at);
            } else {
                at = self.next(at);
            }
        }
        self.set_header(8, at as u32);
    }

    fn set_header(&mut self, at: usize, number: u32) {
        self.bytes.as_mut()[at..at + 4].copy_from_slice(&number.to_le_bytes());
    }

    fn slot_mut(&mut self, at: usize) -> &mut [u8] {
        let begin = HEADER_BYTES + at * SLOT_BYTES;
        &mut self.bytes.as_mut()[begin..begin + SLOT_BYTES]
    }

    fn overwrite(&mut self, at: usize, end: u32, value: &[u8]) {
        let slot = self.slot_mut(at);
        slot[KEY_BYTES..KEY_BYTES + 4].copy_from_slice(&end.to_le_bytes());
        slot[KEY_BYTES + 4..].copy_from_slice(value);
    }

    /// Inserts a slot at `at`, where it belongs, and moves the slots from there on by one.
    fn insert(&mut self, at: usize, key: &SlotKey, end: u32, value: &[u8]) -> Result<(), NoRoom> {
        let mut hole = at;
        let mut steps = 0;
        while !self.is_empty(hole) {
            hole = self.next(hole);
            steps += 1;
            if steps >= self.slots {
                return Err(NoRoom);
            }
        }
        while hole != at {
            let before = if hole == 0 { self.slots - 1 } else { hole - 1 };
            self.copy_slot(before, hole);
            hole = before;
        }
        self.slot_mut(at)[..KEY_BYTES].copy_from_slice(key);
        self.set_header(4, (self.used() + 1) as u32);
        self.overwrite(at, end, value);
        Ok(())
    }

    /// Empties a slot and moves the entries after it closer to their homes.
    fn remove_slot(&mut self, mut at: usize) {
        for _ in 0..self.slots {
            let next = self.next(at);
            if self.is_empty(next) || self.distance(next) == 0 {
                break;
            }
            self.copy_slot(next, at);
            at = next;
        }
        self.slot_mut(at).fill(0);
        self.set_header(4, self.used().saturating_sub(1) as u32);
    }

    fn copy_slot(&mut self, from: usize, to: usize) {
        let begin = HEADER_BYTES + from * SLOT_BYTES;
        let to = HEADER_BYTES + to * SLOT_BYTES;
        self.bytes.as_mut().copy_within(begin..begin + SLOT_BYTES, to);
    }
}

#[cfg(test)]
mod tests;
