//! Statistics of the store.

use super::shard::Shard;

/// The usage of a [`Memory`](super::Memory) now, and its counts since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Entries in the store, including expired ones that are not yet swept.
    pub entries: usize,
    /// The entries that are records of refunds. They are kept because the same refund may arrive
    /// again.
    pub refunds: usize,
    /// Bytes allocated for entries now.
    pub bytes: usize,
    /// Entries that were dropped to make room before they expired. The usage of each is now a lower
    /// bound of the usage with which the subjects of its overflow counter start.
    pub evicted: u64,
    /// Expired entries that were removed.
    pub swept: u64,
    /// Charges that found an invalid state, from an impossible future or of another algorithm. Each
    /// of these charges discarded the state and started with an unused limit.
    pub discarded: u64,
    /// Decisions that an overflow counter made.
    pub overflow: u64,
    /// Overflow counters that exist now.
    pub overflow_counters: usize,
    /// Charges, refunds and settlements that were refused because neither an entry nor an overflow
    /// counter had room.
    pub full: u64,
}

/// The usage of a [`Memory`](super::Memory) by one limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitStats {
    /// The limit's entries, including expired ones that are not yet swept.
    pub entries: usize,
    /// The limit's entries with permits, reservations or a remembered refund. Such entries are
    /// never dropped to make room.
    pub pinned: usize,
}

impl Stats {
    /// Adds the entries and the counts of `shard` to these statistics.
    pub(super) fn add(&mut self, shard: &Shard) {
        self.entries += shard.table.len();
        self.refunds += shard.counts.refunds;
        self.bytes += shard.bytes();
        self.evicted += shard.counts.evicted;
        self.swept += shard.counts.swept;
        self.discarded += shard.counts.discarded;
        self.overflow += shard.counts.overflow;
        self.overflow_counters += shard.shares.counters();
        self.full += shard.counts.full;
    }
}
