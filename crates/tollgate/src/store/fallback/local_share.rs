//! This node's share of every limit.

use std::fmt;
use std::num::NonZeroU32;

use tokio::sync::Mutex;
use tollgate_core::share::share_of;
use tollgate_core::{
    Admission, Algorithm, Charge, Cost, Limit, Operation, Reading, Readings, Store, StoreError,
    Subject, Timestamp,
};

use super::super::bounded_cache::{BoundedCache, EvictionPriority};
use super::FallbackStore;
use crate::receipt::new_charge_id;

/// The statuses that are remembered unless another number is set.
pub const DEFAULT_STATUSES: usize = 16_384;

/// Decides by a part of each limit, as one of several nodes that cannot ask each other.
///
/// Every quota and burst is divided by the number of nodes ([`Limit::share`]) and held by a store
/// of this node's own. What another store last told of a limit and subject is remembered, and the
/// share goes on from it: of what was left then this node admits its part, until the same reset.
///
/// # What it keeps
/// All or nothing; costs, refunds, leases; the reset that clients were told. A client that was at
/// its limit stays there. Readings are of the whole limit, as used as leaves this node's part.
///
/// # What it weakens
/// - In one window all nodes together admit at most [`max_admitted_units`](Self::max_admitted_units),
///   beside what the other store had admitted.
/// - A charge that no share can hold but the limit can is refused for one window at a time.
/// - At most so many statuses are remembered as [`with_statuses`](Self::with_statuses) says, those with
///   least left first; what was forgotten starts with a whole share. Leases that the other store
///   granted count until they would have ended by themselves.
pub struct LocalShare<S> {
    store: S,
    nodes: NonZeroU32,
    seen: BoundedCache<LastStatus>,
    /// One caller at a time takes over what was seen, and who comes meanwhile waits.
    taking_over: Mutex<()>,
}

/// How a limit stood when last heard of.
#[derive(Clone, Copy, PartialEq, Eq)]
struct LastStatus {
    at: Timestamp,
    remaining: u64,
    full_reset_at: Timestamp,
}

impl EvictionPriority for LastStatus {
    fn eviction_priority(&self, now: Timestamp) -> u64 {
        if self.full_reset_at <= now { 0 } else { u64::MAX - self.remaining }
    }
}

impl<S> LocalShare<S> {
    /// One part in `nodes` of every limit, held by `store`, which nobody else uses.
    #[must_use]
    pub fn new(store: S, nodes: NonZeroU32) -> Self {
        Self {
            store,
            nodes,
            seen: BoundedCache::new(DEFAULT_STATUSES),
            taking_over: Mutex::new(()),
        }
    }

    /// Sets how many statuses are remembered, rounded up to a power of two.
    #[must_use]
    pub fn with_statuses(mut self, entries: usize) -> Self {
        self.seen = BoundedCache::new(entries);
        self
    }

    /// The units of `limit` that all nodes together admit in one window: at most its capacity, or
    /// one a node where the capacity is smaller than their number.
    #[must_use]
    pub const fn max_admitted_units(&self, limit: &Limit) -> u64 {
        share_of(limit.capacity(), self.nodes).saturating_mul(self.nodes.get() as u64)
    }

    /// The units of `limit` that this node admits in one window, after having last heard that
    /// `remaining` of it are left.
    #[must_use]
    pub const fn part_of(&self, remaining: u64) -> u64 {
        share_of(remaining, self.nodes)
    }
}

impl<S: Store> LocalShare<S> {
    /// Takes over what was last seen of a limit and subject, once.
    async fn take_over(&self, now: Timestamp, charge: &Charge<'_>, part: &Limit) {
        let key = self.seen.key(charge);
        if self.seen.get(key).is_none() {
            return;
        }
        let _turn = self.taking_over.lock().await;
        let Some(seen) = self.seen.get(key) else { return };
        if now < seen.full_reset_at {
            // A store without room has none for the charge itself either, and says so there.
            let _ = self.go_on(now, part, charge.subject, seen).await;
        }
        // Only now: until the share stands as it should, others have to wait for it.
        self.seen.forget_if(key, |latest| *latest == seen);
    }

    /// Takes from the share what is not this node's part of what remained, at the time that makes
    /// it end when the other store's would have; and now, where that time is over here.
    async fn go_on(
        &self,
        now: Timestamp,
        part: &Limit,
        subject: &Subject,
        seen: LastStatus,
    ) -> Result<(), StoreError> {
        let target = part.capacity().saturating_sub(self.part_of(seen.remaining));
        let look = Operation::Charge { cost: Cost::PEEK, id: new_charge_id() };
        for at in [seen.taken_at(part).min(now), now] {
            let status =
                self.store.apply(now, &[Charge { limit: part, subject, operation: look }]).await?;
            let used = status.first().map_or(0, |reading| reading.used);
            let Some(cost) = Cost::new(target.saturating_sub(used)) else { break };
            if cost == Cost::PEEK {
                break;
            }
            let operation = Operation::Charge { cost, id: new_charge_id() };
            self.store.apply(at, &[Charge { limit: part, subject, operation }]).await?;
        }
        Ok(())
    }
}

impl LastStatus {
    /// When a charge is taken that is over at the same moment.
    fn taken_at(&self, limit: &Limit) -> Timestamp {
        match limit.algorithm() {
            // Refills from the moment of the charge, the more of it the longer.
            Algorithm::TokenBucket(_) => self.at,
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
        let mut asked = Vec::with_capacity(charges.len());
        for (charge, part) in charges.iter().zip(&parts) {
            if charge.operation.as_charge().is_some()
                || matches!(charge.operation, Operation::Peek { .. })
            {
                self.take_over(now, charge, part).await;
            }
            asked.push(Charge { limit: part, ..*charge });
        }
        let mut readings = self.store.apply(now, &asked).await?;
        for ((reading, charge), part) in readings.iter_mut().zip(charges).zip(&parts) {
            *reading = as_limit_reading(*reading, now, charge, part);
        }
        Ok(readings)
    }
}

impl<S: Store> FallbackStore for LocalShare<S> {
    fn observe(&self, now: Timestamp, charges: &[Charge<'_>], readings: &Readings) {
        // What only reads may be answered by a copy that lags behind what was heard before.
        if charges.iter().all(|charge| charge.operation.is_read_only()) {
            return;
        }
        for (charge, reading) in charges.iter().zip(readings.iter()) {
            let key = self.seen.key(charge);
            if reading.used == 0 {
                self.seen.forget_if(key, |_| true);
                continue;
            }
            let remaining = charge.limit.capacity().saturating_sub(reading.used);
            let seen = LastStatus { at: now, remaining, full_reset_at: reading.full_reset_at };
            self.seen.put(key, seen, now);
        }
    }
}

/// The reading of a share as one of its limit: what is not this node's part counts as used.
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
        // Too much for a share only: by then the store may be back.
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
