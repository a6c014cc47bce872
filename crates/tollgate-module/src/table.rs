//! A packed table of the states of many subjects. A table is the value of one string key.
//!
//! A table consists of a header of 64 bytes, [slots](crate::slot) of 32 bytes, and the long values.
//! The numbers in the header are little-endian.
//!
//! - Slots use Robin Hood hashing: entries are ordered by their home slot and then by their key.
//!   Two tables with the same short entries and the same number of slots have equal bytes.
//! - A value of more than sixteen bytes is behind the slots, in units of 32 bytes. Its number of
//!   units is rounded up to a size class. If the value outgrows its units, it moves to the end, and
//!   its old units are unused until the table is rebuilt.
//! - A sweep removes the expired entries of a few slots. Growth removes all expired entries.
//! - The code does not trust the bytes. At worst, bytes of another program give wrong answers.

use crate::request::{ID_BYTES, Id};
use crate::slot::{
    END, KEY_BYTES, Long, MAX_VALUE, Slot, SlotKey, UNIT_BYTES, VALUE, VALUE_BYTES, is_short,
    number, order, short_length, slot_key, units_of,
};

/// The largest number of units of 32 bytes in a table, including its slots: 8 MiB.
pub(crate) const MAX_UNITS: usize = (1 << 18) - HEADER_UNITS - 1;

const MAGIC: [u8; 4] = *b"tgt1";
const HEADER_UNITS: usize = 2;
const HEADER_BYTES: usize = HEADER_UNITS * UNIT_BYTES;
const FEWEST_SLOTS: usize = 8;

/// The byte offset, in the header, of the number of used slots.
const USED: usize = 4;
const SWEPT: usize = 8;
const LAST_END: usize = 12;
const TABLES: usize = 16;
const SLOTS: usize = 20;
/// The byte offset, in the header, of the number of units that long values occupy.
const TAKEN: usize = 24;

/// The error of an operation for which a table has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoRoom;

/// An amount of room in a table: a number of slots, and a number of units for long values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) slots: usize,
    pub(crate) units: usize,
}

impl Room {
    /// Returns the room that a new entry with `value` needs. An empty `value` needs no room.
    pub(crate) fn of(value: &[u8]) -> Self {
        let units = if is_short(value) { 0 } else { units_of(value.len()) };
        Self { slots: usize::from(!value.is_empty()), units }
    }
}

/// A table in the bytes of a string.
#[derive(Debug)]
pub(crate) struct Table<B> {
    bytes: B,
    slots: usize,
}

impl<B: AsRef<[u8]>> Table<B> {
    /// Opens a table. Returns `None` if `bytes` are not a table of this version.
    pub(crate) fn open(bytes: B) -> Option<Self> {
        let header: &[u8; HEADER_BYTES] = bytes.as_ref().first_chunk()?;
        let slots = number(header, SLOTS) as usize;
        let units = (bytes.as_ref().len() - HEADER_BYTES) / UNIT_BYTES;
        let is_table = header.starts_with(&MAGIC)
            && (FEWEST_SLOTS..=MAX_UNITS).contains(&slots)
            && (slots..=MAX_UNITS).contains(&units);
        is_table.then_some(Self { bytes, slots })
    }

    /// Returns the value of the entry `id` and its slot, or `None` if there is no such entry.
    #[inline]
    pub(crate) fn read(&self, id: Id) -> Option<(&[u8], usize)> {
        let at = self.find(&slot_key(id)).ok()?;
        let slot = self.slot(at);
        let value = match short_length(slot[VALUE]) {
            Some(length) => &slot[VALUE..VALUE + length],
            None => self.long(Long::of(slot)?)?,
        };
        Some((value, at))
    }

    fn long(&self, long: Long) -> Option<&[u8]> {
        let begin = self.begin_of(long.unit);
        self.bytes.as_ref().get(begin..begin + long.length)
    }

