//! Statistics of the store.

use super::shard::Shard;

/// The usage of a [`Memory`](super::Memory), and counts since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Entries in the store, including expired ones that are not yet swept.
    pub entries: usize,
    /// The entries that are remembered refunds, because the same refund may arrive again.
    pub refunds: usize,
    /// Bytes allocated for entries now.
    pub bytes: usize,
    /// Entries that had not expired and were dropped to make room. Their usage raised the ceilings
    /// of their overflow counters.
    pub evicted: u64,
    /// Expired entries that were removed.
    pub swept: u64,
    /// Charges that found state from an impossible future or of another algorithm, and started with
    /// unused limits instead.
    pub discarded: u64,
    /// Decisions by an overflow counter.
    pub overflow: u64,
    /// Overflow counters that exist now.
    pub overflow_counters: usize,
    /// Charges, refunds and settlements that found no room, not even in an overflow counter, and
    /// were refused.
    pub full: u64,
}

/// The usage of a [`Memory`](super::Memory) by one limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitStats {
    /// The limit's entries, including expired ones that are not yet swept.
    pub entries: usize,
    /// The limit's entries with permits, reservations or a remembered refund. They are never
    /// dropped to make room.
    pub pinned: usize,
}

impl Stats {
    /// Adds the entries and counts of `shard`.
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
