//! An open-addressing hash table. The keys are hashes, so the table does not hash the keys again.
//!
//! The table uses linear probing with the Robin Hood rule (Celis, 1986): an entry farther from its
//! home slot takes the slot of an entry that is nearer to its own home slot. A search therefore
//! ends early even if the table is 7/8 full. A home slot is computed by a multiplication, not by a
//! mask, so the capacity can grow by a tenth instead of doubling. The entries are sorted by their
//! keys, so growing is one pass. When an entry is removed, the entries after it shift back by one
//! slot, so the table needs no tombstones. An entry of the store is 28 bytes.

use super::fingerprint::Fingerprint;

/// A map from fingerprints to small values.
pub(super) struct Table<V> {
    slots: Box<[Slot<V>]>,
    len: usize,
}

/// A slot of the table. It has no padding, because a word of padding would be an eighth of an
/// entry.
#[derive(Clone, Copy)]
#[repr(C, packed(4))]
struct Slot<V> {
    place: u64,
    rest: u32,
    value: Option<V>,
}

impl<V: Copy> Slot<V> {
    const EMPTY: Self = Self { place: 0, rest: 0, value: None };

    const fn key(self) -> Fingerprint {
        Fingerprint { place: self.place, rest: self.rest }
    }

    /// Returns whether the slot has no entry. The function takes a copy of the slot, because a
    /// reference to the value of a slot would not be aligned.
    #[inline]
    const fn is_empty(self) -> bool {
        let value = self.value;
        value.is_none()
    }
}

/// The highest load factor: seven slots in eight.
const FULL_OF: (usize, usize) = (7, 8);

/// A full table grows by 1/`GROWN_OF` of its capacity. At this growth, a table of at least 100
/// slots has entries in at least 78 % of its slots.
const GROWN_OF: usize = 10;

/// The smallest capacity of a table that is not empty.
const SMALLEST: usize = 8;

impl<V: Copy> Table<V> {
    /// Creates an empty table, which allocates nothing.
    pub(super) fn new() -> Self {
        Self { slots: Box::default(), len: 0 }
    }

    /// Returns the number of entries.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of slots.
    pub(super) const fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Returns the bytes of `capacity` slots.
    pub(super) const fn bytes(capacity: usize) -> usize {
        capacity.saturating_mul(size_of::<Slot<V>>())
    }

    /// Returns the smallest capacity for `len` entries.
    pub(super) const fn capacity_for(len: usize) -> usize {
        if len == 0 {
            return 0;
        }
        let fitting = len.saturating_mul(FULL_OF.1).div_ceil(FULL_OF.0);
        if fitting < SMALLEST { SMALLEST } else { fitting }
    }

    /// Returns the most entries that `capacity` slots may have.
    pub(super) const fn len_for(capacity: usize) -> usize {
        (capacity as u128 * FULL_OF.0 as u128 / FULL_OF.1 as u128) as usize
    }

    /// Returns the capacity to which the table grows when it is full.
    pub(super) const fn grown(&self) -> usize {
        let by = self.capacity() / GROWN_OF;
        self.capacity() + if by < SMALLEST { SMALLEST } else { by }
    }

    /// Returns whether an entry can be added without growing the table.
    pub(super) const fn has_room(&self) -> bool {
        self.len < Self::len_for(self.capacity())
    }

    /// Returns the slot of `key`, if the table has an entry with this key.
    #[inline]
    pub(super) fn find(&self, key: Fingerprint) -> Option<usize> {
        if self.len == 0 {
            return None;
        }
        let (mut slot, mut distance) = (self.home(key.place), 0);
        loop {
            let there = &self.slots[slot];
            there.value?;
            if there.place == key.place && there.rest == key.rest {
                return Some(slot);
            }
            // If `key` were in the table, it would have taken the slot of an entry that is nearer
            // to its home slot. Entries are sorted by `place`, except entries that wrap around to
            // the beginning.
            if there.place > key.place && self.distance(there.place, slot) < distance {
                return None;
            }
            slot = self.next(slot);
            distance += 1;
        }
    }

    /// Returns the slot and the value of `key`, if the table has an entry with this key.
    #[inline]
    pub(super) fn find_entry(&self, key: Fingerprint) -> Option<(usize, V)> {
        let slot = self.find(key)?;
        Some((slot, self.slots.get(slot)?.value?))
    }

    /// Returns the entry in `slot`.
    #[inline]
    pub(super) fn get(&self, slot: usize) -> Option<(Fingerprint, V)> {
        let there = self.slots.get(slot)?;
        Some((there.key(), there.value?))
    }

    /// Replaces the value of the entry in `slot`, and returns the previous value.
    #[inline]
    pub(super) fn replace(&mut self, slot: usize, value: V) -> Option<V> {
        let there = self.slots.get_mut(slot)?;
        let before = there.value?;
        there.value = Some(value);
        Some(before)
    }

    /// Replaces the value of the entry in `slot`.
    pub(super) fn set(&mut self, slot: usize, value: V) {
        let before = self.replace(slot, value);
        debug_assert!(before.is_some(), "an empty slot has no value to replace");
    }

    /// Adds an entry with a key that must not be in the table, and grows the table if necessary.
    pub(super) fn insert(&mut self, key: Fingerprint, value: V) {
        if !self.has_room() {
            self.resize(self.grown());
        }
        self.place(key, value);
    }

