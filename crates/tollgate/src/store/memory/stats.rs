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
    /// Entries in force that were dropped to make room: each gave its subject back what it had
    /// used.
    pub evicted: u64,
    /// Entries that were over and were forgotten.
    pub swept: u64,
    /// Charges that found state from an impossible future or of another algorithm, and counted it
    /// as none.
    pub discarded: u64,
    /// Calls that were refused with [`StoreError::Full`](tollgate_core::StoreError::Full).
    pub full: u64,
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
        self.full += shard.counts.full;
    }
}
