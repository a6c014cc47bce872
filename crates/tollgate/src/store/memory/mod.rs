//! The store in the memory of this process. The store has a bounded size, is divided into shards
//! with a lock each, and removes expired entries during its calls.
//!
//! - An entry is 28 bytes: a keyed hash of the limit's name and the subject, and the state in two
//!   words. States that are lists (sliding windows, logs, permits) are stored outside the table of
//!   entries.
//! - **Bounded.** [`Bounds`] are divided among the shards. A full shard selects the limit with the
//!   most entries, and drops the sixteenth of that limit's entries that has the least usage. The
//!   usage of a dropped subject is not forgotten: each overflow counter has a ceiling, the highest
//!   usage of any of its subjects whose entry was dropped. A subject without an entry starts with
//!   at least this usage.
//! - **Never beyond a quota.** A full shard can drop no entry if all of its entries are at their
//!   limit or have units in flight. The store then counts a subject without an entry in an overflow
//!   counter, which the subject shares with other subjects of the limit ([`OVERFLOW_COUNTERS`] for
//!   each limit). The source of the answer is
//!   [`DecisionSource::Overflow`](tollgate_core::DecisionSource). A client that fills the store
//!   gains no request beyond a limit.
//! - **Shared fairly.** Each limit is guaranteed [`Bounds::guaranteed_entries`]. A limit that
//!   exceeds its own guarantee cannot use the guaranteed entries of another limit. Permits,
//!   reservations and remembered refunds are never dropped to make room, and take at most half of a
//!   shard.
//! - **Swept by its calls.** Every call checks a few entries and removes the expired entries among
//!   them, so the store needs no thread.
//! - **Atomic.** A call locks all of its shards in a fixed order. The call changes the state only
//!   after every charge of the call is decided and has room.

mod bounds;
mod call;
mod cells;
mod destination;
mod evict;
mod fingerprint;
mod in_place;
mod lifetime;
mod overflow;
mod packed;
mod pool;
mod redeem;
mod room;
mod room_reservation;
#[cfg(all(test, shuttle))]
mod schedules;
mod shard;
mod shares;
mod stats;
mod sync;
mod table;
mod target;
mod together;
mod transfer;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;
use tollgate_core::policy::PlannedCharge;
use tollgate_core::{
    Charge, ChargeId, DecisionSource, Deduplication, Limit, Millis, Operation, Reading, Readings,
    Store, StoreError, Subject, Timestamp,
};

pub use bounds::{Bounds, MAX_LIMITS, OVERFLOW_COUNTERS};
pub use stats::{LimitStats, Stats};

pub(crate) use fingerprint::KEY_DIMENSION;

use super::ImmediateStore;
use fingerprint::{Fingerprinter, SubjectHash};
use pool::Pool;
use shard::Shard;
use sync::{Mutex, MutexGuard};
use target::Target;

/// The shortest wait of a charge that is refused because neither an entry nor an overflow counter
/// has room for the charge.
pub const RETRY_WITHOUT_ROOM: Millis = Millis::from_secs(1);

/// A store that keeps the state of limits in the memory of this process.
///
/// ```
/// use tollgate::model::algo::{Anchor, FixedWindow};
/// use tollgate::model::{
///     Algorithm, Operation, Charge, ChargeId, Cost, Limit, Millis, Subject, Timestamp,
/// };
/// use tollgate::store::memory::{Bounds, Memory};
///
/// let window = FixedWindow::new(2, Millis::from_secs(60), Anchor::FirstRequest)?;
/// let limit = Limit::new("core", Algorithm::FixedWindow(window))?;
/// let store = Memory::new(Bounds::default());
/// let ask = Operation::Charge { cost: Cost::ONE, id: ChargeId(1) };
/// let charges = [Charge { limit: &limit, subject: &Subject::default(), operation: ask }];
///
/// let now = Timestamp::from_millis(1_000_000);
/// assert!(store.apply_now(now, &charges)?.all_admitted());
/// assert!(store.apply_now(now, &charges)?.all_admitted());
/// assert!(!store.apply_now(now, &charges)?.all_admitted());
/// assert_eq!(store.stats().entries, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Memory {
    fingerprints: Fingerprinter,
    shards: Box<[Padded]>,
}

