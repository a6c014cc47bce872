//! Eviction from a shard: removes expired entries, and, if there is no room, the entries with the
//! least usage.

use tollgate_core::decide::Plain;
use tollgate_core::time::DEFAULT_SKEW_MAX;
use tollgate_core::{MAX_EXACT, Millis, Timestamp};

use super::cells::units_of;
use super::fingerprint::Fingerprint;
use super::overflow::Ceiling;
use super::packed::{Content, Packed, Retention};
use super::shard::Shard;
use super::shares::{OTHERS, Resource};
use super::table::Table;

type Slots = Table<Packed>;

/// One eviction drops 1/`EVICTED_OF` of a limit's entries. The search for these entries is
/// expensive, and its cost is spread over the later charges that use the freed room.
const EVICTED_OF: usize = 16;

/// The number of calls between two runs of the sweep.
const SWEEP_EVERY: u32 = 32;
/// The number of slots that one run of the sweep checks. The slots of a run are adjacent, because
/// the processor loads adjacent memory together.
const SWEEP_SLOTS: usize = 16;

/// A table is made smaller if fewer than 1/`SPARSE_OF` of its slots have an entry.
const SPARSE_OF: usize = 4;

impl Shard {
    /// Checks the next few slots, and removes their entries that expired some time ago.
    ///
    /// The clocks of callers may differ a little, so an entry stays until no caller can decide at a
    /// time before the end of the entry.
    #[inline]
    pub(super) fn sweep(&mut self, now: Timestamp) {
        self.unswept_calls += 1;
        if self.unswept_calls >= SWEEP_EVERY {
            self.sweep_on(now);
        }
    }

    #[cold]
    fn sweep_on(&mut self, now: Timestamp) {
        self.unswept_calls = 0;
        for _ in 0..SWEEP_SLOTS.min(self.table.capacity()) {
            match self.table.get(self.cursor) {
                Some((_, packed)) if is_expired_everywhere(packed, now) => {
                    self.forget(self.cursor);
                    self.counts.swept += 1;
                }
                _ if self.cursor + 1 < self.table.capacity() => self.cursor += 1,
                _ => self.cursor = 0,
            }
        }
        self.shares.sweep(now, &self.pool);
        self.shrink();
    }

    /// Removes the entries that have expired for every caller, except the entries that `pinned`
    /// selects by their keys. Returns the number of removed entries.
    pub(super) fn drop_over_for_all(
        &mut self,
        now: Timestamp,
        pinned: &impl Fn(Fingerprint) -> bool,
    ) -> usize {
        self.drop_expired(now, DEFAULT_SKEW_MAX, pinned)
    }

    /// Removes the entries that expired at least `time` ago, except the entries that `pinned`
    /// selects by their keys. Returns the number of removed entries.
    pub(super) fn drop_expired(
        &mut self,
        now: Timestamp,
        time: Millis,
        pinned: &impl Fn(Fingerprint) -> bool,
    ) -> usize {
        if now < self.first_end.after(time) {
            return 0;
        }
        let (mut slot, mut dropped) = (0, 0);
        let mut first_end = Timestamp::from_millis(MAX_EXACT);
        while slot < self.table.capacity() {
            match self.table.get(slot) {
                // A removal moves the next entry to this slot, so the same slot is checked again.
                Some((key, packed)) if packed.expires_at().after(time) <= now && !pinned(key) => {
                    self.forget(slot);
                    dropped += 1;
                }
                Some((_, packed)) => {
                    first_end = first_end.min(packed.expires_at());
                    slot += 1;
                }
                None => slot += 1,
            }
        }
        self.first_end = first_end;
        self.counts.swept += dropped as u64;
        self.shrink();
        dropped
    }

