//! A cache of fixed size for the last known state of a limit and a subject.

use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::mem::discriminant;
use std::sync::OnceLock;

use parking_lot::Mutex;
use siphasher::sip128::{Hasher128, SipHasher13};
use tollgate_core::{Charge, Millis, Timestamp};

/// The number of entries in one set. The entries of a set share a lock and compete for the same
/// slots.
const WAYS: usize = 8;

/// A cache with a fixed number of slots: the requested number, rounded up to a power of two.
///
/// Source: set-associative caches. Each key belongs to one set of [`WAYS`] slots. If the slots of
/// the set are full, the value with the lowest [priority](EvictionPriority) in this set is evicted.
/// Lookups and updates of a key access only its set. Several sets form a group, which is allocated
/// with its first value, so a node with few subjects does not use the memory of all slots.
pub(super) struct BoundedCache<V> {
    hasher: SipHasher13,
    groups: Box<[OnceLock<Group<V>>]>,
    /// The number of sets in a group, a power of two.
    sets: usize,
}

type Set<V> = [Option<(Key, V)>; WAYS];

/// A group: the sets that are allocated together.
type Group<V> = Box<[Mutex<Set<V>>]>;

/// The most sets in a group.
const GROUP: usize = 8;

/// A hash of a limit and a subject, with a secret key that never leaves the process. The hash has
/// 128 bits, so collisions are negligible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key(u128);

impl Key {
    /// Returns an index below `parts`, for a caller that divides its state into `parts` parts. The
    /// index and the set of the key depend on different bits of the key.
    pub(super) const fn part_of(self, parts: usize) -> usize {
        (self.0 >> 64) as usize % parts
    }
}

/// The order in which values are evicted.
pub(super) trait EvictionPriority {
    /// Returns the priority of the value. The value with the lowest priority is evicted first. Zero
    /// means that the value is obsolete.
    fn eviction_priority(&self, now: Timestamp) -> u64;
}

impl<V: Copy + EvictionPriority> BoundedCache<V> {
    /// Creates an empty cache for `entries` values, with at least one set.
    pub(super) fn new(entries: usize) -> Self {
        let all = entries.div_ceil(WAYS).next_power_of_two();
        let sets = all.min(GROUP);
        let source = RandomState::new();
        Self {
            hasher: SipHasher13::new_with_keys(source.hash_one(0_u8), source.hash_one(1_u8)),
            groups: (0..all / sets).map(|_| OnceLock::new()).collect(),
            sets,
        }
    }

    /// Returns the key of the counters that `charge` uses. A limit whose counters have another
    /// meaning has another key. The quota has no influence on the key: a plan, a tenant or an
    /// override changes the quota and not the counters.
    pub(super) fn key(&self, charge: &Charge<'_>) -> Key {
        let (_, window) = charge.limit.quota_per_window();
        self.key_with(charge, 0, window)
    }

    /// Returns the key of the counters that `charge` uses, together with the quota of the limit.
    pub(super) fn quota_key(&self, charge: &Charge<'_>) -> Key {
        self.key_with(charge, charge.limit.capacity(), charge.limit.window())
    }

    fn key_with(&self, charge: &Charge<'_>, capacity: u64, window: Millis) -> Key {
        let mut hasher = self.hasher;
        let limit = charge.limit;
        limit.state_digest().hash(&mut hasher);
        discriminant(limit.algorithm()).hash(&mut hasher);
        hasher.write_u64(capacity);
        hasher.write_u64(window.get());
        hasher.write(charge.subject.as_bytes());
        Key(hasher.finish128().as_u128())
    }

    /// Returns a key for one part of the state with the key `key`. `part` identifies the part of
    /// the state, such as a block or a permit.
    pub(super) fn part(&self, key: Key, part: u128) -> Key {
        let mut hasher = self.hasher;
        hasher.write_u128(key.0);
        hasher.write_u128(part);
        Key(hasher.finish128().as_u128())
    }

    /// Returns the value under `key`, or `None` if the key has no value or its value was evicted.
    pub(super) fn get(&self, key: Key) -> Option<V> {
        let set = self.existing_set(key)?.lock();
        set.iter().flatten().find(|(own, _)| *own == key).map(|(_, value)| *value)
    }

    /// Stores `value` under `key`. If the set of `key` is full of other keys, evicts the value with
    /// the lowest priority at `now`.
    pub(super) fn put(&self, key: Key, value: V, now: Timestamp) {
        self.update(key, now, |_| Some(value));
    }