    /// Returns the number of used slots.
    pub(crate) fn used(&self) -> usize {
        (self.header(USED) as usize).min(self.slots)
    }

    /// Returns the size of the table in units of 32 bytes.
    pub(crate) fn units(&self) -> usize {
        (self.bytes.as_ref().len() - HEADER_BYTES) / UNIT_BYTES
    }

    /// Returns the number of used slots plus the number of units that long values occupy.
    pub(crate) fn filled(&self) -> usize {
        self.used().saturating_add(self.header(TAKEN) as usize)
    }

    /// Returns the time in seconds at which the whole table expires.
    pub(crate) fn last_end(&self) -> u32 {
        self.header(LAST_END)
    }

    /// Returns the number of tables of the server, which the first table contains.
    pub(crate) fn tables(&self) -> usize {
        (self.header(TABLES) as usize).max(1)
    }

    /// Returns the additional room for `value` in the entry `id`, which is probably in slot `near`.
    pub(crate) fn room_for(&self, near: usize, id: Id, value: &[u8]) -> Room {
        let key = slot_key(id);
        let found = if self.holds(near, &key) { Some(near) } else { self.find(&key).ok() };
        let taken = found.and_then(|at| Long::of(self.slot(at))).map_or(0, |long| long.units);
        let Room { slots, units } = Room::of(value);
        let units = if units <= taken { 0 } else { units };
        Room { slots: if found.is_some() { 0 } else { slots }, units }
    }

    /// Returns whether the table has the free room `more`, so it need not be rebuilt.
    pub(crate) fn has_room(&self, more: Room) -> bool {
        let taken = self.header(TAKEN) as usize;
        (more.slots == 0 || (self.used() + more.slots) * 10 <= self.slots * 9)
            && (more.units == 0 || taken + more.units <= self.units() - self.slots)
    }

    /// Returns a new table with the free room `more` and the entries whose ids `keeps` accepts,
    /// except those that expired by `now` (in s). Fails if it needs more than [`MAX_UNITS`].
    pub(crate) fn rebuilt(
        &self,
        more: Room,
        now: u32,
        keeps: impl Fn(&Id) -> bool,
    ) -> Result<Vec<u8>, NoRoom> {
        let kept = |at: &usize| {
            let id = self.slot(*at).first_chunk::<ID_BYTES>();
            !self.is_empty(*at) && self.end(*at) > now && id.is_some_and(&keeps)
        };
        let mut needed = more;
        for at in (0..self.slots).filter(kept) {
            needed.slots += 1;
            needed.units += Long::of(self.slot(at)).map_or(0, |long| units_of(long.length));
        }
        let mut table = Table::<Vec<u8>>::with_room(needed)?;
        for at in (0..self.slots).filter(kept) {
            let slot = self.slot(at);
            let id = slot.first_chunk::<ID_BYTES>().ok_or(NoRoom)?;
            match Long::of(slot) {
                Some(long) => {
                    let Some(value) = self.long(long) else { continue };
                    table.set(0, *id, value, |_| self.end(at))?;
                }
                None => {
                    let key = slot_key(*id);
                    let location = table.find(&key).err().flatten().ok_or(NoRoom)?;
                    table.insert(location, &key, self.end(at), &slot[VALUE..])?;
                }
            }
        }
        table.set_header(LAST_END, self.last_end());
        table.set_header(TABLES, self.header(TABLES));
        Ok(table.bytes)
    }

    fn header(&self, at: usize) -> u32 {
        number(self.bytes.as_ref(), at)
    }

    #[inline]
    fn slot(&self, at: usize) -> &Slot {
        const EMPTY: Slot = [0; UNIT_BYTES];
        let begin = HEADER_BYTES + at * UNIT_BYTES;
        self.bytes.as_ref()[begin..].first_chunk().unwrap_or(&EMPTY)
    }

    fn begin_of(&self, unit: usize) -> usize {
        HEADER_BYTES + (self.slots + unit) * UNIT_BYTES
    }

