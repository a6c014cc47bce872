//! What was last heard of a limit and a subject: a table of fixed size that forgets.

use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::mem::discriminant;

use parking_lot::Mutex;
use siphasher::sip128::{Hasher128, SipHasher13};
use tollgate_core::{Charge, Timestamp};

/// Entries that share a lock and compete for the same places.
const WAYS: usize = 8;

/// At most so many values as were asked for, rounded up to a power of two.
///
/// Source: set-associative caches. A key has [`WAYS`] places; where they are full, the value that
/// is [worth](EvictionPriority) least makes way, and nothing else is touched. Nothing is allocated after the
/// start, and no call looks at more than one set.
pub(super) struct BoundedCache<V> {
    hasher: SipHasher13,
    sets: Box<[Mutex<Set<V>>]>,
}

type Set<V> = [Option<(Key, V)>; WAYS];

/// A keyed hash of a limit and a subject, under a key that never leaves the process: 128 bits wide,
/// so that two that are alike need not be feared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key(u128);

impl Key {
    /// The part that it belongs to where there are so many, by other bits than those of its set.
    pub(super) const fn part_of(self, parts: usize) -> usize {
        (self.0 >> 64) as usize % parts
    }
}

/// Which value makes way for another.
pub(super) trait EvictionPriority {
    /// The smallest makes way first; zero for what says nothing any more.
    fn eviction_priority(&self, now: Timestamp) -> u64;
}

impl<V: Copy + EvictionPriority> BoundedCache<V> {
    /// An empty table for `entries` values, at least one set.
    pub(super) fn new(entries: usize) -> Self {
        let sets = entries.div_ceil(WAYS).next_power_of_two();
        let source = RandomState::new();
        Self {
            hasher: SipHasher13::new_with_keys(source.hash_one(0_u8), source.hash_one(1_u8)),
            sets: (0..sets).map(|_| Mutex::new([None; WAYS])).collect(),
        }
    }

    /// The key of what `charge` is about. A limit that was changed is another limit.
    pub(super) fn key(&self, charge: &Charge<'_>) -> Key {
        let mut hasher = self.hasher;
        let limit = charge.limit;
        limit.state_digest().hash(&mut hasher);
        discriminant(limit.algorithm()).hash(&mut hasher);
        hasher.write_u64(limit.capacity());
        hasher.write_u64(limit.window().get());
        hasher.write(charge.subject.as_bytes());
        Key(hasher.finish128().as_u128())
    }

    /// The key of one part of what `key` is about.
    pub(super) fn part(&self, key: Key, part: u128) -> Key {
        let mut hasher = self.hasher;
        hasher.write_u128(key.0);
        hasher.write_u128(part);
        Key(hasher.finish128().as_u128())
    }

    /// What was put under `key`, unless it made way.
    pub(super) fn get(&self, key: Key) -> Option<V> {
        let set = self.set(key).lock();
        set.iter().flatten().find(|(own, _)| *own == key).map(|(_, value)| *value)
    }

    /// Puts `value` under `key`, where it may push out what is worth least at `now`.
    pub(super) fn put(&self, key: Key, value: V, now: Timestamp) {
        self.update(key, now, |_| Some(value));
    }

    /// Puts what `change` makes of what is under `key` there, where it may push out what is worth
    /// least at `now`; or nothing.
    pub(super) fn update(
        &self,
        key: Key,
        now: Timestamp,
        change: impl FnOnce(Option<V>) -> Option<V>,
    ) {
        let mut set = self.set(key).lock();
        let worth = |place: &&mut Option<(Key, V)>| match place {
            Some((own, _)) if *own == key => None,
            Some((_, value)) => Some(1 + value.eviction_priority(now).min(u64::MAX - 1)),
            None => Some(0),
        };
        let Some(place) = set.iter_mut().min_by_key(worth) else { return };
        let known = place.filter(|(own, _)| *own == key).map(|(_, value)| value);
        let is_known = known.is_some();
        match change(known) {
            Some(value) => *place = Some((key, value)),
            None if is_known => *place = None,
            None => {}
        }
    }

    /// All that is kept, in no order.
    pub(super) fn values(&self) -> Vec<V> {
        let values = |set: &Mutex<Set<V>>| set.lock().map(|place| place.map(|(_, value)| value));
        self.sets.iter().flat_map(values).flatten().collect()
    }

    /// Forgets whatever is such; looks at every set.
    pub(super) fn forget_all(&self, is_such: impl Fn(&V) -> bool) {
        for set in &self.sets {
            for place in set.lock().iter_mut() {
                if matches!(place, Some((_, value)) if is_such(value)) {
                    *place = None;
                }
            }
        }
    }

    /// Forgets what is under `key`, if it is such.
    pub(super) fn forget_if(&self, key: Key, is_such: impl Fn(&V) -> bool) {
        let mut set = self.set(key).lock();
        for place in set.iter_mut() {
            if matches!(place, Some((own, value)) if *own == key && is_such(value)) {
                *place = None;
            }
        }
    }

    /// The most values that it ever holds.
    pub(super) fn capacity(&self) -> usize {
        self.sets.len() * WAYS
    }

    fn set(&self, key: Key) -> &Mutex<Set<V>> {
        &self.sets[key.0 as usize & (self.sets.len() - 1)]
    }
}

impl<V: Copy + EvictionPriority> fmt::Debug for BoundedCache<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundedCache").field("capacity", &self.capacity()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl EvictionPriority for u64 {
        fn eviction_priority(&self, _now: Timestamp) -> u64 {
            *self
        }
    }

    #[test]
    fn what_is_worth_least_makes_way_and_nothing_grows() {
        let recent = BoundedCache::new(WAYS);
        assert_eq!(recent.capacity(), WAYS);
        let keys: Vec<_> = (0..100).map(Key).collect();
        for (key, worth) in keys.iter().zip(1..) {
            recent.put(*key, worth, Timestamp::EPOCH);
        }
        let kept: Vec<_> = keys.iter().filter_map(|key| recent.get(*key)).collect();
        assert_eq!(kept, (93..=100).collect::<Vec<u64>>());
        recent.put(keys[99], 7, Timestamp::EPOCH);
        assert_eq!(recent.get(keys[99]), Some(7), "a key has one place");
        recent.forget_if(keys[98], |value| *value == 1);
        assert_eq!(recent.get(keys[98]), Some(99));
        recent.forget_if(keys[98], |value| *value == 99);
        assert_eq!(recent.get(keys[98]), None);
    }
}