    /// Drops entries to make room for a new subject of the limit in `share`, because the shard
    /// lacks the resource `short`. Drops expired entries if there are any. Otherwise drops entries
    /// with the least usage of one limit, first of the limit that uses most of `short`. Keeps the
    /// entries that `pinned` selects by their keys. Returns whether any entry was dropped.
    ///
    /// A limit that already has its guaranteed number of entries cannot displace subjects that have
    /// used up another limit. Dropping the entry of such a subject raises an overflow counter of
    /// the other limit to its quota. The other limit then refuses all new subjects that share the
    /// counter, which is worse than refusing the one new subject.
    pub(super) fn make_room(
        &mut self,
        now: Timestamp,
        share: u8,
        short: Resource,
        pinned: &impl Fn(Fingerprint) -> bool,
    ) -> bool {
        if self.drop_expired(now, Millis::ZERO, pinned) > 0 {
            return true;
        }
        let most = match short {
            Resource::Entries => self.bounds.max_entries.min(Slots::len_for(self.largest_table())),
            Resource::Bytes => self.bounds.max_bytes,
        };
        let within = self.shares.is_within_guarantee(share, short, most);
        let largest = self.shares.largest(short);
        let of_other = largest.filter(|largest| *largest != share);
        let candidates = [
            largest.map(|largest| (largest, Retention::Evictable)),
            of_other.filter(|_| within).map(|other| (other, Retention::AtLimit)),
            Some((share, Retention::Evictable)),
        ];
        let mut candidates = candidates.into_iter().flatten();
        candidates.any(|(victim, retention)| {
            self.shares.entries(victim, retention) > 0
                && self.evict(now, victim, retention, pinned) > 0
        })
    }

    /// Drops a sixteenth of the entries of `victim` that have this `retention`, at least one entry:
    /// those with the least usage. Among entries with the same usage, drops the entries that end
    /// first. Keeps the entries that `pinned` selects by their keys. Returns the number of dropped
    /// entries. Raises the ceiling of the overflow counter of each dropped entry to at least the
    /// usage of the entry.
    fn evict(
        &mut self,
        now: Timestamp,
        victim: u8,
        retention: Retention,
        pinned: &impl Fn(Fingerprint) -> bool,
    ) -> usize {
        let may_go = |key: Fingerprint, packed: Packed| {
            packed.share() == victim && packed.retention() == retention && !pinned(key)
        };
        let going = self.table.iter().filter(|(key, packed)| may_go(*key, *packed));
        let mut losses: Vec<_> = going.map(|(_, packed)| self.loss(packed, now)).collect();
        if losses.is_empty() || victim == OTHERS {
            return 0;
        }
        let count = (losses.len() / EVICTED_OF).max(1);
        let (_, last, _) = losses.select_nth_unstable(count - 1);
        let last = *last;
        let (mut slot, mut dropped) = (0, 0);
        while slot < self.table.capacity() && dropped < count {
            match self.table.get(slot) {
                // A removal moves the next entry to this slot, so the same slot is checked again.
                Some((key, packed)) if may_go(key, packed) && self.loss(packed, now) <= last => {
                    let ceiling = self.ceiling(packed);
                    if let Some(counter) = self.shares.open_counter(victim, key) {
                        counter.ceiling.raise(ceiling, now);
                    }
                    self.forget(slot);
                    dropped += 1;
                }
                _ => slot += 1,
            }
        }
        self.counts.evicted += dropped as u64;
        self.shrink();
        dropped
    }

    /// Returns the value by which the entries of one limit are ordered for eviction: the usage, and
    /// then the end. Entries with smaller values are dropped first.
    fn loss(&self, packed: Packed, now: Timestamp) -> (u64, Timestamp) {
        let used = match packed.content() {
            // A bucket fills evenly, so its usage is proportional to the time until it is full.
            Content::Plain(Plain::TokenBucket(_)) => packed.expires_at().since(now).get(),
            _ => self.ceiling(packed).used,
        };
        (used, packed.expires_at())
    }

    /// Returns an upper bound of the usage of the entry's subject.
    fn ceiling(&self, packed: Packed) -> Ceiling {
        let used = match packed.content() {
            Content::Plain(Plain::FixedWindow(state)) => state.used,
            Content::Large(index) => self.cells.get(index).map_or(0, units_of),
            Content::Plain(Plain::TokenBucket(_)) | Content::Refunded => 0,
        };
        Ceiling { used, until: packed.expires_at() }
    }

    /// Returns the most slots that the table can have. The table cannot use the bytes that the
    /// states outside the table use.
    fn largest_table(&self) -> usize {
        self.bounds.max_bytes.saturating_sub(self.cells.bytes()) / Slots::bytes(1)
    }

    /// Makes the table smaller if most of its slots are empty.
    fn shrink(&mut self) {
        let roomy = Table::<Packed>::capacity_for(self.table.len()) * 5 / 4;
        if self.table.len() < self.table.capacity() / SPARSE_OF && roomy < self.table.capacity() {
            self.table.resize(roomy);
            self.cursor = 0;
        }
    }
}

/// Returns whether an entry has expired for every caller, even for a caller with a clock that is
/// behind by the largest allowed difference.
fn is_expired_everywhere(packed: Packed, now: Timestamp) -> bool {
    packed.expires_at().after(DEFAULT_SKEW_MAX) <= now
}