    fn end(&self, at: usize) -> u32 {
        number(self.slot(at), END)
    }

    fn is_empty(&self, at: usize) -> bool {
        self.slot(at)[VALUE] == 0
    }

    #[inline]
    fn holds(&self, at: usize, key: &SlotKey) -> bool {
        at < self.slots && {
            let slot = self.slot(at);
            slot[VALUE] != 0 && slot.first_chunk() == Some(key)
        }
    }

    /// Returns the home slot of a key: the slot in which a search for the key begins.
    fn home(&self, key: &[u8]) -> usize {
        let mut head = [0; 4];
        head.copy_from_slice(&key[..4]);
        ((u64::from(u32::from_be_bytes(head)) * self.slots as u64) >> 32) as usize
    }

    const fn next(&self, at: usize) -> usize {
        if at + 1 == self.slots { 0 } else { at + 1 }
    }

    /// Returns how many slots the entry in the slot `at` is behind its home slot.
    fn distance(&self, at: usize) -> usize {
        let home = self.home(self.slot(at));
        if at >= home { at - home } else { at + self.slots - home }
    }

    /// Returns the slot of `key`. If no slot contains `key`, returns as an error the slot at which
    /// to insert it, or `None` if no slot is free. Home slots are in the order of the keys, so a
    /// greater key belongs behind `key`, except that entries at the start of the table can have a
    /// home slot at its end.
    #[inline]
    fn find(&self, key: &SlotKey) -> Result<usize, Option<usize>> {
        let (home, order) = (self.home(key), order(key));
        let mut at = home;
        for _ in 0..self.slots {
            let slot = self.slot(at);
            if slot[VALUE] == 0 {
                return Err(Some(at));
            }
            let other = self::order(slot);
            if other == order {
                return Ok(at);
            }
            let is_behind = if at >= home {
                other > order && self.home(slot) <= at
            } else {
                other > order || self.home(slot) <= at
            };
            if is_behind {
                return Err(Some(at));
            }
            at = self.next(at);
        }
        Err(None)
    }
}

