//! A fallback that enforces this node's share of every limit.

use std::fmt;
use std::num::NonZeroU32;

use tokio::sync::Mutex;
use tollgate_core::algo::TokenBucket;
use tollgate_core::share::share_of;
use tollgate_core::{
    Admission, Algorithm, Charge, Cost, Limit, Millis, Operation, Reading, Readings, Store,
    StoreError, Subject, Timestamp,
};

use super::FallbackStore;
use crate::bounded_cache::{BoundedCache, EvictionPriority};
use tollgate::receipt::new_charge_id;

/// The default number of recorded statuses.
pub const DEFAULT_STATUSES: usize = 16_384;

/// A fallback that decides by this node's share of each limit, without contact to the other nodes.
///
/// Every quota and burst is divided by the number of nodes ([`Limit::share`]), and this node counts
/// its share in a store of its own. The main store's last status of a limit and subject is
/// recorded, and the share continues from this status: this node admits its part of the units that
/// were left, until the same reset.
///
/// # Guarantees
/// Calls are all or nothing, and costs, refunds and permits work as usual. The reset that clients
/// were sent stays valid. A client that had reached its limit remains at its limit. Readings show
/// the whole limit: the shares of the other nodes count as used.
///
/// # Limitations
/// - In one window, all nodes together admit at most
///   [`max_admitted_units`](Self::max_admitted_units) in addition to the units that the main store
///   admitted.
/// - A charge that fits the limit but not a share is refused for one window at a time.
/// - At most [`with_statuses`](Self::with_statuses) statuses are recorded. If there are more, the
///   statuses with the fewest remaining units are kept. A subject without a recorded status starts
///   with a whole share. Permits that the main store granted count until they would have expired by
///   themselves.
pub struct LocalShare<S> {
    store: S,
    nodes: NonZeroU32,
    seen: BoundedCache<LastStatus>,
    /// The lock for applying a recorded status to the share. One caller at a time holds the lock,
    /// and other callers wait.
    taking_over: Mutex<()>,
}

/// The last known status of a limit and subject.
#[derive(Clone, Copy, PartialEq, Eq)]
struct LastStatus {
    at: Timestamp,
    used: u64,
    remaining: u64,
    full_reset_at: Timestamp,
    /// The largest capacity under which the status was applied to the share. Zero if it was not
    /// applied yet.
    applied: u64,
}

impl EvictionPriority for LastStatus {
    fn eviction_priority(&self, now: Timestamp) -> u64 {
        if self.full_reset_at <= now { 0 } else { u64::MAX - self.remaining }
    }
}

impl<S> LocalShare<S> {
    /// Creates a fallback that enforces one of `nodes` equal shares of every limit. The share is
    /// counted in `store`, which must not be used for anything else.
    #[must_use]
    pub fn new(store: S, nodes: NonZeroU32) -> Self {
        Self {
            store,
            nodes,
            seen: BoundedCache::new(DEFAULT_STATUSES),
            taking_over: Mutex::new(()),
        }
    }

    /// Sets how many statuses are recorded, rounded up to a power of two.
    #[must_use]
    pub fn with_statuses(mut self, entries: usize) -> Self {
        self.seen = BoundedCache::new(entries);
        self
    }

    /// Returns the maximum units of `limit` that all nodes together admit in one window: the share
    /// of one node, multiplied by the number of nodes. A share is rounded down, so the maximum is
    /// at most the capacity of the limit. The exception is a capacity below the number of nodes:
    /// then each share is one unit, and the maximum is one unit for each node.
    #[must_use]
    pub const fn max_admitted_units(&self, limit: &Limit) -> u64 {
        share_of(limit.capacity(), self.nodes).saturating_mul(self.nodes.get() as u64)
    }

    /// Returns the units that this node admits in one window if the main store's last known status
    /// had `remaining` units.
    #[must_use]
    pub const fn part_of(&self, remaining: u64) -> u64 {
        share_of(remaining, self.nodes)
    }
}