    /// Calls `change` with the current value of `key`, and stores the value that `change` returns.
    /// If `change` returns `None`, removes the current value. A new key may evict the value with
    /// the lowest priority at `now`.
    pub(super) fn update(
        &self,
        key: Key,
        now: Timestamp,
        change: impl FnOnce(Option<V>) -> Option<V>,
    ) {
        let mut set = self.set(key).lock();
        let worth = |slot: &&mut Option<(Key, V)>| match slot {
            Some((own, _)) if *own == key => None,
            Some((_, value)) => Some(1 + value.eviction_priority(now).min(u64::MAX - 1)),
            None => Some(0),
        };
        let Some(slot) = set.iter_mut().min_by_key(worth) else { return };
        let known = slot.filter(|(own, _)| *own == key).map(|(_, value)| value);
        let is_known = known.is_some();
        match change(known) {
            Some(value) => *slot = Some((key, value)),
            None if is_known => *slot = None,
            None => {}
        }
    }

    /// Returns all values, in no particular order.
    pub(super) fn values(&self) -> Vec<V> {
        let values = |set: &Mutex<Set<V>>| set.lock().map(|slot| slot.map(|(_, value)| value));
        self.existing_sets().flat_map(values).flatten().collect()
    }

    /// Removes all values for which `is_such` returns true. Scans every set.
    pub(super) fn forget_all(&self, is_such: impl Fn(&V) -> bool) {
        for set in self.existing_sets() {
            for slot in set.lock().iter_mut() {
                if matches!(slot, Some((_, value)) if is_such(value)) {
                    *slot = None;
                }
            }
        }
    }

    /// Removes the value under `key` if `is_such` returns true for the value.
    pub(super) fn forget_if(&self, key: Key, is_such: impl Fn(&V) -> bool) {
        let Some(set) = self.existing_set(key) else { return };
        for slot in set.lock().iter_mut() {
            if matches!(slot, Some((own, value)) if *own == key && is_such(value)) {
                *slot = None;
            }
        }
    }

    /// Returns the maximum number of values.
    pub(super) fn capacity(&self) -> usize {
        self.groups.len() * self.sets * WAYS
    }

    fn group(&self, key: Key) -> &OnceLock<Group<V>> {
        &self.groups[(key.0 as usize / self.sets) & (self.groups.len() - 1)]
    }

    /// Returns the set of `key`, or `None` if no value was ever stored in the group of the set.
    fn existing_set(&self, key: Key) -> Option<&Mutex<Set<V>>> {
        Some(&self.group(key).get()?[key.0 as usize & (self.sets - 1)])
    }

    fn set(&self, key: Key) -> &Mutex<Set<V>> {
        let empty = || (0..self.sets).map(|_| Mutex::new([None; WAYS])).collect();
        &self.group(key).get_or_init(empty)[key.0 as usize & (self.sets - 1)]
    }

    fn existing_sets(&self) -> impl Iterator<Item = &Mutex<Set<V>>> {
        self.groups.iter().filter_map(OnceLock::get).flat_map(|group| group.iter())
    }
}

impl<V: Copy + EvictionPriority> fmt::Debug for BoundedCache<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundedCache").field("capacity", &self.capacity()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use tollgate_core::algo::{Anchor, FixedWindow, TokenBucket};
    use tollgate_core::{Algorithm, Limit, Operation, Subject};

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

    /// A quota changes the time in which a bucket with a burst of its own fills.
    #[test]
    fn the_quota_changes_only_the_quota_key() {
        let (window, subject) = (Millis::from_secs(60), Subject::default());
        let fixed = FixedWindow::new(5, window, Anchor::Calendar).unwrap();
        let bucket = TokenBucket::new(5, window, 20).unwrap();
        let recent = BoundedCache::<u64>::new(WAYS);
        for algorithm in [Algorithm::FixedWindow(fixed), Algorithm::TokenBucket(bucket)] {
            let limit = Limit::new("limit", algorithm).unwrap();
            let other = limit.with_quota(10, None).unwrap();
            let operation = Operation::Reset;
            let [one, other] =
                [&limit, &other].map(|limit| Charge { limit, subject: &subject, operation });
            assert_eq!(recent.key(&one), recent.key(&other), "{algorithm:?}");
            assert_ne!(recent.quota_key(&one), recent.quota_key(&other), "{algorithm:?}");
        }
    }

    #[test]
    fn groups_are_allocated_with_their_first_value() {
        let recent = BoundedCache::new(4 * GROUP * WAYS);
        assert_eq!(recent.capacity(), 4 * GROUP * WAYS);
        let allocated = |recent: &BoundedCache<u64>| recent.existing_sets().count();
        assert_eq!((recent.get(Key(0)), allocated(&recent)), (None, 0), "a lookup allocates none");
        for key in (0..4 * GROUP as u128).map(Key) {
            recent.put(key, 1, Timestamp::EPOCH);
            assert_eq!(allocated(&recent), (key.0 as usize / GROUP + 1) * GROUP);
        }
        assert_eq!(recent.values().len(), 4 * GROUP, "each key has its own set");
        recent.forget_all(|_| true);
        assert!(recent.values().is_empty());
    }
}