impl Table<Vec<u8>> {
    /// Creates an empty table with room for `used`. After that room is used, at most 21/25 of the
    /// slots and four fifths of the units for long values are full.
    ///
    /// With the header of a string, the table has the size of one of the size classes of the
    /// servers' allocator, of which there are four for each power of two.
    pub(crate) fn with_room(used: Room) -> Result<Self, NoRoom> {
        let slots = used.slots.saturating_mul(25).div_ceil(21).max(FEWEST_SLOTS);
        let units = used.units.saturating_mul(5).div_ceil(4);
        if slots.saturating_add(units) > MAX_UNITS {
            return Err(NoRoom);
        }
        // The header of the server's string takes one further unit.
        let headers = HEADER_UNITS + 1;
        let least = slots + units + headers;
        let step = (least.next_power_of_two() / 8).max(1);
        let all = least.next_multiple_of(step).saturating_sub(headers).min(MAX_UNITS);
        let slots = if units == 0 { all } else { slots };
        let mut bytes = vec![0; HEADER_BYTES + all * UNIT_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        let mut table = Self { bytes, slots };
        table.set_header(SLOTS, slots as u32);
        Ok(table)
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Table<B> {
    /// Sets the value of the entry `id`; an empty value removes the entry. The search begins in the
    /// slot `near`. `end` computes the new expiry in seconds from the present expiry.
    #[inline]
    pub(crate) fn set(
        &mut self,
        near: usize,
        id: Id,
        value: &[u8],
        end: impl FnOnce(Option<u32>) -> u32,
    ) -> Result<(), NoRoom> {
        let key = slot_key(id);
        let found = if self.holds(near, &key) { Ok(near) } else { self.find(&key) };
        let end = end(found.ok().map(|at| self.end(at)));
        if value.is_empty() {
            found.into_iter().for_each(|at| self.remove(at));
            return Ok(());
        }
        let mut slot = [0; VALUE_BYTES];
        if is_short(value) {
            slot[..value.len()].copy_from_slice(value);
        } else {
            slot = self.write_long(found.ok(), value)?.to_value();
        }
        match found {
            Ok(at) => {
                self.overwrite(at, end, &slot);
                Ok(())
            }
            Err(at) => self.insert(at.ok_or(NoRoom)?, &key, end, &slot),
        }
    }

    /// Writes a long value into the units of the value in slot `before`, or new ones if too few.
    fn write_long(&mut self, before: Option<usize>, value: &[u8]) -> Result<Long, NoRoom> {
        let (length, units) = (value.len(), units_of(value.len()));
        let known = before.and_then(|at| Long::of(self.slot(at)));
        let known = known.filter(|long| long.units >= units);
        let taken = self.header(TAKEN) as usize;
        let (unit, units) = known.map_or((taken, units), |long| (long.unit, long.units));
        let begin = self.begin_of(unit);
        if length > MAX_VALUE || begin + units * UNIT_BYTES > self.bytes.as_ref().len() {
            return Err(NoRoom);
        }
        self.bytes.as_mut()[begin..begin + length].copy_from_slice(value);
        if known.is_none() {
            self.set_header(TAKEN, (taken + units) as u32);
        }
        Ok(Long { length, unit, units })
    }

    /// Sets the time in seconds at which the whole table expires.
    pub(crate) fn set_last_end(&mut self, end: u32) {
        self.set_header(LAST_END, end);
    }

    /// Sets the number of tables of the server, which the first table contains.
    pub(crate) fn set_tables(&mut self, tables: usize) {
        self.set_header(TABLES, tables as u32);
    }

    /// Removes the expired entries in the `slots` slots that follow those of the last sweep.
    pub(crate) fn sweep(&mut self, slots: usize, now: u32) {
        let mut at = self.header(SWEPT) as usize % self.slots;
        for _ in 0..slots {
            if !self.is_empty(at) && self.end(at) < now {
                self.remove(at);
            } else {
                at = self.next(at);
            }
        }
        self.set_header(SWEPT, at as u32);
    }

    fn set_header(&mut self, at: usize, number: u32) {
        self.bytes.as_mut()[at..at + 4].copy_from_slice(&number.to_le_bytes());
    }

    #[inline]
    fn slot_mut(&mut self, at: usize) -> &mut [u8] {
        let begin = HEADER_BYTES + at * UNIT_BYTES;
        &mut self.bytes.as_mut()[begin..begin + UNIT_BYTES]
    }

    #[inline]
    fn overwrite(&mut self, at: usize, end: u32, value: &[u8]) {
        let slot = self.slot_mut(at);
        slot[END..VALUE].copy_from_slice(&end.to_le_bytes());
        slot[VALUE..].copy_from_slice(value);
    }

    /// Inserts an entry at the slot `at`. Moves the entries up to the next empty slot by one.
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
        self.set_header(USED, (self.used() + 1) as u32);
        self.overwrite(at, end, value);
        Ok(())
    }

    /// Empties the slot `at`, and moves the entries after it closer to their home slots.
    fn remove(&mut self, mut at: usize) {
        for _ in 0..self.slots {
            let next = self.next(at);
            if self.is_empty(next) || self.distance(next) == 0 {
                break;
            }
            self.copy_slot(next, at);
            at = next;
        }
        self.slot_mut(at).fill(0);
        self.set_header(USED, self.used().saturating_sub(1) as u32);
        if self.used() == 0 {
            self.set_header(TAKEN, 0);
        }
    }

    fn copy_slot(&mut self, from: usize, to: usize) {
        let begin = HEADER_BYTES + from * UNIT_BYTES;
        let to = HEADER_BYTES + to * UNIT_BYTES;
        self.bytes.as_mut().copy_within(begin..begin + UNIT_BYTES, to);
    }
}

#[cfg(test)]
#[path = "table/tests.rs"] // The fuzz targets include this file by its path.
mod tests;
