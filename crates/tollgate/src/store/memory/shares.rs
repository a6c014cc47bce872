//! The shares of a shard. A share is the record of one limit in the shard: the entries and bytes
//! that the limit uses, and its overflow counters.

use tollgate_core::{Cell, Timestamp};

use super::cells::heap_of;
use super::fingerprint::Fingerprint;
use super::overflow::Counter;
use super::packed::Retention;
use super::pool::{Pool, bucket};

/// The number of the common share of all limits that have no share of their own. Such a limit has
/// no overflow counters, so a subject without an entry is refused if the shard has no room for an
/// entry.
pub(super) const OTHERS: u8 = 0;

/// The number of limits that have a share of their own, and the number of overflow counters of
/// each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShareLimits {
    pub(super) limits: usize,
    pub(super) counters: usize,
}

/// The number of entries, and the bytes that they use outside the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) entries: usize,
    /// Bytes of the states that are stored outside the table.
    pub(super) bytes: usize,
}

/// The entry count and the bytes that one entry adds to its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Weight {
    pub(super) share: u8,
    pub(super) retention: Retention,
    pub(super) bytes: usize,
}

/// A resource of a shard that can be used up.
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
    /// The overflow counters. Empty while none is in use.
    counters: Box<[Counter]>,
}

/// The shares of one shard. The number of a share is its index.
pub(super) struct Shares {
    shares: Vec<LocalShare>,
    pinned: Usage,
    share_limits: ShareLimits,
    /// The number of shares that have overflow counters.
    counting: usize,
    /// The share with the overflow counters that the next sweep checks.
    cursor: usize,
    /// Bytes of the pool that the cells of overflow counters have allocated.
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

    /// Returns the entries or bytes that this share frees if all of its entries that may be dropped
    /// are dropped. `resource` selects entries or bytes.
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
    pub(super) fn new(share_limits: ShareLimits) -> Self {
        let shares = vec![LocalShare::default()];
        let pinned = Usage::default();
        Self { shares, pinned, share_limits, counting: 0, cursor: 0, pooled: 0 }
    }

    /// Returns the bytes of the shares and overflow counters, excluding the memory that the
    /// counters' cells have allocated.
    pub(super) fn bytes(&self) -> usize {
        let counters: usize = self.shares.iter().map(|share| share.counters.len()).sum();
        (self.shares.len() - 1) * size_of::<LocalShare>() + counters * size_of::<Counter>()
    }

    /// Returns the bytes of the share of one limit that has `counters` overflow counters.
    pub(super) const fn bytes_of(counters: usize) -> usize {
        // A vector of shares may have allocated twice the memory that its shares need.
        2 * size_of::<LocalShare>() + counters * size_of::<Counter>()
    }

    /// Returns whether any limit has overflow counters.
    pub(super) const fn has_counters(&self) -> bool {
        self.counting > 0
    }

    /// Returns the number of overflow counters that exist.
    pub(super) fn counters(&self) -> usize {
        self.shares.iter().map(|share| share.counters.len()).sum()
    }

    /// Returns the share number of the limit with this state digest, if the limit has its own
    /// share.
    pub(super) fn find(&self, digest: u128) -> Option<u8> {
        let found = self.shares[1..].iter().position(|share| share.digest == digest)?;
        u8::try_from(found + 1).ok()
    }

    /// Returns the share number of the limit with this state digest. If the limit has no share,
    /// creates a share. If all share numbers are in use, returns [`OTHERS`].
    pub(super) fn enter(&mut self, digest: u128) -> u8 {
        if let Some(share) = self.find(digest) {
            return share;
        }
        // A new share is preferred to the reuse of an unused share, because the same call may have
        // reserved room in the unused share.
        let index = if self.shares.len() <= self.share_limits.limits {
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

    /// Returns the bucket of the pool to which the states of `share` are charged.
    pub(super) fn bucket(&self, share: u8) -> u8 {
        bucket(self.shares[usize::from(share)].digest)
    }

    /// Returns the usage of each limit: its state digest, the number of its entries, and the number
    /// of its entries that are never dropped to make room.
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

    /// Records that the retention of an entry has changed. The entry has no bytes outside the
    /// table.
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

    /// Returns whether `share` may add `more` entries and bytes that are never dropped, in a shard
    /// with the bounds `most`. Such entries may use at most half of the shard, and no limit may use
    /// more of this half than remains free.
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

    /// Returns the share that uses most of `resource` with entries that may be dropped. Returns
    /// `None` if no share has such entries.
    pub(super) fn largest(&self, resource: Resource) -> Option<u8> {
        let shares = self.shares.iter().enumerate().skip(1);
        let (index, share) = shares.max_by_key(|(_, share)| share.reclaimable(resource))?;
        (share.reclaimable(Resource::Entries) > 0).then_some(u8::try_from(index).ok()?)
    }

    /// Returns whether `share` uses less than its guaranteed part of `most`. At least half of a
    /// shard remains for entries that may be dropped. This half is guaranteed in equal parts to the
    /// limits that exist.
    pub(super) fn is_within_guarantee(&self, share: u8, resource: Resource, most: usize) -> bool {
        let own = usize::from(share);
        let is_there = |(index, share): &(usize, &LocalShare)| !share.is_unused() || *index == own;
        let limits = self.shares.iter().enumerate().skip(1).filter(is_there).count();
        share != OTHERS && self.shares[own].reclaimable(resource) < guaranteed(most, limits)
    }

    /// Returns the overflow counter of the subject at `key`, if this counter exists.
    #[inline]
    pub(super) fn counter(&self, digest: u128, key: Fingerprint) -> Option<&Counter> {
        if self.counting == 0 {
            return None;
        }
        let counters = &self.shares[usize::from(self.find(digest)?)].counters;
        counters.get(key.part(counters.len()))
    }

    /// Returns the overflow counter of the subject at `key` like [`counter`](Self::counter), as a
    /// mutable reference.
    pub(super) fn counter_mut(&mut self, digest: u128, key: Fingerprint) -> Option<&mut Counter> {
        if self.counting == 0 {
            return None;
        }
        let share = usize::from(self.find(digest)?);
        let counters = &mut self.shares[share].counters;
        counters.get_mut(key.part(counters.len()))
    }

    /// Returns the overflow counter of the subject at `key`, and creates the counter if necessary.
    /// Returns `None` if the limit has no share of its own.
    pub(super) fn open_counter(&mut self, share: u8, key: Fingerprint) -> Option<&mut Counter> {
        if share == OTHERS {
            return None;
        }
        let share_limits = self.share_limits.counters;
        let counters = &mut self.shares[usize::from(share)].counters;
        if counters.is_empty() {
            *counters = vec![Counter::default(); share_limits].into_boxed_slice();
            self.counting += 1;
        }
        counters.get_mut(key.part(share_limits))
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

/// Returns the bytes that the cell of an overflow counter charges to the pool: all bytes that the
/// cell allocates.
pub(super) fn heap_of_counted(cell: &Cell) -> usize {
    heap_of(cell)
}

/// Returns the number of entries or bytes that each of `limits` limits is guaranteed in a shard
/// with the bound `most`.
pub(super) const fn guaranteed(most: usize, limits: usize) -> usize {
    most / 2 / if limits == 0 { 1 } else { limits }
}