    /// Removes the entry in `slot`. The entries after the removed entry may move back by one slot.
    pub(super) fn remove(&mut self, slot: usize) -> Option<V> {
        let removed = self.slots.get(slot)?.value?;
        self.len -= 1;
        let mut hole = slot;
        loop {
            let next = self.next(hole);
            let there = self.slots[next];
            if there.is_empty() || self.distance(there.place, next) == 0 {
                self.slots[hole] = Slot::EMPTY;
                return Some(removed);
            }
            self.slots[hole] = there;
            hole = next;
        }
    }

    /// Moves all entries to a table of `capacity` slots, or of more slots if the entries need more.
    pub(super) fn resize(&mut self, capacity: usize) {
        let capacity = capacity.max(Self::capacity_for(self.len));
        let slots = vec![Slot::EMPTY; capacity].into_boxed_slice();
        let old = std::mem::replace(&mut self.slots, slots);
        self.len = 0;
        // The entries before the first empty slot may have wrapped around from the end.
        let first_empty = old.iter().position(|slot| slot.is_empty()).unwrap_or_default();
        let (begin, rest) = old.split_at(first_empty);
        let mut free = 0;
        for slot in rest {
            let Some(value) = slot.value else { continue };
            let at = self.home(slot.place).max(free);
            if at < capacity {
                self.slots[at] = *slot;
                self.len += 1;
                free = at + 1;
            } else {
                self.place(slot.key(), value);
            }
        }
        for slot in begin {
            if let Some(value) = slot.value {
                self.place(slot.key(), value);
            }
        }
    }

    /// Iterates over all entries.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Fingerprint, V)> {
        self.slots.iter().filter_map(|slot| Some((slot.key(), slot.value?)))
    }

    fn place(&mut self, key: Fingerprint, value: V) {
        let Fingerprint { place, rest } = key;
        let mut carried = Slot { place, rest, value: Some(value) };
        let (mut slot, mut distance) = (self.home(place), 0);
        while !self.slots[slot].is_empty() {
            let there = self.slots[slot];
            let nearer = self.distance(there.place, slot);
            if nearer < distance || (nearer == distance && there.place > carried.place) {
                self.slots[slot] = std::mem::replace(&mut carried, there);
                distance = nearer;
            }
            slot = self.next(slot);
            distance += 1;
        }
        self.slots[slot] = carried;
        self.len += 1;
    }

    /// Returns the home slot of a key with this `place`: the slot of the key in an otherwise empty
    /// table.
    #[inline]
    fn home(&self, place: u64) -> usize {
        ((u128::from(place) * self.slots.len() as u128) >> 64) as usize
    }

    /// Returns the distance of `slot` from the home slot of a key in the table with this `place`.
    fn distance(&self, place: u64, slot: usize) -> usize {
        let home = self.home(place);
        if slot >= home { slot - home } else { slot + self.slots.len() - home }
    }

    fn next(&self, slot: usize) -> usize {
        if slot + 1 == self.slots.len() { 0 } else { slot + 1 }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Insert(Fingerprint, u64),
        Remove(Fingerprint),
        Resize(usize),
    }

    /// Keys with few different home slots, so entries collide, crowd the end of the table and wrap
    /// around to its beginning.
    fn keys() -> impl Strategy<Value = Fingerprint> {
        let place = prop_oneof![Just(0), Just(u64::MAX), Just(u64::MAX / 2), any::<u64>()];
        (place, 0_u32..12).prop_map(|(place, rest)| Fingerprint { place, rest })
    }

    fn steps() -> impl Strategy<Value = Step> {
        prop_oneof![
            5 => (keys(), any::<u64>()).prop_map(|(key, value)| Step::Insert(key, value)),
            3 => keys().prop_map(Step::Remove),
            1 => (0_usize..200).prop_map(Step::Resize),
        ]
    }

    proptest! {
        #[test]
        fn a_table_is_a_map(steps in prop::collection::vec(steps(), 0..400)) {
            let mut table = Table::new();
            let mut model = HashMap::new();
            for step in steps {
                match step {
                    Step::Insert(key, value) => {
                        match table.find_entry(key) {
                            Some((slot, before)) => {
                                prop_assert_eq!(Some(&before), model.get(&key));
                                prop_assert_eq!(table.replace(slot, value), Some(before));
                            }
                            None => table.insert(key, value),
                        }
                        model.insert(key, value);
                    }
                    Step::Remove(key) => {
                        let removed = table.find(key).and_then(|slot| table.remove(slot));
                        prop_assert_eq!(removed, model.remove(&key));
                    }
                    Step::Resize(capacity) => table.resize(capacity),
                }
                prop_assert_eq!(table.len(), model.len());
                prop_assert!(table.len() <= Table::<u64>::len_for(table.capacity()));
                for (key, value) in &model {
                    let found = table.find(*key).and_then(|slot| table.get(slot));
                    prop_assert_eq!(found, Some((*key, *value)));
                }
                let all: HashMap<_, _> = table.iter().collect();
                prop_assert_eq!(&all, &model);
            }
        }
    }

    #[test]
    fn any_capacity_holds_what_it_was_computed_for() {
        for len in 1..2_000 {
            let capacity = Table::<u64>::capacity_for(len);
            assert!(Table::<u64>::len_for(capacity) >= len, "{len} entries in {capacity} slots");
        }
    }

    #[test]
    fn an_entry_of_two_words_has_no_padding() {
        assert_eq!(Table::<super::super::packed::Packed>::bytes(1), 28);
    }

    #[test]
    fn a_table_of_any_size_is_nearly_full_after_it_grew() {
        let mut table = Table::new();
        let mut state = 1_u64;
        for count in 1..20_000_usize {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(count as u64);
            table.insert(Fingerprint { place: state, rest: count as u32 }, ());
            assert!(count < 200 || table.len() * 32 >= table.capacity() * 25, "{count} entries");
        }
    }
}
