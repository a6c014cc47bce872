//! A cache of refusals. A refusal is repeated without a store call while it is valid.

mod ttl;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::{
    Admission, Algorithm, Charge, Cost, DecisionSource, Limit, Millis, Operation, Reading,
    Readings, Refusals, Store, StoreError, Timestamp,
};

use super::bounded_cache::{BoundedCache, EvictionPriority};
use ttl::Set;

/// The default number of cached refusals.
pub const DEFAULT_ENTRIES: usize = 16_384;

/// The default time for which a refusal is cached if a refund may end the refusal earlier.
pub const DEFAULT_DENY_TTL: Millis = Millis::new(5);

/// The maximum time for which a refusal is cached before the store is queried again. Within this
/// time, the node detects that an operator reset a subject or that the store lost its state.
pub const MAX_DENY_TTL: Millis = Millis::from_secs(1);

/// The default for [`DenyCache::with_status_max_age`]: the maximum age of the statuses of the other
/// limits in a cached refusal.
pub const DEFAULT_STATUS_MAX_AGE: Millis = Millis::from_secs(1);

/// How long the refusals of a limit are cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenyCacheTtl {
    /// Refusals are not cached. Every call is sent to the store.
    Off,
    /// A refusal is cached until the charge fits, but at most for this time, because a refund may
    /// free units earlier.
    AtMost(Millis),
    /// A refusal is cached until the reset, but at most for [`MAX_DENY_TTL`] after the answer. Use
    /// this value for limits with charges that are never refunded. Only refusals by a fixed window
    /// that is used up are cached, because only such a window has a status that stays constant
    /// until a known time. All other calls are sent to the store.
    UntilReset,
}

/// A store that repeats the refusals of the inner store from a cache.
///
/// If the store reports the time at which a charge will fit, the charge does not fit earlier for
/// any caller, because other callers can only use more units. Only a refund, a settlement or a
/// reset by an operator frees units earlier.
///
/// # Guarantees
/// - Only refusals are cached, so the cache admits no call that the store would refuse.
/// - With [`DenyCacheTtl::UntilReset`], every number in the refusal of a used-up fixed window is
///   exact, provided that its charges are not refunded, none is counted with another quota, and
///   the store does not lose its state.
/// - Peeks, reads, refunds, renewals and resets are always sent to the store. A refund or reset
///   that passes through this cache removes the cached refusal, even if the refused charge had
///   another quota. Calls that touch a limit that counts refusals, or a concurrency limit that
///   refused, are always sent to the store. Answers of a fallback are not cached.
///
/// # Limitations
/// - With [`DenyCacheTtl::AtMost`], a client can be refused for up to
///   [`max_stale_refusal`](Self::max_stale_refusal) after units were refunded through another node,
///   or through this node while the refused call was in flight.
///   The usage in such a refusal can be as old as this time.
/// - If a caller's clock has not reached a reset that other nodes' clocks have passed, this cache
///   refuses the caller until the caller's clock passes the reset, although the store may already
///   count in the next window.
/// - The other limits of a refused call are reported as they were at most
///   [`with_status_max_age`](Self::with_status_max_age) ago. If this age is zero, a call is
///   answered from the cache only if a refusal is cached for each of its limits.
///
/// The number of cached limits and subjects is bounded. If the cache is full, it keeps the refusals
/// that last longest.
pub struct DenyCache<S> {
    store: S,
    ttl: Set,
    of_limits: HashMap<Box<str>, DenyCacheTtl>,
    status_max_age: Millis,
    entries: BoundedCache<CachedRefusal>,
    answered: AtomicU64,
    /// The number of resets that passed through this cache. If the number changes during a call, the
    /// answer to the call may be from before the reset, and is not cached.
    resets: AtomicU64,
}

/// The cached reading of one limit in a refused call.
#[derive(Clone, Copy)]
struct CachedRefusal {
    /// The cost of the charge that got this reading.
    cost: Cost,
    /// The capacity and the window of the limit at the time of the answer. The same counters can
    /// have others now, such as those of an override or of another plan.
    capacity: u64,
    window: Millis,
    /// The largest cost for which this reading is valid, if the limit is used up: a charge of any
    /// cost from one up to this value gets the same reading. Zero if the limit is not used up.
    same_up_to: u64,
    heard_at: Timestamp,
    /// The time from which the reading is no longer valid.
    until: Timestamp,
    reading: Reading,
}

impl EvictionPriority for CachedRefusal {
    fn eviction_priority(&self, now: Timestamp) -> u64 {
        self.until.since(now).get()
    }
}

impl<S> DenyCache<S> {
    /// Wraps `store` and caches its refusals for [`DEFAULT_DENY_TTL`].
    #[must_use]
    pub fn new(store: S) -> Self {
        Self {
            store,
            ttl: Set::new(DenyCacheTtl::AtMost(DEFAULT_DENY_TTL)),
            of_limits: HashMap::new(),
            status_max_age: DEFAULT_STATUS_MAX_AGE,
            entries: BoundedCache::new(DEFAULT_ENTRIES),
            answered: AtomicU64::new(0),
            resets: AtomicU64::new(0),
        }
    }