impl<S: Store> LocalShare<S> {
    /// Applies the recorded status of a limit and subject to this node's share. Each status is
    /// applied once, and once more for each larger quota until a quota has room for all of it.
    async fn adopt_usage(&self, now: Timestamp, charge: &Charge<'_>, part: &Limit) {
        let key = self.seen.key(charge);
        let capacity = charge.limit.capacity();
        let unapplied = || self.seen.get(key).filter(|seen| seen.applied < capacity);
        if unapplied().is_none() {
            return;
        }
        let _turn = self.taking_over.lock().await;
        let Some(seen) = unapplied() else { return };
        if now < seen.full_reset_at {
            // If the store is full, the charge itself fails too and returns that error.
            let remaining = seen.remaining_of(charge.limit);
            let _ = self.go_on(now, part, charge.subject, seen, remaining).await;
        }
        // The record is changed last, because other callers must wait until the share has the right
        // usage.
        self.seen.update(key, now, |latest| match latest {
            Some(latest) if latest == seen => {
                let is_over = now >= seen.full_reset_at || seen.fits(charge.limit);
                (!is_over).then_some(LastStatus { applied: capacity, ..seen })
            }
            latest => latest,
        });
    }

    /// Charges the share until only this node's part of the `remaining` units is left.
    ///
    /// The time of the charge is chosen so that the charged units are free again at the main
    /// store's reset. If the share's window at that time is already over, the remaining units are
    /// charged at `now`. Tokens that a bucket regained since the status remain free.
    async fn go_on(
        &self,
        now: Timestamp,
        part: &Limit,
        subject: &Subject,
        seen: LastStatus,
        remaining: u64,
    ) -> Result<(), StoreError> {
        let target = part.capacity().saturating_sub(self.part_of(remaining));
        let charged_at = seen.charged_at(part).min(now);
        if let Algorithm::TokenBucket(bucket) = part.algorithm() {
            let used = self.charge_share(now, part, subject, Cost::PEEK).await?;
            // The store ignores a state that is much newer than the charge, so a share with a state is
            // charged at `now`.
            let (at, target) = match used {
                0 => (charged_at, target),
                _ => (now, target.saturating_sub(arrived(bucket, now.since(charged_at)))),
            };
            self.charge_share(at, part, subject, Cost::up_to(target.saturating_sub(used))).await?;
            return Ok(());
        }
        for at in [charged_at, now] {
            let used = self.charge_share(now, part, subject, Cost::PEEK).await?;
            if used >= target {
                break;
            }
            self.charge_share(at, part, subject, Cost::up_to(target - used)).await?;
        }
        Ok(())
    }

    /// Charges the share at `at`, and returns the used units after the charge.
    async fn charge_share(
        &self,
        at: Timestamp,
        part: &Limit,
        subject: &Subject,
        cost: Cost,
    ) -> Result<u64, StoreError> {
        let operation = Operation::Charge { cost, id: new_charge_id() };
        let readings = self.store.apply(at, &[Charge { limit: part, subject, operation }]).await?;
        Ok(readings.first().map_or(0, |reading| reading.used))
    }
}

impl LastStatus {
    /// Returns whether a share of `limit` can represent the whole status. A larger quota can have more
    /// used units, and a larger bucket more tokens.
    fn fits(&self, limit: &Limit) -> bool {
        match limit.algorithm() {
            Algorithm::TokenBucket(_) => self.remaining <= limit.capacity(),
            _ => self.used <= limit.capacity(),
        }
    }

    /// Returns whether this status is obsolete if no units of `limit` are used. If a smaller bucket is
    /// full, a larger bucket can still lack tokens.
    fn is_obsolete_if_full(&self, limit: &Limit) -> bool {
        match limit.algorithm() {
            Algorithm::TokenBucket(bucket) => {
                bucket.burst() >= self.used.saturating_add(self.remaining)
            }
            _ => true,
        }
    }

    /// Returns the units of `limit` that were left. The status may have been recorded with another
    /// quota: then a bucket contains the same tokens, and any other limit has the same used units.
    fn remaining_of(&self, limit: &Limit) -> u64 {
        match limit.algorithm() {
            Algorithm::TokenBucket(_) => self.remaining.min(limit.capacity()),
            _ => limit.capacity().saturating_sub(self.used),
        }
    }

