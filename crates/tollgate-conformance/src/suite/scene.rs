//! Helpers for the test cases.

use tollgate_core::algo::fixed_window::Anchor;
use tollgate_core::algo::{
    Concurrency, FixedWindow, SlidingLog, SlidingWindow, TokenBucket, TwoBucket,
};
use tollgate_core::{
    Algorithm, Charge, ChargeId, ChargePosition, Cost, Deduplication, Limit, Millis, Operation,
    Reading, Readings, Store, Subject, Timestamp, Value,
};

use crate::plain_hash::PlainHash;

/// The start time of the cases in milliseconds: a multiple of the length of every window in the
/// cases.
pub(super) const START: u64 = 1_700_000_000_000;

/// A limit and a subject on a store, with short methods for the cases.
pub(super) struct Scene<'s, S> {
    store: &'s S,
    pub(super) limit: Limit,
    pub(super) subject: Subject,
}

impl<'s, S: Store> Scene<'s, S> {
    pub(super) fn new(store: &'s S, prefix: &str, case: &str, algorithm: Algorithm) -> Self {
        let limit = Limit::new("suite", algorithm).expect("a name");
        Self { store, limit, subject: subject(prefix, case) }
    }

    pub(super) async fn apply(&self, at: u64, operation: Operation) -> Reading {
        let charge = Charge { limit: &self.limit, subject: &self.subject, operation };
        apply(self.store, at, &[charge]).await[0]
    }

    /// Charges `units` at `at` milliseconds after the start, with the id `id`.
    pub(super) async fn charge(&self, at: u64, units: u64, id: u128) -> Reading {
        self.apply(at, charge(units, id)).await
    }

    pub(super) async fn peek(&self, at: u64) -> Reading {
        self.charge(at, 0, 0).await
    }

    pub(super) async fn refund(
        &self,
        at: u64,
        units: u64,
        position: ChargePosition,
        id: u128,
    ) -> u64 {
        let (cost, id) = (cost(units), ChargeId(id));
        let deduplication = Deduplication::ById;
        self.apply(at, Operation::Refund { cost, position, id, deduplication }).await.refunded
    }

    pub(super) async fn renew(&self, at: u64, id: u128) -> Reading {
        self.apply(at, Operation::Renew { id: ChargeId(id) }).await
    }
}

pub(super) async fn apply<S: Store>(store: &S, at: u64, charges: &[Charge<'_>]) -> Readings {
    let readings = store.apply(moment(at), charges).await.expect("the store answers");
    assert_eq!(readings.len(), charges.len(), "one reading for each charge");
    readings
}

/// Returns the time `at` milliseconds after the start.
pub(super) fn moment(at: u64) -> Timestamp {
    Timestamp::from_millis(START + at)
}

pub(super) fn charge(units: u64, id: u128) -> Operation {
    Operation::Charge { cost: cost(units), id: ChargeId(id) }
}

/// Returns a peek that tests whether `units` fit.
pub(super) fn peek(units: u64) -> Operation {
    Operation::Peek { cost: cost(units) }
}

fn cost(units: u64) -> Cost {
    Cost::new(units).expect("below 2^53")
}

pub(super) fn subject(prefix: &str, case: &str) -> Subject {
    let pairs = [("run", Value::Clear(prefix.as_bytes())), ("case", Value::Clear(case.as_bytes()))];
    Subject::new(pairs, &PlainHash)
}

pub(super) fn fixed(quota: u64, window: u64) -> Algorithm {
    let of = FixedWindow::new(quota, Millis::new(window), Anchor::FirstRequest);
    Algorithm::FixedWindow(of.expect("a limit"))
}

pub(super) fn concurrency(quota: u64, lease: u64) -> Algorithm {
    Algorithm::Concurrency(Concurrency::new(quota, Millis::new(lease)).expect("a limit"))
}

pub(super) fn bucket(quota: u64, window: u64, burst: u64) -> Algorithm {
    let of = TokenBucket::new(quota, Millis::new(window), burst);
    Algorithm::TokenBucket(of.expect("a limit"))
}

/// Returns every algorithm with `quota` and `window`, and the name of each algorithm.
pub(super) fn every(quota: u64, window: u64) -> [(&'static str, Algorithm); 7] {
    let span = Millis::new(window);
    let calendar = FixedWindow::new(quota, span, Anchor::Calendar).expect("a limit");
    let blocks = SlidingWindow::new(quota, span, Millis::new(window / 4)).expect("a limit");
    let two = TwoBucket::new(quota, span).expect("a limit");
    let log = SlidingLog::new(quota, span).expect("a limit");
    [
        ("fixed-window", fixed(quota, window)),
        ("calendar", Algorithm::FixedWindow(calendar)),
        ("sliding-window", Algorithm::SlidingWindow(blocks)),
        ("two-bucket", Algorithm::TwoBucket(two)),
        ("sliding-log", Algorithm::SlidingLog(log)),
        ("token-bucket", bucket(quota, window, quota)),
        ("concurrency", concurrency(quota, window)),
    ]
}
