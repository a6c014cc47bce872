//! What the store tells of itself.

use super::shard::Shard;

/// How full a [`Memory`](super::Memory) is, and what happened since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Entries held now, also those that are over and not yet swept.
    pub entries: usize,
    /// Of them, refunds that are remembered because they may be asked again.
    pub refunds: usize,
    /// Bytes allocated for entries now.
    pub bytes: usize,
    /// Entries in force that were dropped to make room: what each had used is counted on as what
    /// newcomers of its overflow counter have used at most.
    pub evicted: u64,
    /// Entries that were over and were forgotten.
    pub swept: u64,
    /// Charges that found state from an impossible future or of another algorithm, and counted it
    /// as none.
    pub discarded: u64,
    /// Decisions that were taken by an overflow counter.
    pub overflow: u64,
    /// Overflow counters that are there now.
    pub overflow_counters: usize,
    /// Charges, refunds and settlements that found no room, not even in an overflow counter, and
    /// were refused.
    pub full: u64,
}

/// What one limit has in a [`Memory`](super::Memory).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitStats {
    /// Its entries, also those that are over and not yet swept.
    pub entries: usize,
    /// Those of them with permits, reservations or a refund that is remembered, which never make
    /// room for others.
    pub pinned: usize,
}

impl Stats {
    /// Adds what `shard` holds and counted.
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
