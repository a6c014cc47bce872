//! The fallback that decides while the store does not answer.

mod charging;
mod choice;
mod fixed_answer;
mod local_charges;
mod local_share;
mod origin;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tollgate_core::{
    Admission, Charge, DecisionSource, Limit, Operation, Reading, Readings, Store, StoreError,
    Subject, Timestamp,
};

pub use choice::FallbackChoice;
pub use fixed_answer::{DENY_RETRY_AFTER, FixedAnswer};
pub use local_charges::{LocalChargeCounts, MAX_LOCAL_CHARGES};
pub use local_share::{DEFAULT_STATUSES, LocalShare};

use local_charges::LocalCharges;
use origin::Decider;

/// A store that decides while the main store does not answer.
pub trait FallbackStore: Store {
    /// Receives an answer of the main store. The fallback can then continue from the status in this
    /// answer.
    fn observe(&self, now: Timestamp, charges: &[Charge<'_>], readings: &Readings);

    /// Returns the units of `limit` that `subject` uses at this store. When the main store answers
    /// again, it is charged for at most this number of units of the subject. The default
    /// implementation returns the largest number, which limits nothing.
    fn used(
        &self,
        _now: Timestamp,
        _limit: &Limit,
        _subject: &Subject,
    ) -> impl Future<Output = u64> + Send {
        std::future::ready(u64::MAX)
    }
}

/// A store that sends calls to `A` and, if `A` does not answer, to `B`.
///
/// # Guarantees
/// - While `A` answers, its answers are returned unchanged. [`Readings::source`] shows which
///   answers are from `B`, and [`counts`](Self::counts) counts the answers from `B`.
/// - Charges made at `B` are refunded, settled and renewed at `B`, never at `A`. The position of a
///   charge records which of the two stores made the charge, so a refund never returns more than
///   was charged. Fallbacks nest up to eleven deep.
/// - Units that `B` admitted because `A` could not be reached, or had no memory left, are charged
///   to `A` once, when `A` answers again. The units of a subject are charged before the subject's
///   next decision. The units of other subjects are charged by the calls that follow.
///   [`local_charges`](Self::local_charges) counts these units. The units count at `A` from the
///   time of this charge on, as far as the limit has units left and the window is open.
///
/// # Limitations
/// - While `A` does not answer, the limitations of `B` apply: see [`LocalShare`] and
///   [`FixedAnswer`].
/// - A call that `A` applied without answering is charged at both stores. Whether `A` applied a
///   call that it did not answer in time is not known, so such a call is not charged to `A` later.
/// - The first call for a subject after an outage first charges `A` for the units that `B`
///   admitted, and then makes its own charge, both within [`with_budget`](Self::with_budget).
/// - While units of a subject are being charged to `A`, other calls for this subject do not wait for
///   that charge. If these calls use up the limit, the units that no longer fit are counted as
///   [`exceeded`](LocalChargeCounts::exceeded).
/// - Permits of concurrency limits that `B` granted are never counted at `A`. If units that `B`
///   admitted were charged to `A` later, a refund returns these units at `B` only.
/// - At most [`MAX_LOCAL_CHARGES`] limits and subjects are recorded.
/// - Charges made at `A` cannot be refunded while `A` does not answer. A call that contains only
///   such refunds fails with `A`'s error.
pub struct Fallback<A, B> {
    store: A,
    fallback_store: B,
    local_charges: LocalCharges,
    /// The longest time for a call that first charges the main store for units that the fallback
    /// admitted. The time includes both charges. `None` if this time is not limited.
    budget: Option<Duration>,
    fallback_decisions: AtomicU64,
    unanswered: AtomicU64,
}

/// The numbers of calls that the main store did not answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FallbackCounts {
    /// The number of calls that the fallback answered.
    pub fallback_decisions: u64,
    /// The number of calls that neither the main store nor the fallback answered.
    pub unanswered: u64,
}

impl<A, B> Fallback<A, B> {
    /// Wraps `store`, and uses `fallback_store` if `store` does not answer.
    #[must_use]
    pub fn new(store: A, fallback_store: B) -> Self {
        let (fallback_decisions, unanswered) = (AtomicU64::new(0), AtomicU64::new(0));
        let (local_charges, budget) = (LocalCharges::default(), None);
        Self { store, fallback_store, local_charges, budget, fallback_decisions, unanswered }
    }

