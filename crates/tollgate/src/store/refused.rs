//! What was refused until a known time is refused again without asking.

mod recall;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::{
    Algorithm, Ask, Charge, Cost, Fit, Limit, Millis, Reading, Readings, Refusals, Source, Store,
    StoreError, Timestamp,
};

use super::recent::{Recent, Worth};
use recall::Set;

/// The refusals that are remembered unless another number is set.
pub const DEFAULT_ENTRIES: usize = 16_384;

/// How long a refusal is remembered that a refund may end, unless another time is set.
pub const DEFAULT_HOLD: Millis = Millis::new(5);

/// The longest that a refusal is remembered before the store is asked again: an operator who
/// resets a subject, and a store that lost its state, are heard of within that time.
pub const RECALL_MAX: Millis = Millis::from_secs(1);

/// How old a standing may be that is shown beside a remembered refusal, unless another age is set.
pub const DEFAULT_BESIDE: Millis = Millis::from_secs(1);

/// How long a limit's refusals are remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recall {
    /// Not at all: the store is always asked.
    Off,
    /// At most so long, because a refund may free units.
    Briefly(Millis),
    /// As long as it holds and at most [`RECALL_MAX`] after it was heard, for limits whose charges
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
/// - With [`Recall::UntilReset`] the refusal of a fixed window that is used up is exact in every
///   number, as long as its charges are not given back and the store does not lose its state.
/// - Peeks, looks, refunds, renewals and forgettings are always asked, and a refund or a forgetting
///   that passes here ends what is remembered. Calls that touch a limit that counts refusals, or a concurrency limit that
///   refused, are always asked. Answers of a stand-in are not remembered.
///
/// # What it weakens
/// - With [`Recall::Briefly`] a client can be refused for [`late_at_most`](Self::late_at_most)
///   after units were given back elsewhere, and is told what was used that long ago.
/// - A caller whose clock lags behind a reset that the clocks of other nodes have passed is refused
///   here until its own has passed it, where the store may count it in the next window already.
/// - The other limits of a call that was refused are shown as they were at most
///   [`with_beside`](Self::with_beside) ago; with zero a call is answered only if each of its
///   limits is remembered to refuse.
///
/// Remembers a bounded number of limits and subjects, the longest refusals first.
pub struct Refused<S> {
    store: S,
    recall: Set,
    of_limits: HashMap<Box<str>, Recall>,
    beside: Millis,
    recent: Recent<Remembered>,
    answered: AtomicU64,
}

/// What a limit answered in a call that was refused.
#[derive(Clone, Copy)]
struct Remembered {
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

impl Worth for Remembered {
    fn worth(&self, now: Timestamp) -> u64 {
        self.until.since(now).get()
    }
}

impl<S> Refused<S> {
    /// `store`, whose refusals are remembered for [`DEFAULT_HOLD`].
    #[must_use]
    pub fn new(store: S) -> Self {
        Self {
            store,
            recall: Set::new(Recall::Briefly(DEFAULT_HOLD)),
            of_limits: HashMap::new(),
            beside: DEFAULT_BESIDE,
            recent: Recent::new(DEFAULT_ENTRIES),
            answered: AtomicU64::new(0),
        }
    }

    /// Sets how long refusals are remembered, or that they are not.
    #[must_use]
    pub fn with_recall(self, recall: Recall) -> Self {
        self.set_recall(recall);
        self
    }

    /// As [`with_recall`](Self::with_recall), while it is asked: what was remembered for longer is
    /// forgotten.
    pub fn set_recall(&self, recall: Recall) {
        self.recall.set(recall);
    }

    /// Sets it for the limit of this name.
    #[must_use]
    pub fn with_recall_of(mut self, limit: &str, recall: Recall) -> Self {
        self.of_limits.insert(limit.into(), recall);
        self
    }

    /// Sets how old the standings of limits may be that admitted what another one refused.
    #[must_use]
    pub fn with_beside(mut self, age_max: Millis) -> Self {
        self.beside = age_max;
        self
    }

