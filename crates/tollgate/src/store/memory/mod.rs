//! The store in this process: bounded, sharded, swept as it is used.
//!
//! - An entry is 32 bytes: a keyed 128-bit hash of the limit's name and the subject, and the state
//!   in two words. States that are lists (sliding windows, logs, leases) lie beside the table.
//! - **Bounded.** [`Bounds`] are divided among the shards. When a shard is full it drops the
//!   sixteenth of its entries that ends first among those with units left, and counts them. It
//!   never drops what is at its limit, what holds leases, or a refund that is remembered: nobody
//!   gets past a limit by filling the store. If that is all there is, the call is refused with
//!   [`StoreError::Full`], and subjects that are there go on as before.
//! - **Swept as it is used.** Every call looks at a few entries; there is no thread of its own.
//! - **Atomic.** A call locks every shard it touches, in one order, and changes nothing before all
//!   of it is decided and has room.

mod bounds;
mod call;
mod cells;
mod evict;
mod fingerprint;
mod lifetime;
mod packed;
mod room;
mod room_reservation;
mod shard;
mod stats;
mod table;
mod transfer;

use std::fmt;

use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;
use tollgate_core::{Charge, Deduplication, Operation, Readings, Store, StoreError, Timestamp};

pub use bounds::Bounds;
pub use stats::Stats;

use fingerprint::Fingerprinter;
use shard::{Shard, Target};

/// Remembers limits in this process.
///
/// ```
/// use tollgate::core::algo::{Anchor, FixedWindow};
/// use tollgate::core::{
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

/// A shard on cache lines of its own: two threads with different shards do not disturb each other.
#[repr(align(64))]
struct Padded(Mutex<Shard>);

impl Memory {
    /// An empty store that holds at most `bounds`.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        let count = bounds.shards();
        let shard = |index| Padded(Mutex::new(Shard::new(bounds.of_shard(index, count))));
        Self { fingerprints: Fingerprinter::random(), shards: (0..count).map(shard).collect() }
    }

    /// Carries out `charges` at `now`, as [`Store::apply`] does, without a future: nothing here
    /// waits for anything but a short lock.
    ///
    /// # Errors
    /// [`StoreError::Full`] if an entry must be added, or one grow, and everything in its shard is
    /// in force; then nothing was changed.
    pub fn apply_now(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> Result<Readings, StoreError> {
        match charges {
            [] => Ok(Readings::new()),
            [charge] => self.apply_one(now, charge),
            _ => {
                let targets: SmallVec<[Target<'_>; call::INLINE]> =
                    charges.iter().map(|charge| self.target(charge)).collect();
                call::apply(self, now, &targets)
            }
        }
    }

    /// How full it is, and what happened since it was made.
    ///
    /// Looks at one shard after the other: the numbers are of slightly different moments.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        for index in 0..self.shards.len() {
            stats.add(&self.lock(index));
        }
        stats
    }

    /// What [`call::apply`] does, for the most frequent call.
    #[inline]
    fn apply_one(&self, now: Timestamp, charge: &Charge<'_>) -> Result<Readings, StoreError> {
        let key = self.fingerprints.charged(charge.limit, charge.subject);
        let mut shard = self.lock(key.shard(self.shards.len()));
        shard.sweep(now);
        if let Some(reading) = shard.take_in_place(now, charge, key) {
            return Ok(Readings::one(reading));
        }
        shard.apply_alone(now, &self.target(charge)).map(Readings::one)
    }

    fn target<'a>(&self, charge: &Charge<'a>) -> Target<'a> {
        let Charge { limit, subject, operation } = *charge;
        let refund = match operation {
            Operation::Refund { id, deduplication: Deduplication::ById, .. } => {
                Some(self.fingerprints.refunded(limit, subject, id))
            }
            _ => None,
        };
        Target { charge: *charge, key: self.fingerprints.charged(limit, subject), refund }
    }

    #[inline]
    fn lock(&self, index: usize) -> MutexGuard<'_, Shard> {
        self.shards[index].0.lock()
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
}

impl Default for Memory {
    /// With the default [`Bounds`].
    fn default() -> Self {
        Self::new(Bounds::default())
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("shards", &self.shards.len()).finish_non_exhaustive()
    }
}
