//! How much the store may hold.

/// The most that a [`Memory`](super::Memory) holds; both bounds hold at once.
///
/// ```
/// use tollgate::store::memory::Bounds;
///
/// let bounds = Bounds { max_entries: 200_000, ..Bounds::default() };
/// assert_eq!(bounds.max_bytes, 64 * 1024 * 1024);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Entries: one for each limit and subject in use, and one for each refund that is remembered
    /// because it may be asked again.
    pub max_entries: usize,
    /// Bytes allocated for entries. Where a table grows, its old part is there for a moment more.
    pub max_bytes: usize,
}

impl Default for Bounds {
    /// A million entries, 64 MiB.
    fn default() -> Self {
        Self { max_entries: 1_000_000, max_bytes: 64 * 1024 * 1024 }
    }
}

/// A shard is not made for fewer entries, since chance spreads few entries unevenly, nor for fewer
/// bytes.
const SHARD_ENTRIES: usize = 2_048;
const SHARD_BYTES: usize = 64 * 1024;

/// The most shards: beyond them locks are no bottleneck, and shards grow instead.
const MAX_SHARDS: usize = 4_096;

impl Bounds {
    /// How many shards share these bounds.
    pub(super) fn shards(self) -> usize {
        let shards = (self.max_entries / SHARD_ENTRIES).min(self.max_bytes / SHARD_BYTES);
        shards.clamp(1, MAX_SHARDS)
    }

    /// The bounds of shard `index` among `shards`: all together are exactly these.
    pub(super) fn of_shard(self, index: usize, shards: usize) -> Self {
        let part = |whole: usize| whole / shards + usize::from(index < whole % shards);
        Self { max_entries: part(self.max_entries), max_bytes: part(self.max_bytes) }
    }
}
