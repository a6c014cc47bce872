//! What decides when the store has no answer.

mod choice;
mod fixed_answer;
mod local_share;
mod origin;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::{
    Admission, Charge, DecisionSource, Operation, Reading, Readings, Store, StoreError, Timestamp,
};

pub use choice::FallbackChoice;
pub use fixed_answer::{DENY_RETRY_AFTER, FixedAnswer};
pub use local_share::{DEFAULT_STATUSES, LocalShare};

use origin::Decider;

/// A store that answers where another one has no answer.
pub trait FallbackStore: Store {
    /// Hears what the other store answered, to go on from there.
    fn observe(&self, now: Timestamp, charges: &[Charge<'_>], readings: &Readings);
}

/// Asks `A`; where it has no answer, `B` stands in.
///
/// # What it keeps
/// - While `A` answers, its answers, unchanged. Which answers are `B`'s is told by
///   [`Readings::source`] and counted.
/// - What was charged at `B` is given back, settled and renewed at `B`, never at `A`: the side stands in
///   the mark, so that a refund gives back no more than was charged. Fallbacks nest up to eleven deep.
///
/// # What it weakens
/// - While `A` has no answer, whatever `B` weakens: see [`LocalShare`] and [`FixedAnswer`].
/// - A call that `A` carried out without an answer is charged on both sides.
/// - What was charged at `A` cannot be given back while `A` has no answer; a call of nothing but
///   such refunds is `A`'s error.
pub struct Fallback<A, B> {
    store: A,
    fallback_store: B,
    stood_in: AtomicU64,
    unanswered: AtomicU64,
}

/// How often the store had no answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FallbackCounts {
    /// Calls that the stand-in answered.
    pub stood_in: u64,
    /// Calls that neither answered.
    pub unanswered: u64,
}

impl<A, B> Fallback<A, B> {
    /// `store`, and `fallback_store` for when it has no answer.
    #[must_use]
    pub const fn new(store: A, fallback_store: B) -> Self {
        Self { store, fallback_store, stood_in: AtomicU64::new(0), unanswered: AtomicU64::new(0) }
    }

    /// The store that is asked first.
    #[must_use]
    pub const fn store(&self) -> &A {
        &self.store
    }

    /// What stands in for it.
    #[must_use]
    pub const fn fallback_store(&self) -> &B {
        &self.fallback_store
    }

    /// How often the store had no answer, since this was made.
    #[must_use]
    pub fn counts(&self) -> FallbackCounts {
        FallbackCounts {
            stood_in: self.stood_in.load(Ordering::Relaxed),
            unanswered: self.unanswered.load(Ordering::Relaxed),
        }
    }
}

impl<A: Store, B: FallbackStore> Fallback<A, B> {
    /// Answers charges none of which was made at the stand-in.
    async fn ask(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        match self.store.apply(now, charges).await {
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

    /// Renews at the stand-in what the store does not hold.
    async fn renew_at_fallback(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
        readings: &mut Readings,
    ) {
        if self.stood_in.load(Ordering::Relaxed) == 0 {
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
        // What the store holds can only be forgotten there.
        if charges.iter().any(|charge| charge.operation == Operation::Reset) {
            return Err(error);
        }
        // What is to be given back was taken at the store, and cannot be now.
        let (refunds, asked) = split(charges, |charge| origin::mark_of(charge.operation).is_some());
        let answer = if asked.charges.is_empty() {
            Err(error)
        } else {
            self.fallback_store.apply(now, &asked.charges).await
        };
        let Ok(mut readings) = answer else {
            self.unanswered.fetch_add(1, Ordering::Relaxed);
            return Err(error);
        };
        self.stood_in.fetch_add(1, Ordering::Relaxed);
        readings.iter_mut().for_each(|reading| origin::tag(reading, Decider::Fallback));
        let unknown = Reading { admission: Admission::Never, ..Reading::default() };
        let untouched = |charge: &Charge<'_>| match charge.operation {
            Operation::Refund { .. } => Reading::default(),
            _ => unknown,
        };
        let nothing: Readings = refunds.charges.iter().map(untouched).collect();
        Ok(join(&asked, &readings, &refunds, &nothing).with_source(DecisionSource::Fallback(error)))
    }

    /// Gives back at the stand-in what was taken there, and asks the rest as ever.
    async fn ask_both(
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
        if there.charges.is_empty() {
            return Ok(refunded);
        }
        let readings = self.ask(now, &there.charges).await?;
        let source = readings.source();
        Ok(join(&here, &refunded, &there, &readings).with_source(source))
    }
}

impl<A: Store, B: FallbackStore> Store for Fallback<A, B> {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        if charges.iter().any(|charge| origin::is_tagged(charge.operation)) {
            self.ask_both(now, charges).await
        } else {
            self.ask(now, charges).await
        }
    }
}

impl<A: fmt::Debug, B: fmt::Debug> fmt::Debug for Fallback<A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fallback")
            .field("store", &self.store)
            .field("stand_in", &self.fallback_store)
            .field("counts", &self.counts())
            .finish()
    }
}

/// Part of a call's charges, and where in the call they stand.
#[derive(Default)]
struct Part<'a> {
    charges: Vec<Charge<'a>>,
    places: Vec<usize>,
}

/// Parts the charges that are such from the others.
fn split<'a>(
    charges: &[Charge<'a>],
    is_such: impl Fn(&Charge<'a>) -> bool,
) -> (Part<'a>, Part<'a>) {
    let (mut such, mut others) = (Part::default(), Part::default());
    for (place, charge) in charges.iter().enumerate() {
        let part = if is_such(charge) { &mut such } else { &mut others };
        part.charges.push(*charge);
        part.places.push(place);
    }
    (such, others)
}

/// The readings of both parts in the order of the call.
fn join(one: &Part<'_>, ones: &[Reading], other: &Part<'_>, others: &[Reading]) -> Readings {
    let mut all = vec![Reading::default(); one.places.len() + other.places.len()];
    let placed = one.places.iter().zip(ones).chain(other.places.iter().zip(others));
    placed.for_each(|(place, reading)| all[*place] = *reading);
    all.into_iter().collect()
}