/// A shard on separate cache lines, so two threads that use different shards do not slow each other
/// down.
#[repr(align(64))]
struct Padded(Mutex<Shard>);

impl Memory {
    /// Creates an empty store with the bounds `bounds`.
    ///
    /// ```
    /// use tollgate::store::memory::{Bounds, Memory};
    /// use tollgate::{Quota, RateLimiter};
    ///
    /// let store = Memory::new(Bounds { max_entries: 100_000, ..Bounds::default() });
    /// let limiter = RateLimiter::per_key(Quota::per_second(10)).store(store);
    /// assert!(limiter.try_check("alice").is_admitted());
    /// ```
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        let count = bounds.shards();
        let pool = Arc::new(Pool::new(bounds.pool()));
        let shard = |index| {
            let part = bounds.of_shard(index, count);
            Padded(Mutex::new(Shard::new(part, Arc::clone(&pool))))
        };
        Self { fingerprints: Fingerprinter::random(), shards: (0..count).map(shard).collect() }
    }

    /// Applies `charges` at `now`, as [`Store::apply`] does, without a future. The call waits only
    /// for locks that other calls hold for a short time.
    ///
    /// # Errors
    /// Never fails. A store without room refuses the charges, and the source of the readings
    /// reports the cause.
    pub fn apply_now(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> Result<Readings, StoreError> {
        Ok(match charges {
            [] => Readings::new(),
            [charge] => self.apply_one(now, charge),
            _ => {
                let mut readings = Vec::with_capacity(charges.len());
                let source = self.apply_many(now, charges, &mut readings);
                Readings::from(readings).with_source(source)
            }
        })
    }

    fn apply_many(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
        readings: &mut Vec<Reading>,
    ) -> DecisionSource {
        let mut targets = SmallVec::<[Target<'_>; call::INLINE]>::new();
        let mut last: Option<(&Subject, SubjectHash)> = None;
        for charge in charges {
            // The charges of a request usually have the same subject, so its hash is computed once.
            let hash = match last {
                Some((subject, hash)) if subject == charge.subject => hash,
                _ => self.fingerprints.subject(charge.subject),
            };
            last = Some((charge.subject, hash));
            targets.push(self.target_of(charge, hash));
        }
        call::apply(self, now, &targets, readings)
    }

    /// Returns the usage of the store by each of `limits`, in the order of `limits`.
    ///
    /// Reads one shard after the other, so the numbers do not describe a single point in time.
    #[must_use]
    pub fn limit_stats<'a>(&self, limits: impl IntoIterator<Item = &'a Limit>) -> Vec<LimitStats> {
        let mut all = HashMap::<u128, LimitStats>::new();
        for index in 0..self.shards.len() {
            for (digest, entries, pinned) in self.lock(index).shares.iter() {
                let stats = all.entry(digest).or_default();
                stats.entries += entries;
                stats.pinned += pinned;
            }
        }
        let of = |limit: &Limit| all.get(&limit.state_digest()).copied().unwrap_or_default();
        limits.into_iter().map(of).collect()
    }

    /// Returns the current usage of the store, and the counts since the store was created.
    ///
    /// Reads one shard after the other, so the numbers do not describe a single point in time.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        for index in 0..self.shards.len() {
            stats.add(&self.lock(index));
        }
        stats
    }

    /// Applies a call with one charge, the most frequent call. Returns the same readings as
    /// [`call::apply`].
    #[inline]
    fn apply_one(&self, now: Timestamp, charge: &Charge<'_>) -> Readings {
        let hash = self.fingerprints.subject(charge.subject);
        let mut shard = self.lock(hash.shard(self.shards.len()));
        shard.sweep(now);
        if let Operation::Charge { cost, .. } = charge.operation
            && let Some(reading) =
                shard.charge_in_place(now, charge.limit, cost, hash.on(charge.limit))
        {
            return Readings::one(reading);
        }
        let (reading, source) = shard.apply_alone(now, &self.target_of(charge, hash));
        Readings::one(reading).with_source(source)
    }

    /// Charges `limit` for the subject that consists of the unhashed value `key` under the name
    /// [`KEY_DIMENSION`]. Allocates no memory. `operation` must be a charge.
    #[inline]
    pub(crate) fn charge_key(
        &self,
        now: Timestamp,
        limit: &Limit,
        key: &[u8],
        operation: Operation,
    ) -> Reading {
        let hash = self.fingerprints.key(key);
        let (index, key) = (hash.shard(self.shards.len()), hash.on(limit));
        let mut shard = self.lock(index);
        shard.sweep(now);
        if let Operation::Charge { cost, .. } = operation
            && let Some(reading) = shard.charge_in_place(now, limit, cost, key)
        {
            return reading;
        }
        // The shard reads only the hash `key` of the subject, so `subject` is a placeholder.
        let charge = Charge { limit, subject: &Subject::default(), operation };
        shard.apply_alone(now, &Target { charge, shard: index, key, refund: None }).0
    }

    fn target<'a>(&self, charge: &Charge<'a>) -> Target<'a> {
        self.target_of(charge, self.fingerprints.subject(charge.subject))
    }

    #[inline]
    fn target_of<'a>(&self, charge: &Charge<'a>, hash: SubjectHash) -> Target<'a> {
        let Charge { limit, subject, operation } = *charge;
        let refund = match operation {
            Operation::Refund { id, deduplication: Deduplication::ById, .. } => {
                Some(self.fingerprints.refunded(limit, subject, id))
            }
            _ => None,
        };
        Target {
            charge: *charge,
            shard: hash.shard(self.shards.len()),
            key: hash.on(limit),
            refund,
        }
    }

    #[inline]
    fn lock(&self, index: usize) -> MutexGuard<'_, Shard> {
        self.shards[index].0.lock()
    }
}

