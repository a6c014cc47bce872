//! Statistics of the memory store.

use super::shard::Shard;

/// The current usage of a [`Memory`](super::Memory), and its counts since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Entries in the store, including expired entries that are not yet swept.
    pub entries: usize,
    /// Entries that are records of refunds. The store keeps such a record because the same refund
    /// may arrive again.
    pub refunds: usize,
    /// Bytes allocated for entries now.
    pub bytes: usize,
    /// Entries that were dropped to make room before they expired. After an entry was dropped, the
    /// subjects of its overflow counter start with at least the usage of the entry.
    pub evicted: u64,
    /// Expired entries that were removed.
    pub swept: u64,
    /// Charges that found an invalid state: a state of another algorithm, or with a time too far in
    /// the future. Each of these charges discarded the state and started with an unused limit.
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
    /// The limit's entries, including expired entries that are not yet swept.
    pub entries: usize,
    /// The limit's entries with permits, reservations or a remembered refund. Such entries are
    /// never dropped to make room.
    pub pinned: usize,
}

impl Stats {
    /// Adds the current entries and the counts of `shard` to the sums of the store.
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