    /// Sets how long refusals are cached, or disables caching.
    #[must_use]
    pub fn with_ttl(self, ttl: DenyCacheTtl) -> Self {
        self.set_ttl(ttl);
        self
    }

    /// Sets the TTL as [`with_ttl`](Self::with_ttl) does, but while the cache is in use. Refusals
    /// that are older than the new TTL are no longer returned.
    pub fn set_ttl(&self, ttl: DenyCacheTtl) {
        self.ttl.set(ttl);
    }

    /// Sets the TTL for the limit named `limit`.
    #[must_use]
    pub fn with_ttl_for(mut self, limit: &str, ttl: DenyCacheTtl) -> Self {
        self.of_limits.insert(limit.into(), ttl);
        self
    }

    /// Sets the maximum age of the statuses that a cached refusal reports for the limits that did
    /// not refuse the call.
    #[must_use]
    pub fn with_status_max_age(mut self, age_max: Millis) -> Self {
        self.status_max_age = age_max;
        self
    }

    /// Sets how many limits and subjects are cached, rounded up to a power of two.
    #[must_use]
    pub fn with_entries(mut self, entries: usize) -> Self {
        self.entries = BoundedCache::new(entries);
        self
    }

    /// Returns the inner store.
    #[must_use]
    pub const fn store(&self) -> &S {
        &self.store
    }

    /// Returns for how long after a refund through another node this node may still refuse on
    /// `limit`.
    ///
    /// The time is zero for limits with refusals that are cached until the reset, because charges
    /// on these limits are not refunded.
    #[must_use]
    pub fn max_stale_refusal(&self, limit: &Limit) -> Millis {
        match self.ttl_for(limit) {
            DenyCacheTtl::AtMost(hold) => hold,
            DenyCacheTtl::Off | DenyCacheTtl::UntilReset => Millis::ZERO,
        }
    }

    /// Returns the number of calls that were refused from the cache.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    fn ttl_for(&self, limit: &Limit) -> DenyCacheTtl {
        if self.of_limits.is_empty() {
            return self.ttl.get();
        }
        self.of_limits.get(limit.name()).copied().unwrap_or_else(|| self.ttl.get())
    }

    /// Returns the readings of a refused call if the cache shows that the store would refuse the
    /// call.
    fn cached_refusal(&self, now: Timestamp, charges: &[Charge<'_>]) -> Option<Readings> {
        let mut readings = Readings::new();
        for charge in charges {
            let cost = counted_cost(charge)?;
            if self.ttl_for(charge.limit) == DenyCacheTtl::Off {
                return None;
            }
            let known = self.entries.get(self.entries.key(charge))?;
            let answers = known.cost == cost || cost.get() <= known.same_up_to;
            // The reading is not valid for another quota, or if the clock was set back to before the
            // answer.
            if (known.capacity, known.window) != (charge.limit.capacity(), charge.limit.window()) {
                return None;
            }
            if !answers || now < known.heard_at || now >= known.until {
                return None;
            }
            // The TTL may have been changed since the refusal was cached.
            if now >= self.until(known.heard_at, charge.limit, &known.reading) {
                return None;
            }
            readings.push(known.reading);
        }
        let is_refused = !readings.all_admitted();
        is_refused.then(|| readings.with_source(DecisionSource::DenyCache))
    }

    /// Caches the readings of a call that the store refused. `resets` is the number of resets before
    /// the call. If the number has changed, nothing is cached.
    fn remember(&self, now: Timestamp, charges: &[Charge<'_>], readings: &Readings, resets: u64) {
        let is_such = readings.source() == DecisionSource::Store
            && !readings.all_admitted()
            && charges.iter().all(|charge| counted_cost(charge).is_some());
        if !is_such {
            return;
        }
        for (charge, reading) in charges.iter().zip(readings.iter()) {
            let until = self.until(now, charge.limit, reading);
            if let Some(cost) = counted_cost(charge)
                && now < until
            {
                let (capacity, window) = (charge.limit.capacity(), charge.limit.window());
                let same_up_to = if is_used_up(charge.limit, reading) { capacity } else { 0 };
                let (heard_at, reading) = (now, *reading);
                let refusal =
                    CachedRefusal { cost, capacity, window, same_up_to, heard_at, until, reading };
                self.entries.update(self.entries.key(charge), now, |known| {
                    // The entry is locked, so a reset either changed the number or removes the entry.
                    let is_current = resets == self.resets.load(Ordering::Acquire);
                    if is_current { Some(refusal) } else { known }
                });
            }
        }
    }

    /// Returns the time until which `reading` may be used in cached refusals.
    fn until(&self, now: Timestamp, limit: &Limit, reading: &Reading) -> Timestamp {
        let is_in_flight = matches!(limit.algorithm(), Algorithm::Concurrency(_));
        match (reading.admission, self.ttl_for(limit)) {
            (_, DenyCacheTtl::Off) => now,
            (Admission::Now, _) if reading.used > 0 => {
                now.after(self.status_max_age).min(reading.full_reset_at)
            }
            (Admission::Now, _) => now.after(self.status_max_age),
            (Admission::At(fits_at), DenyCacheTtl::AtMost(hold)) if !is_in_flight => {
                now.after(hold).min(fits_at)
            }
            (Admission::At(fits_at), DenyCacheTtl::UntilReset) if is_used_up(limit, reading) => {
                now.after(MAX_DENY_TTL).min(fits_at)
            }
            (Admission::At(_) | Admission::Never, _) => now,
        }
    }

    /// Removes expired refusals, and refusals that a refund, settlement or reset in `charges` may
    /// have ended. If expired refusals stayed, a node with a slow clock could apply a refusal while
    /// the store already counts in the next window.
    fn invalidate(&self, now: Timestamp, charges: &[Charge<'_>]) {
        if charges.iter().any(|charge| charge.operation == Operation::Reset) {
            self.resets.fetch_add(1, Ordering::AcqRel);
        }
        for charge in charges {
            let is_freed =
                matches!(charge.operation, Operation::Refund { .. } | Operation::Settle { .. });
            let key = self.entries.key(charge);
            match charge.operation {
                Operation::Reset => self.entries.update(key, now, |_| None),
                _ => self.entries.forget_if(key, |known| is_freed || now >= known.until),
            }
        }
    }

    fn is_off(&self) -> bool {
        self.ttl.get() == DenyCacheTtl::Off
            && self.of_limits.values().all(|own| *own == DenyCacheTtl::Off)
    }
}

impl<S: Store> Store for DenyCache<S> {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        if self.is_off() {
            return self.store.apply(now, charges).await;
        }
        if let Some(readings) = self.cached_refusal(now, charges) {
            self.answered.fetch_add(1, Ordering::Relaxed);
            return Ok(readings);
        }
        let resets = self.resets.load(Ordering::Acquire);
        let answer = self.store.apply(now, charges).await;
        self.invalidate(now, charges);
        if let Ok(readings) = &answer {
            self.remember(now, charges, readings, resets);
        }
        answer
    }
}

impl<S: fmt::Debug> fmt::Debug for DenyCache<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DenyCache")
            .field("store", &self.store)
            .field("ttl", &self.ttl)
            .field("entries", &self.entries)
            .finish_non_exhaustive()
    }
}

