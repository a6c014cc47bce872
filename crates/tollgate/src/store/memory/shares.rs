//! The limits of a shard: the usage of each, and its overflow counters.

use tollgate_core::{Cell, Timestamp};

use super::cells::heap_of;
use super::fingerprint::Fingerprint;
use super::overflow::Counter;
use super::packed::Retention;
use super::pool::{Pool, bucket};

/// The common share of limits without a share of their own. They have no overflow counters, so a
/// newcomer of one of them is refused if there is no room for its entry.
pub(super) const OTHERS: u8 = 0;

/// How many limits have shares of their own, and how many counters each has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) limits: usize,
    pub(super) counters: usize,
}

/// The usage of entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) entries: usize,
    /// Bytes of states outside the table.
    pub(super) bytes: usize,
}

/// One entry as it counts in its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Weight {
    pub(super) share: u8,
    pub(super) retention: Retention,
    pub(super) bytes: usize,
}

/// A resource that can be short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resource {
    Entries,
    Bytes,
}

#[derive(Default)]
struct LocalShare {
    digest: u128,
    evictable: Usage,
    at_limit: Usage,
    pinned: Usage,
    /// Empty while no counter is in use.
    counters: Box<[Counter]>,
}

/// The shares of one shard, by their numbers.
pub(super) struct Shares {
    shares: Vec<LocalShare>,
    pinned: Usage,
    places: Places,
    /// The number of shares that have counters.
    counting: usize,
    /// The share with the counters that the next sweep checks.
    cursor: usize,
    /// Bytes that cells of counters have allocated from the pool.
    pub(super) pooled: usize,
}

impl Usage {
    pub(super) const fn of(&self, resource: Resource) -> usize {
        match resource {
            Resource::Entries => self.entries,
            Resource::Bytes => self.bytes,
        }
    }

    fn add(&mut self, bytes: usize) {
        self.entries += 1;
        self.bytes += bytes;
    }

    fn remove(&mut self, bytes: usize) {
        self.entries -= 1;
        self.bytes -= bytes;
    }
}

impl LocalShare {
    fn usage(&mut self, retention: Retention) -> &mut Usage {
        match retention {
            Retention::Evictable => &mut self.evictable,
            Retention::AtLimit => &mut self.at_limit,
            Retention::Pinned => &mut self.pinned,
        }
    }

    /// The part that other limits can reclaim.
    const fn reclaimable(&self, resource: Resource) -> usize {
        self.evictable.of(resource) + self.at_limit.of(resource)
    }

    const fn entries(&self) -> usize {
        self.reclaimable(Resource::Entries) + self.pinned.entries
    }

    fn is_unused(&self) -> bool {
        self.entries() == 0 && self.counters.is_empty()
    }
}

impl Shares {
    pub(super) fn new(places: Places) -> Self {
        let shares = vec![LocalShare::default()];
        let pinned = Usage::default();
        Self { shares, pinned, places, counting: 0, cursor: 0, pooled: 0 }
    }

    /// The bytes that shares and counters take, without the heap of the counters' cells.
    pub(super) fn bytes(&self) -> usize {
        let counters: usize = self.shares.iter().map(|share| share.counters.len()).sum();
        (self.shares.len() - 1) * size_of::<LocalShare>() + counters * size_of::<Counter>()
    }

    /// The bytes of one limit with `counters`.
    pub(super) const fn bytes_of(counters: usize) -> usize {
        // A vector of shares may have twice the room that it needs.
        2 * size_of::<LocalShare>() + counters * size_of::<Counter>()
    }

    /// Whether any limit has counters.
    pub(super) const fn has_counters(&self) -> bool {
        self.counting > 0
    }

    /// Returns the number of counters that exist.
    pub(super) fn counters(&self) -> usize {
        self.shares.iter().map(|share| share.counters.len()).sum()
    }

    /// Returns the share number of the limit with this state digest, if the limit has its own
    /// share.
    pub(super) fn find(&self, digest: u128) -> Option<u8> {
        let found = self.shares[1..].iter().position(|share| share.digest == digest)?;
        u8::try_from(found + 1).ok()
    }

    /// Returns the share number of the limit with this state digest. Creates a share if a number is
    /// free.
    pub(super) fn enter(&mut self, digest: u128) -> u8 {
        if let Some(share) = self.find(digest) {
            return share;
        }
        // An unused share may have reserved room in the same call, so a new share is preferred.
        let index = if self.shares.len() <= self.places.limits {
            self.shares.push(LocalShare::default());
            self.shares.len() - 1
        } else {
            match self.shares[1..].iter().position(LocalShare::is_unused) {
                Some(unused) => unused + 1,
                None => return OTHERS,
            }
        };
        self.shares[index].digest = digest;
        u8::try_from(index).unwrap_or(OTHERS)
    }

    /// The bucket of the pool that the states of `share` are charged to.
    pub(super) fn bucket(&self, share: u8) -> u8 {
        bucket(self.shares[usize::from(share)].digest)
    }