    /// Returns the time at which the share must be charged, so that the charged units are free
    /// again exactly at the recorded reset.
    fn charged_at(&self, limit: &Limit) -> Timestamp {
        match limit.algorithm() {
            // A bucket refills from the time of the charge, in proportion to the time passed.
            Algorithm::TokenBucket(_) => self.at,
            Algorithm::FixedWindow(window) => window.opening_of(self.full_reset_at),
            _ => {
                let full_reset_at = self.full_reset_at.as_millis();
                Timestamp::from_millis(full_reset_at.saturating_sub(limit.window().get()))
            }
        }
    }
}

impl<S: Store> Store for LocalShare<S> {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        let parts: Vec<_> = charges.iter().map(|charge| charge.limit.share(self.nodes)).collect();
        let mut shares = Vec::with_capacity(charges.len());
        for (charge, part) in charges.iter().zip(&parts) {
            if charge.operation.as_charge().is_some()
                || matches!(charge.operation, Operation::Peek { .. })
            {
                self.adopt_usage(now, charge, part).await;
            }
            shares.push(Charge { limit: part, ..*charge });
        }
        let mut readings = self.store.apply(now, &shares).await?;
        for ((reading, charge), part) in readings.iter_mut().zip(charges).zip(&parts) {
            *reading = as_limit_reading(*reading, now, charge, part);
        }
        Ok(readings)
    }
}

impl<S: Store> FallbackStore for LocalShare<S> {
    fn observe(&self, now: Timestamp, charges: &[Charge<'_>], readings: &Readings) {
        // A replica may answer a read-only call, and may lag behind earlier answers. So the status
        // is not recorded.
        if charges.iter().all(|charge| charge.operation.is_read_only()) {
            return;
        }
        for (charge, reading) in charges.iter().zip(readings.iter()) {
            let key = self.seen.key(charge);
            if reading.used == 0 {
                let is_reset = charge.operation == Operation::Reset;
                self.seen.forget_if(key, |seen| is_reset || seen.is_obsolete_if_full(charge.limit));
                continue;
            }
            let (used, full_reset_at) = (reading.used, reading.full_reset_at);
            let remaining = charge.limit.capacity().saturating_sub(used);
            let seen = LastStatus { at: now, used, remaining, full_reset_at, applied: 0 };
            self.seen.put(key, seen, now);
        }
    }

    async fn used(&self, now: Timestamp, limit: &Limit, subject: &Subject) -> u64 {
        let part = limit.share(self.nodes);
        let operation = Operation::Peek { cost: Cost::PEEK };
        let charge = Charge { limit: &part, subject, operation };
        let readings = self.store.apply(now, &[charge]).await;
        readings.ok().and_then(|readings| readings.first().map(|reading| reading.used)).unwrap_or(0)
    }
}

/// Returns the whole tokens that arrive in `bucket` within `time`.
fn arrived(bucket: &TokenBucket, time: Millis) -> u64 {
    time.get().saturating_mul(bucket.quota()) / bucket.window().get()
}

/// Converts the reading of a share to a reading of the whole limit. The shares of the other nodes
/// count as used.
fn as_limit_reading(
    reading: Reading,
    now: Timestamp,
    charge: &Charge<'_>,
    part: &Limit,
) -> Reading {
    let whole = charge.limit.capacity();
    let used = reading.used.saturating_add(whole.saturating_sub(part.capacity()));
    let (Operation::Charge { cost, .. }
    | Operation::Reserve { cost, .. }
    | Operation::Peek { cost }) = charge.operation
    else {
        return Reading { used, ..reading };
    };
    let admission = |admission| match admission {
        // The charge fits the limit but not the share. The main store may answer again within one
        // window.
        Admission::Never if (part.capacity() + 1..=whole).contains(&cost.needed()) => {
            Admission::At(now.after(charge.limit.window()))
        }
        other => other,
    };
    Reading {
        used,
        admission: admission(reading.admission),
        fits_again: admission(reading.fits_again),
        ..reading
    }
}

impl<S: fmt::Debug> fmt::Debug for LocalShare<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalShare")
            .field("store", &self.store)
            .field("nodes", &self.nodes)
            .field("seen", &self.seen)
            .finish_non_exhaustive()
    }
}