/// Returns the cost of `charge` if a refusal of the charge can be answered from the cache. Returns
/// `None` for peeks, for operations other than charges, and for limits that count refusals.
fn counted_cost(charge: &Charge<'_>) -> Option<Cost> {
    match charge.operation {
        Operation::Charge { cost, .. }
            if cost != Cost::PEEK && charge.limit.refusals() == Refusals::Free =>
        {
            Some(cost)
        }
        _ => None,
    }
}

/// Returns whether the limit is a used-up fixed window, in which no charge of any cost fits until
/// the reset. A window with reserved units does not count as used up, because the reservation may
/// be settled at any time.
fn is_used_up(limit: &Limit, reading: &Reading) -> bool {
    let is_fixed = matches!(limit.algorithm(), Algorithm::FixedWindow(_));
    is_fixed && reading.used >= limit.capacity() && reading.reserved == 0
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use tollgate_core::algo::{Anchor, FixedWindow};
    use tollgate_core::{ChargeId, Subject};

    use super::*;

    struct NoStore;

    impl Store for NoStore {
        async fn apply(&self, _: Timestamp, _: &[Charge<'_>]) -> Result<Readings, StoreError> {
            Err(StoreError::Unavailable)
        }
    }

    /// The bug: a refusal that was cached while a reset ended it stayed in the cache.
    #[test]
    fn a_refusal_was_cached_after_its_reset() {
        const ROUNDS: u64 = 5_000;
        let window = FixedWindow::new(1, Millis::new(60_000), Anchor::Calendar).unwrap();
        let limit = Limit::new("limit", Algorithm::FixedWindow(window)).unwrap();
        let (subject, now) = (Subject::default(), Timestamp::from_millis(1_700_000_000_000));
        let of = |operation| [Charge { limit: &limit, subject: &subject, operation }];
        let charges = of(Operation::Charge { cost: Cost::ONE, id: ChargeId(1) });
        let resets_at = now.after(Millis::new(30_000));
        let reading = Reading {
            admission: Admission::At(resets_at),
            used: 1,
            full_reset_at: resets_at,
            ..Reading::default()
        };
        let readings: Readings = [reading].into_iter().collect();
        let cache = DenyCache::new(NoStore).with_ttl(DenyCacheTtl::UntilReset);
        cache.remember(now, &charges, &readings, 0);
        assert!(cache.cached_refusal(now, &charges).is_some());
        let (start, mut cached) = (Barrier::new(2), 0);
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    start.wait();
                    cache.invalidate(now, &of(Operation::Reset));
                    start.wait();
                }
            });
            for _ in 0..ROUNDS {
                let resets = cache.resets.load(Ordering::Acquire);
                start.wait();
                cache.remember(now, &charges, &readings, resets);
                start.wait();
                cached += u64::from(cache.cached_refusal(now, &charges).is_some());
            }
        });
        assert_eq!(cached, 0);
    }
}
