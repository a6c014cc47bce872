//! What leaves a shard: what is over, and for want of room what ends first.

use tollgate_core::Timestamp;
use tollgate_core::time::DEFAULT_SKEW_MAX;

use super::fingerprint::Fingerprint;
use super::packed::{Packed, Retention};
use super::shard::Shard;
use super::table::Table;

/// An eviction drops one in so many entries, so that its search is paid for by as many charges.
const EVICTED_OF: usize = 16;

/// Calls between two steps of the sweep, and the slots that a step looks at: as many as there are
/// calls, in a row, because neighbours come from memory together.
const SWEEP_EVERY: u32 = 32;
const SWEEP_SLOTS: usize = 16;

/// A table with fewer entries than one in so many slots is made smaller.
const SPARSE_OF: usize = 4;

impl Shard {
    /// Forgets what has been over for a while among the next few slots.
    ///
    /// Clocks of two callers may disagree a little: until nobody can decide at a moment before its
    /// end any more, an entry stays.
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
        self.shrink();
    }

    /// Forgets everything that has been over for a while, except what is `pinned`; answers how much.
    pub(super) fn drop_expired(
        &mut self,
        now: Timestamp,
        pinned: &impl Fn(Fingerprint) -> bool,
    ) -> usize {
        if now < self.barren_until {
            return 0;
        }
        let goes = |key, packed| is_expired_everywhere(packed, now) && !pinned(key);
        let dropped = self.forget_where(usize::MAX, goes);
        self.counts.swept += dropped as u64;
        self.shrink();
        dropped
    }

    /// Drops the sixteenth of the entries that ends first, and at least one, of those that are over
    /// or not protected; answers how many.
    pub(super) fn evict(&mut self, now: Timestamp, pinned: &impl Fn(Fingerprint) -> bool) -> usize {
        if now < self.barren_until {
            return 0;
        }
        let may_go = |packed: Packed| {
            packed.retention() == Retention::Evictable || packed.expires_at() <= now
        };
        let mut ends: Vec<Timestamp> = (self.table.iter())
            .filter(|(key, packed)| may_go(*packed) && !pinned(*key))
            .map(|(_, packed)| packed.expires_at())
            .collect();
        if ends.is_empty() {
            self.barren_until = self.first_change(may_go);
            return 0;
        }
        let count = (self.table.len() / EVICTED_OF).clamp(1, ends.len());
        let (_, last, _) = ends.select_nth_unstable(count - 1);
        let last = *last;
        let mut over = 0;
        let dropped = self.forget_where(count, |key, packed| {
            let goes = packed.expires_at() <= last && may_go(packed) && !pinned(key);
            over += u64::from(goes && packed.expires_at() <= now);
            goes
        });
        self.counts.swept += over;
        self.counts.evicted += dropped as u64 - over;
        self.shrink();
        dropped
    }

    /// The first moment at which something may go, if nothing may go now and nothing changes.
    fn first_change(&self, may_go: impl Fn(Packed) -> bool) -> Timestamp {
        if self.table.iter().any(|(_, packed)| may_go(packed)) {
            return Timestamp::EPOCH;
        }
        self.table.iter().map(|(_, packed)| packed.expires_at()).min().unwrap_or_default()
    }

    /// Forgets up to `most` entries that `goes` names; answers how many.
    fn forget_where(
        &mut self,
        most: usize,
        mut goes: impl FnMut(Fingerprint, Packed) -> bool,
    ) -> usize {
        let (mut slot, mut forgotten) = (0, 0);
        while slot < self.table.capacity() && forgotten < most {
            match self.table.get(slot) {
                // A removal moves the next entry here: the slot is looked at again.
                Some((key, packed)) if goes(key, packed) => {
                    self.forget(slot);
                    forgotten += 1;
                }
                _ => slot += 1,
            }
        }
        forgotten
    }

    /// Gives memory back if most of the table is empty.
    fn shrink(&mut self) {
        let roomy = Table::<Packed>::capacity_for(self.table.len()) * 5 / 4;
        if self.table.len() < self.table.capacity() / SPARSE_OF && roomy < self.table.capacity() {
            self.table.resize(roomy);
            self.cursor = 0;
        }
    }
}

/// Whether an entry is over for every caller, be their clocks apart as far as is provided for.
fn is_expired_everywhere(packed: Packed, now: Timestamp) -> bool {
    packed.expires_at().after(DEFAULT_SKEW_MAX) <= now
}