    /// Sets the budget: the time limit of a call that must first charge the main store for units
    /// that the fallback admitted earlier. When the budget is used up, the fallback decides the
    /// call, and earlier units that were not charged yet are charged later. Needs a tokio runtime
    /// with a timer.
    ///
    /// Set the budget to the deadline of the main store. Without a budget, such a call waits for up
    /// to four charges of admitted units and then for its own charge.
    #[must_use]
    pub const fn with_budget(mut self, budget: Duration) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Returns the main store, which receives every call first.
    #[must_use]
    pub const fn store(&self) -> &A {
        &self.store
    }

    /// Returns the store that decides while the main store does not answer.
    #[must_use]
    pub const fn fallback_store(&self) -> &B {
        &self.fallback_store
    }

    /// Returns the numbers of units that the fallback admitted, by the outcome of their charge to
    /// the main store.
    #[must_use]
    pub fn local_charges(&self) -> LocalChargeCounts {
        self.local_charges.counts()
    }

    /// Returns the numbers of calls that the main store did not answer since this value was
    /// created.
    #[must_use]
    pub fn counts(&self) -> FallbackCounts {
        FallbackCounts {
            fallback_decisions: self.fallback_decisions.load(Ordering::Relaxed),
            unanswered: self.unanswered.load(Ordering::Relaxed),
        }
    }
}

impl<A: Store, B: FallbackStore> Fallback<A, B> {
    /// Applies charges of a call in which no operation refers to an earlier charge of the fallback.
    async fn apply_new(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> Result<Readings, StoreError> {
        if self.local_charges.is_empty() {
            return self.call_store(now, charges).await;
        }
        // Boxed: the additional work after an outage must not enlarge the future of every decision.
        Box::pin(self.apply_reconciled(now, charges)).await
    }

    /// Sends the call to the main store, or to the fallback if the main store does not answer.
    async fn call_store(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> Result<Readings, StoreError> {
        let result = self.store.apply(now, charges).await;
        self.answer(now, charges, result).await
    }

    /// Returns the main store's answer, or the fallback's answer if the main store did not answer.
    async fn answer(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
        result: Result<Readings, StoreError>,
    ) -> Result<Readings, StoreError> {
        match result {
            Ok(mut readings) => {
                if readings.source() == DecisionSource::Store {
                    self.fallback_store.observe(now, charges, &readings);
                }
                self.renew_at_fallback(now, charges, &mut readings).await;
                readings.iter_mut().for_each(|reading| origin::tag(reading, Decider::Store));
                Ok(readings)
            }
            Err(error) => self.decide_by_fallback(now, charges, error).await,
        }
    }

    /// Renews at the fallback the permits that the main store could not renew.
    async fn renew_at_fallback(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
        readings: &mut Readings,
    ) {
        if self.fallback_decisions.load(Ordering::Relaxed) == 0 {
            return;
        }
        for (charge, reading) in charges.iter().zip(readings.iter_mut()) {
            if !matches!(charge.operation, Operation::Renew { .. })
                || reading.admission == Admission::Now
            {
                continue;
            }
            let answer = self.fallback_store.apply(now, &[*charge]).await;
            if let Some(renewed) = answer.ok().and_then(|readings| readings.first().copied())
                && renewed.admission == Admission::Now
            {
                *reading = renewed;
            }
        }
    }

    async fn decide_by_fallback(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
        error: StoreError,
    ) -> Result<Readings, StoreError> {
        // A reset at the fallback would not reset the counters that the store keeps.
        if charges.iter().any(|charge| charge.operation == Operation::Reset) {
            return Err(error);
        }
        // These charges were made at the store, which cannot refund them now.
        let (refunds, charged) =
            split(charges, |charge| origin::mark_of(charge.operation).is_some());
        let answer = if charged.charges.is_empty() {
            Err(error)
        } else {
            self.fallback_store.apply(now, &charged.charges).await
        };
        let Ok(mut readings) = answer else {
            self.unanswered.fetch_add(1, Ordering::Relaxed);
            return Err(error);
        };
        self.fallback_decisions.fetch_add(1, Ordering::Relaxed);
        if matches!(error, StoreError::Unavailable | StoreError::Full) {
            // The main store executed nothing of the call.
            self.local_charges.record(now, &charged.charges, &readings);
        }
        readings.iter_mut().for_each(|reading| origin::tag(reading, Decider::Fallback));
        let unknown = Reading { admission: Admission::Never, ..Reading::default() };
        let untouched = |charge: &Charge<'_>| match charge.operation {
            Operation::Refund { .. } => Reading::default(),
            _ => unknown,
        };
        let nothing: Readings = refunds.charges.iter().map(untouched).collect();
        Ok(join(&charged, &readings, &refunds, &nothing)
            .with_source(DecisionSource::Fallback(error)))
    }

    /// Sends refunds of the fallback's charges to the fallback, and the other operations to the
    /// main store first.
    async fn apply_both(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> Result<Readings, StoreError> {
        let (mut here, mut there) =
            split(charges, |charge| origin::decider(charge.operation) == Decider::Fallback);
        here.charges
            .iter_mut()
            .for_each(|charge| charge.operation = origin::untagged(charge.operation));
        there
            .charges
            .iter_mut()
            .for_each(|charge| charge.operation = origin::untagged(charge.operation));
        let refunded = self.fallback_store.apply(now, &here.charges).await?;
        self.local_charges.correct(&here.charges, &refunded);
        if there.charges.is_empty() {
            return Ok(refunded);
        }
        let readings = self.apply_new(now, &there.charges).await?;
        let source = readings.source();
        Ok(join(&here, &refunded, &there, &readings).with_source(source))
    }
}

impl<A: Store, B: FallbackStore> Store for Fallback<A, B> {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        if charges.iter().any(|charge| origin::is_tagged(charge.operation)) {
            self.apply_both(now, charges).await
        } else {
            self.apply_new(now, charges).await
        }
    }
}

impl<A: fmt::Debug, B: fmt::Debug> fmt::Debug for Fallback<A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fallback")
            .field("store", &self.store)
            .field("fallback_store", &self.fallback_store)
            .field("counts", &self.counts())
            .finish()
    }
}

/// Some of a call's charges, with their indexes in the call.
#[derive(Default)]
struct Part<'a> {
    charges: Vec<Charge<'a>>,
    indexes: Vec<usize>,
}

/// Splits the charges into the charges for which `is_such` returns true and the other charges.
fn split<'a>(
    charges: &[Charge<'a>],
    is_such: impl Fn(&Charge<'a>) -> bool,
) -> (Part<'a>, Part<'a>) {
    let (mut such, mut others) = (Part::default(), Part::default());
    for (index, charge) in charges.iter().enumerate() {
        let part = if is_such(charge) { &mut such } else { &mut others };
        part.charges.push(*charge);
        part.indexes.push(index);
    }
    (such, others)
}

/// Merges the readings of two groups of charges into the order of the call.
fn join(one: &Part<'_>, ones: &[Reading], other: &Part<'_>, others: &[Reading]) -> Readings {
    let mut all = vec![Reading::default(); one.indexes.len() + other.indexes.len()];
    let placed = one.indexes.iter().zip(ones).chain(other.indexes.iter().zip(others));
    placed.for_each(|(index, reading)| all[*index] = *reading);
    all.into_iter().collect()
}
