//! What was refused until a known time is refused again without asking.

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

/// The refusals that are remembered unless another number is set.
pub const DEFAULT_ENTRIES: usize = 16_384;

/// How long a refusal is remembered that a refund may end, unless another time is set.
pub const DEFAULT_DENY_TTL: Millis = Millis::new(5);

/// The longest that a refusal is remembered before the store is asked again: an operator who
/// resets a subject, and a store that lost its state, are heard of within that time.
pub const MAX_DENY_TTL: Millis = Millis::from_secs(1);

/// How old a status may be that is shown beside a remembered refusal, unless another age is set.
pub const DEFAULT_STATUS_MAX_AGE: Millis = Millis::from_secs(1);

/// How long a limit's refusals are remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenyCacheTtl {
    /// Not at all: the store is always asked.
    Off,
    /// At most so long, because a refund may free units.
    AtMost(Millis),
    /// As long as it holds and at most [`MAX_DENY_TTL`] after it was heard, for limits whose charges
    /// nobody ever gives back. Only a fixed window that is used up stands unchanged until a known
    /// time; anything else is asked.
    UntilReset,
}

/// Refuses by itself what the store refused and would refuse again.
///
/// A take that does not fit before a known moment will not, by whomever it is asked, until then:
/// others can only use more. What frees units earlier is a refund, a settlement, or an operator
/// who has them forgotten.
///
/// # What it keeps
/// - Nothing is admitted that the store would not admit; only refusals are remembered.
/// - With [`DenyCacheTtl::UntilReset`] the refusal of a fixed window that is used up is exact in every
///   number, as long as its charges are not given back and the store does not lose its state.
/// - Peeks, looks, refunds, renewals and forgettings are always asked, and a refund or a forgetting
///   that passes here ends what is remembered. Calls that touch a limit that counts refusals, or a concurrency limit that
///   refused, are always asked. Answers of a stand-in are not remembered.
///
/// # What it weakens
/// - With [`DenyCacheTtl::AtMost`] a client can be refused for [`max_stale_refusal`](Self::max_stale_refusal)
///   after units were given back elsewhere, and is told what was used that long ago.
/// - A caller whose clock lags behind a reset that the clocks of other nodes have passed is refused
///   here until its own has passed it, where the store may count it in the next window already.
/// - The other limits of a call that was refused are shown as they were at most
///   [`with_status_max_age`](Self::with_status_max_age) ago; with zero a call is answered only if each of its
///   limits is remembered to refuse.
///
/// Remembers a bounded number of limits and subjects, the longest refusals first.
pub struct DenyCache<S> {
    store: S,
    ttl: Set,
    of_limits: HashMap<Box<str>, DenyCacheTtl>,
    status_max_age: Millis,
    entries: BoundedCache<CachedRefusal>,
    answered: AtomicU64,
}

/// What a limit answered in a call that was refused.
#[derive(Clone, Copy)]
struct CachedRefusal {
    /// The cost that it is the answer to.
    cost: Cost,
    /// What the limit held that answered: an override or another policy may have changed it since.
    capacity: u64,
    /// The largest cost that has the same answer where the limit is used up, else zero.
    same_up_to: u64,
    heard_at: Timestamp,
    /// Its first moment without meaning.
    until: Timestamp,
    reading: Reading,
}

impl EvictionPriority for CachedRefusal {
    fn eviction_priority(&self, now: Timestamp) -> u64 {
        self.until.since(now).get()
    }
}

impl<S> DenyCache<S> {
    /// `store`, whose refusals are remembered for [`DEFAULT_DENY_TTL`].
    #[must_use]
    pub fn new(store: S) -> Self {
        Self {
            store,
            ttl: Set::new(DenyCacheTtl::AtMost(DEFAULT_DENY_TTL)),
            of_limits: HashMap::new(),
            status_max_age: DEFAULT_STATUS_MAX_AGE,
            entries: BoundedCache::new(DEFAULT_ENTRIES),
            answered: AtomicU64::new(0),
        }
    }

    /// Sets how long refusals are remembered, or that they are not.
    #[must_use]
    pub fn with_ttl(self, ttl: DenyCacheTtl) -> Self {
        self.set_ttl(ttl);
        self
    }

    /// As [`with_ttl`](Self::with_ttl), while it is asked: what was remembered for longer is
    /// forgotten.
    pub fn set_ttl(&self, ttl: DenyCacheTtl) {
        self.ttl.set(ttl);
    }