    /// Returns the usage of each limit: its state digest, its entries and how many of them are
    /// pinned.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u128, usize, usize)> {
        let shares = self.shares.iter().skip(1);
        shares.map(|share| (share.digest, share.entries(), share.pinned.entries))
    }

    pub(super) fn add(&mut self, weight: Weight) {
        let Weight { share, retention, bytes } = weight;
        self.shares[usize::from(share)].usage(retention).add(bytes);
        if retention == Retention::Pinned || share == OTHERS {
            self.pinned.add(bytes);
        }
    }

    pub(super) fn remove(&mut self, weight: Weight) {
        let Weight { share, retention, bytes } = weight;
        self.shares[usize::from(share)].usage(retention).remove(bytes);
        if retention == Retention::Pinned || share == OTHERS {
            self.pinned.remove(bytes);
        }
    }

    /// Records that the retention of an entry without bytes of its own has changed.
    #[inline]
    pub(super) fn turn(&mut self, share: u8, from: Retention, to: Retention) {
        if from != to {
            self.turn_over(share, from, to);
        }
    }

    #[cold]
    fn turn_over(&mut self, share: u8, from: Retention, to: Retention) {
        self.remove(Weight { share, retention: from, bytes: 0 });
        self.add(Weight { share, retention: to, bytes: 0 });
    }

    /// Returns the number of entries of `share` with this `retention`.
    pub(super) fn entries(&self, share: u8, retention: Retention) -> usize {
        let share = &self.shares[usize::from(share)];
        match retention {
            Retention::Evictable => share.evictable.entries,
            Retention::AtLimit => share.at_limit.entries,
            Retention::Pinned => share.pinned.entries,
        }
    }

    /// Returns whether `share` may pin `more` in a shard with the bounds `most`. At most half of
    /// the shard may be pinned, and a limit may pin at most as much of that as it leaves free.
    pub(super) fn may_pin(&self, share: u8, more: Usage, most: Usage) -> bool {
        let own = &self.shares[usize::from(share)].pinned;
        let fits = |resource| {
            let half = most.of(resource).div_ceil(2);
            let taken = self.pinned.of(resource) + more.of(resource);
            more.of(resource) == 0
                || half.checked_sub(taken).is_some_and(|left| own.of(resource) <= left)
        };
        fits(Resource::Entries) && fits(Resource::Bytes)
    }

    /// Returns the share with the most reclaimable usage.
    pub(super) fn largest(&self, resource: Resource) -> Option<u8> {
        let shares = self.shares.iter().enumerate().skip(1);
        let (index, share) = shares.max_by_key(|(_, share)| share.reclaimable(resource))?;
        (share.reclaimable(Resource::Entries) > 0).then_some(u8::try_from(index).ok()?)
    }

    /// Returns whether `share` has less than its guaranteed part of `most`. The half that cannot be
    /// pinned is guaranteed in equal parts to the limits that exist.
    pub(super) fn is_within_guarantee(&self, share: u8, resource: Resource, most: usize) -> bool {
        let own = usize::from(share);
        let is_there = |(index, share): &(usize, &LocalShare)| !share.is_unused() || *index == own;
        let limits = self.shares.iter().enumerate().skip(1).filter(is_there).count();
        share != OTHERS && self.shares[own].reclaimable(resource) < guaranteed(most, limits)
    }

    /// Returns the counter of the subject at `key`, if it exists.
    #[inline]
    pub(super) fn counter(&self, digest: u128, key: Fingerprint) -> Option<&Counter> {
        if self.counting == 0 {
            return None;
        }
        let counters = &self.shares[usize::from(self.find(digest)?)].counters;
        counters.get(key.part(counters.len()))
    }

    /// Returns the same counter for a change.
    pub(super) fn counter_mut(&mut self, digest: u128, key: Fingerprint) -> Option<&mut Counter> {
        if self.counting == 0 {
            return None;
        }
        let share = usize::from(self.find(digest)?);
        let counters = &mut self.shares[share].counters;
        counters.get_mut(key.part(counters.len()))
    }

    /// Returns the counter of the subject at `key`, and creates it if necessary. Returns `None` if
    /// the limit has no share.
    pub(super) fn open_counter(&mut self, share: u8, key: Fingerprint) -> Option<&mut Counter> {
        if share == OTHERS {
            return None;
        }
        let places = self.places.counters;
        let counters = &mut self.shares[usize::from(share)].counters;
        if counters.is_empty() {
            *counters = vec![Counter::default(); places].into_boxed_slice();
            self.counting += 1;
        }
        counters.get_mut(key.part(places))
    }

    /// Drops the counters of the next share if all of them have expired.
    pub(super) fn sweep(&mut self, now: Timestamp, pool: &Pool) {
        if self.counting == 0 {
            return;
        }
        self.cursor = if self.cursor + 1 < self.shares.len() { self.cursor + 1 } else { 0 };
        let share = &mut self.shares[self.cursor];
        if share.counters.is_empty() || !share.counters.iter().all(|counter| counter.is_over(now)) {
            return;
        }
        let cells = share.counters.iter().filter_map(|counter| counter.cell.as_ref());
        let heap: usize = cells.map(heap_of_counted).sum();
        pool.release(bucket(share.digest), heap);
        self.pooled -= heap;
        share.counters = Box::default();
        self.counting -= 1;
    }
}

/// Returns the bytes of a counter's cell that are charged to the pool: all bytes that it allocates.
pub(super) fn heap_of_counted(cell: &Cell) -> usize {
    heap_of(cell)
}

/// Returns the part of `most` entries or bytes of a shard that each of `limits` limits is
/// guaranteed.
pub(super) const fn guaranteed(most: usize, limits: usize) -> usize {
    most / 2 / if limits == 0 { 1 } else { limits }
}
