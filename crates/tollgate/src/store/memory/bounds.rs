//! The bounds of a memory store, and their division among the store's shards. In this module, a
//! shard is a part of the store with its own lock.

use super::shares::{ShareLimits, Shares};

/// The bounds of a [`Memory`](super::Memory) store. The store drops entries or refuses charges
/// before its entries exceed a bound.
///
/// ```
/// use tollgate::store::memory::Bounds;
///
/// let bounds = Bounds { max_entries: 200_000, ..Bounds::default() };
/// assert_eq!(bounds.max_bytes, 64 * 1024 * 1024);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The most entries. The store has one entry for each limit and subject in use, and one for
    /// each refund that it remembers because the same refund may arrive again.
    pub max_entries: usize,
    /// The most bytes allocated for entries. Only while the table of a shard grows, the store
    /// briefly uses more: the table's old slots are still allocated.
    pub max_bytes: usize,
}

impl Default for Bounds {
    /// Returns bounds of a million entries and 64 MiB.
    fn default() -> Self {
        Self { max_entries: 1_000_000, max_bytes: 64 * 1024 * 1024 }
    }
}

/// The minimum number of entries in the bound of a shard. A hash spreads subjects over shards at
/// random, and a small number of subjects is spread unevenly. A small store therefore has few
/// shards.
const SHARD_ENTRIES: usize = 2_048;
/// The minimum number of bytes in the bound of a shard, for the same reason as [`SHARD_ENTRIES`].
const SHARD_BYTES: usize = 64 * 1024;

/// The number of shards above which more shards do not reduce the time to wait for locks. The locks
/// of 256 shards still fit in the processor's cache. With 4,096 shards, a decision on one of a
/// thousand keys takes a fifth longer.
const ENOUGH_SHARDS: usize = 256;

/// The largest number of entries that one shard may have, unless the store already has
/// [`MAX_SHARDS`] shards. Shards stay small because a shard is locked while its table grows.
const MAX_SHARD_ENTRIES: usize = 32_768;
/// The most shards of a store.
const MAX_SHARDS: usize = 4_096;

/// The minimum number of overflow counters of each limit, in all shards together, if the store has
/// enough bytes.
pub const OVERFLOW_COUNTERS: usize = 512;

/// The most limits that have guaranteed entries and overflow counters of their own at one time. A
/// subject of any further limit is refused if the store has no room for the subject's entry.
pub const MAX_LIMITS: usize = 255;

/// The fraction 1/`POOL_OF` of `max_bytes` is for states larger than 4 KiB and for the states of
/// overflow counters.
const POOL_OF: usize = 4;
/// The fraction 1/`COUNTERS_OF` of `max_bytes` is for the overflow counters themselves. The bytes
/// that remain after both fractions are for entries.
const COUNTERS_OF: usize = 8;

/// The minimum number of limits with overflow counters. To reach this number in a store with few
/// bytes, each limit gets fewer overflow counters.
const LEAST_LIMITS: usize = 16;

/// The divisor of `max_bytes` that gives the size of the largest state that always fits in an
/// otherwise empty store. The divisor takes into account that a list grows by a half, and that one
/// limit takes at most half of the pool of bytes for large states.
const STATE_OF: usize = 32;

/// The bounds of one shard: its part of [`Bounds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) max_entries: usize,
    /// The most bytes for entries: for the slots of the table and for states of at most 4 KiB.
    pub(super) max_bytes: usize,
    pub(super) share_limits: ShareLimits,
}

impl Bounds {
    /// Returns the number of entries that each limit is guaranteed while `limits` limits are in
    /// use. Up to this number, each new subject of a limit gets its own entry, however many entries
    /// other limits have. The number is approximate, because a hash spreads subjects over the
    /// shards at random, and one shard may be full a little before the others.
    ///
    /// ```
    /// use tollgate::store::memory::Bounds;
    ///
    /// assert_eq!(Bounds::default().guaranteed_entries(2), 250_000);
    /// ```
    #[must_use]
    pub const fn guaranteed_entries(self, limits: usize) -> usize {
        super::shares::guaranteed(self.max_entries, limits)
    }

    /// Returns the bytes of the largest state of one subject that always fits in an otherwise empty
    /// store.
    #[must_use]
    pub const fn largest_state(self) -> usize {
        self.max_bytes / STATE_OF
    }

    /// Returns the number of shards into which a store with these bounds is divided.
    pub(super) fn shards(self) -> usize {
        let most = (self.max_entries / SHARD_ENTRIES).min(self.max_bytes / SHARD_BYTES);
        let wanted = (self.max_entries / MAX_SHARD_ENTRIES).clamp(ENOUGH_SHARDS, MAX_SHARDS);
        most.clamp(1, wanted)
    }

    /// Returns the size in bytes of the pool for large states and for the states of overflow
    /// counters.
    pub(super) const fn pool(self) -> usize {
        self.max_bytes / POOL_OF
    }

    /// Returns the bounds of shard `index` among `shards` shards. The bounds of all shards and the
    /// pool are together at most `self`.
    pub(super) fn of_shard(self, index: usize, shards: usize) -> Part {
        let part = |whole: usize| whole / shards + usize::from(index < whole % shards);
        let reserve = self.max_bytes / COUNTERS_OF;
        let max_bytes = part(self.max_bytes - self.pool() - reserve);
        let share_limits = share_limits(reserve / shards, shards);
        Part { max_entries: part(self.max_entries), max_bytes, share_limits }
    }
}

/// Divides the bytes for overflow counters in a store of `shards` shards. Returns how many limits
/// have overflow counters in each shard, and how many counters each of these limits has there. The
/// counters of a shard use at most `bytes`.
fn share_limits(bytes: usize, shards: usize) -> ShareLimits {
    let wanted = OVERFLOW_COUNTERS.div_ceil(shards);
    let mut counters = wanted;
    while counters > 1 && Shares::bytes_of(counters) * LEAST_LIMITS > bytes {
        counters /= 2;
    }
    ShareLimits { limits: (bytes / Shares::bytes_of(counters)).min(MAX_LIMITS), counters }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_are_together_at_most_the_whole() {
        for max_entries in [0, 1, 3_000, 1_000_000] {
            for max_bytes in [0, 1, 4_096, 65_536, 1 << 20, 64 << 20, usize::MAX] {
                let bounds = Bounds { max_entries, max_bytes };
                let shards = bounds.shards();
                let parts = (0..shards).map(|index| bounds.of_shard(index, shards));
                let (mut entries, mut bytes) = (0, bounds.pool());
                for Part { max_entries, max_bytes, share_limits } in parts {
                    entries += max_entries;
                    bytes +=
                        max_bytes + share_limits.limits * Shares::bytes_of(share_limits.counters);
                }
                assert_eq!(entries, max_entries);
                assert!(bytes <= max_bytes, "{bytes} of {bounds:?}");
            }
        }
    }

    #[test]
    fn by_default_there_are_counters_for_many_limits() {
        let bounds = Bounds::default();
        let shards = bounds.shards();
        let ShareLimits { limits, counters } = bounds.of_shard(0, shards).share_limits;
        assert!(counters * shards >= OVERFLOW_COUNTERS);
        assert!(limits >= 60, "{limits}");
    }
}