    /// Sets it for the limit of this name.
    #[must_use]
    pub fn with_ttl_for(mut self, limit: &str, ttl: DenyCacheTtl) -> Self {
        self.of_limits.insert(limit.into(), ttl);
        self
    }

    /// Sets how old the statuses of limits may be that admitted what another one refused.
    #[must_use]
    pub fn with_status_max_age(mut self, age_max: Millis) -> Self {
        self.status_max_age = age_max;
        self
    }

    /// Sets how many limits and subjects are remembered, rounded up to a power of two.
    #[must_use]
    pub fn with_entries(mut self, entries: usize) -> Self {
        self.entries = BoundedCache::new(entries);
        self
    }

    /// The store.
    #[must_use]
    pub const fn store(&self) -> &S {
        &self.store
    }

    /// How long after a refund on another node `limit` may still be refused here. Of limits that
    /// are remembered until their reset there are no refunds.
    #[must_use]
    pub fn max_stale_refusal(&self, limit: &Limit) -> Millis {
        match self.ttl_for(limit) {
            DenyCacheTtl::AtMost(hold) => hold,
            DenyCacheTtl::Off | DenyCacheTtl::UntilReset => Millis::ZERO,
        }
    }

    /// How many calls were refused without asking.
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

    /// The readings of a call that is known to be refused.
    fn remembered(&self, now: Timestamp, charges: &[Charge<'_>]) -> Option<Readings> {
        let mut readings = Readings::new();
        for charge in charges {
            let cost = counted_cost(charge)?;
            if self.ttl_for(charge.limit) == DenyCacheTtl::Off {
                return None;
            }
            let known = self.entries.get(self.entries.key(charge))?;
            let answers = known.cost == cost || cost.get() <= known.same_up_to;
            // Time may have been set back; what was heard later says nothing of now.
            if known.capacity != charge.limit.capacity() {
                return None;
            }
            if !answers || now < known.heard_at || now >= known.until {
                return None;
            }
            // How long refusals are remembered may have been set anew since.
            if now >= self.until(known.heard_at, charge.limit, &known.reading) {
                return None;
            }
            readings.push(known.reading);
        }
        let is_refused = !readings.all_admitted();
        is_refused.then(|| readings.with_source(DecisionSource::DenyCache))
    }

    /// Remembers a call that the store refused.
    fn remember(&self, now: Timestamp, charges: &[Charge<'_>], readings: &Readings) {
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
                let capacity = charge.limit.capacity();
                let same_up_to = if is_used_up(charge.limit, reading) { capacity } else { 0 };
                let (heard_at, reading) = (now, *reading);
                let known = CachedRefusal { cost, capacity, same_up_to, heard_at, until, reading };
                self.entries.put(self.entries.key(charge), known, now);
            }
        }
    }

    /// The moment until which this reading stands for what the store would say.
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

    /// Drops what a refund or a forgetting may have made untrue, and what is over: a clock that lags
    /// would find it in force again, when the store is in the next window already.
    fn invalidate(&self, now: Timestamp, charges: &[Charge<'_>]) {
        for charge in charges {
            let is_freed = matches!(
                charge.operation,
                Operation::Refund { .. } | Operation::Settle { .. } | Operation::Reset
            );
            self.entries
                .forget_if(self.entries.key(charge), |known| is_freed || now >= known.until);
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
        if let Some(readings) = self.remembered(now, charges) {
            self.answered.fetch_add(1, Ordering::Relaxed);
            return Ok(readings);
        }
        let answer = self.store.apply(now, charges).await;
        self.invalidate(now, charges);
        if let Ok(readings) = &answer {
            self.remember(now, charges, readings);
        }
        answer
    }
}

impl<S: fmt::Debug> fmt::Debug for DenyCache<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DenyCache")
            .field("store", &self.store)
            .field("recall", &self.ttl)
            .field("recent", &self.entries)
            .finish_non_exhaustive()
    }
}

/// The cost of a take that a refusal leaves uncounted; nothing else is answered from memory.
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

/// Whether nothing fits before a known moment, whatever it costs, and nothing can change till then:
/// what is held may be settled at any time.
fn is_used_up(limit: &Limit, reading: &Reading) -> bool {
    let is_fixed = matches!(limit.algorithm(), Algorithm::FixedWindow(_));
    is_fixed && reading.used >= limit.capacity() && reading.reserved == 0
}
