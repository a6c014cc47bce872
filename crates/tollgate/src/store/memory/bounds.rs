//! The bounds of the store, and their division among shards.

use super::shares::{Places, Shares};

/// The bounds of a [`Memory`](super::Memory) store. Both apply at the same time.
///
/// ```
/// use tollgate::store::memory::Bounds;
///
/// let bounds = Bounds { max_entries: 200_000, ..Bounds::default() };
/// assert_eq!(bounds.max_bytes, 64 * 1024 * 1024);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The most entries: one for each limit and subject in use, and one for each refund that is
    /// remembered because it may arrive again.
    pub max_entries: usize,
    /// The most bytes allocated for entries. While a table grows, its old part exists for a moment
    /// in addition.
    pub max_bytes: usize,
}

impl Default for Bounds {
    /// A million entries, 64 MiB.
    fn default() -> Self {
        Self { max_entries: 1_000_000, max_bytes: 64 * 1024 * 1024 }
    }
}

/// The minimum entries and bytes of a shard. A small number of entries is spread unevenly over
/// shards, so a store with fewer entries has fewer shards.
const SHARD_ENTRIES: usize = 2_048;
const SHARD_BYTES: usize = 64 * 1024;

/// The number of shards at which locks are no bottleneck any more, and still stay in the processor's
/// cache: with 4,096 of them, a decision on one of a thousand keys takes a fifth longer.
const ENOUGH_SHARDS: usize = 256;

/// The most entries of a shard, up to [`MAX_SHARDS`]: a shard is locked while its table grows.
const MAX_SHARD_ENTRIES: usize = 32_768;
const MAX_SHARDS: usize = 4_096;

/// The minimum number of overflow counters of each limit, over all shards, if the store has enough
/// bytes.
pub const OVERFLOW_COUNTERS: usize = 512;

/// The most limits that have shares and overflow counters of their own at a time. A subject of a
/// further limit is refused if the store has no room for its entry.
pub const MAX_LIMITS: usize = 255;

/// The divisors of `max_bytes`: one part in `POOL_OF` is for states larger than 4 KiB and the cells
/// of overflow counters, and one in `COUNTERS_OF` for the counters themselves; the rest is for
/// entries.
const POOL_OF: usize = 4;
const COUNTERS_OF: usize = 8;

/// The minimum number of limits with counters. If the store has few bytes, each limit has fewer
/// counters.
const LEAST_LIMITS: usize = 16;

/// The divisor of `max_bytes` for the largest state of one subject that always fits in an otherwise
/// empty store. It takes into account that a list grows by a half, and that a limit takes at most
/// half of the pool.
const STATE_OF: usize = 32;

/// The bounds of one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) max_entries: usize,
    /// For entries: slots of the table and states of at most 4 KiB.
    pub(super) max_bytes: usize,
    pub(super) places: Places,
}

impl Bounds {
    /// Returns the number of entries of each limit that other limits can never take, while `limits`
    /// limits are in use: its newcomers up to this number are counted exactly, whatever other
    /// limits hold. Subjects are spread over the shards by chance: one shard may be a little ahead
    /// of the others.
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

    /// Returns the number of shards that share these bounds.
    pub(super) fn shards(self) -> usize {
        let most = (self.max_entries / SHARD_ENTRIES).min(self.max_bytes / SHARD_BYTES);
        let wanted = (self.max_entries / MAX_SHARD_ENTRIES).clamp(ENOUGH_SHARDS, MAX_SHARDS);
        most.clamp(1, wanted)
    }

    /// The bytes of the pool.
    pub(super) const fn pool(self) -> usize {
        self.max_bytes / POOL_OF
    }

    /// The bounds of shard `index` among `shards`: all together, with the pool, are at most these.
    pub(super) fn of_shard(self, index: usize, shards: usize) -> Part {
        let part = |whole: usize| whole / shards + usize::from(index < whole % shards);
        let reserve = self.max_bytes / COUNTERS_OF;
        let max_bytes = part(self.max_bytes - self.pool() - reserve);
        let places = places(reserve / shards, shards);
        Part { max_entries: part(self.max_entries), max_bytes, places }
    }
}

/// The counters and limits of each of `shards` shards, in `bytes`.
fn places(bytes: usize, shards: usize) -> Places {
    let wanted = OVERFLOW_COUNTERS.div_ceil(shards);
    let mut counters = wanted;
    while counters > 1 && Shares::bytes_of(counters) * LEAST_LIMITS > bytes {
        counters /= 2;
    }
    Places { limits: (bytes / Shares::bytes_of(counters)).min(MAX_LIMITS), counters }
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
                for Part { max_entries, max_bytes, places } in parts {
                    entries += max_entries;
                    bytes += max_bytes + places.limits * Shares::bytes_of(places.counters);
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
        let Places { limits, counters } = bounds.of_shard(0, shards).places;
        assert!(counters * shards >= OVERFLOW_COUNTERS);
        assert!(limits >= 60, "{limits}");
    }
}