impl ImmediateStore for Memory {
    fn apply_into(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
        readings: &mut Vec<Reading>,
    ) -> Result<DecisionSource, StoreError> {
        readings.clear();
        Ok(match charges {
            [] => DecisionSource::Store,
            [charge] => {
                let answer = self.apply_one(now, charge);
                readings.extend_from_slice(&answer);
                answer.source()
            }
            _ => self.apply_many(now, charges, readings),
        })
    }

    fn charge_into(
        &self,
        now: Timestamp,
        id: ChargeId,
        planned: &[PlannedCharge],
        readings: &mut Vec<Reading>,
    ) -> Result<DecisionSource, StoreError> {
        readings.clear();
        let Some((first, rest)) = planned.split_first() else { return Ok(DecisionSource::Store) };
        let hash = self.fingerprints.subject(&first.subject);
        // The charges of a request usually have the same subject, and are then in one shard.
        if rest.iter().all(|other| other.subject == first.subject) {
            let mut shard = self.lock(hash.shard(self.shards.len()));
            shard.sweep(now);
            if shard.charge_planned(now, id, hash, planned, readings) {
                return Ok(DecisionSource::Store);
            }
        }
        let charges: SmallVec<[Charge<'_>; call::INLINE]> =
            planned.iter().map(|planned| planned.charge(id)).collect();
        self.apply_into(now, &charges, readings)
    }
}

impl Store for Memory {
    fn apply(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> impl Future<Output = Result<Readings, StoreError>> + Send {
        std::future::ready(self.apply_now(now, charges))
    }

    fn apply_at_once(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> Option<Result<Readings, StoreError>> {
        Some(self.apply_now(now, charges))
    }
}

impl Default for Memory {
    /// Creates a store with the default [`Bounds`].
    fn default() -> Self {
        Self::new(Bounds::default())
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("shards", &self.shards.len()).finish_non_exhaustive()
    }
}