    /// Sets how many limits and subjects are remembered, rounded up to a power of two.
    #[must_use]
    pub fn with_entries(mut self, entries: usize) -> Self {
        self.recent = Recent::new(entries);
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
    pub fn late_at_most(&self, limit: &Limit) -> Millis {
        match self.recall_of(limit) {
            Recall::Briefly(hold) => hold,
            Recall::Off | Recall::UntilReset => Millis::ZERO,
        }
    }

    /// How many calls were refused without asking.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    fn recall_of(&self, limit: &Limit) -> Recall {
        if self.of_limits.is_empty() {
            return self.recall.get();
        }
        self.of_limits.get(limit.name()).copied().unwrap_or_else(|| self.recall.get())
    }

    /// The readings of a call that is known to be refused.
    fn remembered(&self, now: Timestamp, charges: &[Charge<'_>]) -> Option<Readings> {
        let mut readings = Readings::new();
        for charge in charges {
            let cost = counted_cost(charge)?;
            if self.recall_of(charge.limit) == Recall::Off {
                return None;
            }
            let known = self.recent.get(self.recent.key(charge))?;
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
        let is_refused = !readings.all_fit();
        is_refused.then(|| readings.with_source(Source::Remembered))
    }

    /// Remembers a call that the store refused.
    fn remember(&self, now: Timestamp, charges: &[Charge<'_>], readings: &Readings) {
        let is_such = readings.source() == Source::Store
            && !readings.all_fit()
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
                let known = Remembered { cost, capacity, same_up_to, heard_at, until, reading };
                self.recent.put(self.recent.key(charge), known, now);
            }
        }
    }

    /// The moment until which this reading stands for what the store would say.
    fn until(&self, now: Timestamp, limit: &Limit, reading: &Reading) -> Timestamp {
        let is_in_flight = matches!(limit.algorithm(), Algorithm::Concurrency(_));
        match (reading.fit, self.recall_of(limit)) {
            (_, Recall::Off) => now,
            (Fit::Now, _) if reading.used > 0 => now.after(self.beside).min(reading.whole_at),
            (Fit::Now, _) => now.after(self.beside),
            (Fit::At(fits_at), Recall::Briefly(hold)) if !is_in_flight => {
                now.after(hold).min(fits_at)
            }
            (Fit::At(fits_at), Recall::UntilReset) if is_used_up(limit, reading) => {
                now.after(RECALL_MAX).min(fits_at)
            }
            (Fit::At(_) | Fit::Never, _) => now,
        }
    }

    /// Drops what a refund or a forgetting may have made untrue, and what is over: a clock that lags
    /// would find it in force again, when the store is in the next window already.
    fn drop_untrue(&self, now: Timestamp, charges: &[Charge<'_>]) {
        for charge in charges {
            let is_freed =
                matches!(charge.ask, Ask::Refund { .. } | Ask::Settle { .. } | Ask::Forget);
            self.recent.forget_if(self.recent.key(charge), |known| is_freed || now >= known.until);
        }
    }

    fn is_off(&self) -> bool {
        self.recall.get() == Recall::Off && self.of_limits.values().all(|own| *own == Recall::Off)
    }
}

impl<S: Store> Store for Refused<S> {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        if self.is_off() {
            return self.store.apply(now, charges).await;
        }
        if let Some(readings) = self.remembered(now, charges) {
            self.answered.fetch_add(1, Ordering::Relaxed);
            return Ok(readings);
        }
        let answer = self.store.apply(now, charges).await;
        self.drop_untrue(now, charges);
        if let Ok(readings) = &answer {
            self.remember(now, charges, readings);
        }
        answer
    }
}

impl<S: fmt::Debug> fmt::Debug for Refused<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused")
            .field("store", &self.store)
            .field("recall", &self.recall)
            .field("recent", &self.recent)
            .finish_non_exhaustive()
    }
}

/// The cost of a take that a refusal leaves uncounted; nothing else is answered from memory.
fn counted_cost(charge: &Charge<'_>) -> Option<Cost> {
    match charge.ask {
        Ask::Take { cost, .. }
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
    is_fixed && reading.used >= limit.capacity() && reading.held == 0
}
