//! Limits, subjects, charges and traces for all tests of this program.

use std::sync::LazyLock;
use std::task::{Context, Poll, Waker};

use proptest::prelude::*;
use tollgate::HashKey;
use tollgate::model::algo::{
    Anchor, Concurrency, FixedWindow, SlidingLog, SlidingWindow, TokenBucket, TwoBucket,
};
use tollgate::model::{
    Algorithm, Charge, ChargeId, ChargePosition, Cost, Deduplication, Limit, Millis, Operation,
    Reading, Readings, Refusals, Store, StoreError, Subject, Timestamp, Value,
};

pub(crate) const WINDOW: Millis = Millis::from_secs(60);

/// The start of a calendar window.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_700_000_040_000);

pub(crate) fn fixed(name: &str, quota: u64) -> Limit {
    let window = FixedWindow::new(quota, WINDOW, Anchor::FirstRequest).unwrap();
    Limit::new(name, Algorithm::FixedWindow(window)).unwrap()
}

pub(crate) fn calendar(name: &str, quota: u64) -> Limit {
    let window = FixedWindow::new(quota, WINDOW, Anchor::Calendar).unwrap();
    Limit::new(name, Algorithm::FixedWindow(window)).unwrap()
}

pub(crate) fn in_flight(name: &str, quota: u64) -> Limit {
    Limit::new(name, Algorithm::Concurrency(Concurrency::new(quota, WINDOW).unwrap())).unwrap()
}

/// Returns one limit of every algorithm and variant, with windows on the calendar.
pub(crate) fn of_every_kind(quota: u64) -> Vec<Limit> {
    let precision = Millis::from_secs(7);
    let limit = |name, algorithm| Limit::new(name, algorithm).unwrap();
    vec![
        calendar("fixed", quota),
        limit(
            "sliding",
            Algorithm::SlidingWindow(SlidingWindow::new(quota, WINDOW, precision).unwrap()),
        ),
        two_buckets("two", quota),
        limit("log", Algorithm::SlidingLog(SlidingLog::new(quota, WINDOW).unwrap())),
        limit("bucket", Algorithm::TokenBucket(TokenBucket::new(quota, WINDOW, quota).unwrap())),
        in_flight("flight", quota),
        calendar("hammered", quota).with_refusals(Refusals::Counted).unwrap(),
    ]
}

pub(crate) fn two_buckets(name: &str, quota: u64) -> Limit {
    Limit::new(name, Algorithm::TwoBucket(TwoBucket::new(quota, WINDOW).unwrap())).unwrap()
}

pub(crate) fn key() -> HashKey {
    static KEY: LazyLock<HashKey> =
        LazyLock::new(|| HashKey::from_secret(b"the same on every node"));
    KEY.clone()
}

pub(crate) fn user(number: u64) -> Subject {
    Subject::new([("user", Value::Clear(number.to_string().as_bytes()))], &key())
}

pub(crate) fn take(cost: u64, id: u128) -> Operation {
    Operation::Charge { cost: Cost::new(cost).unwrap(), id: ChargeId(id) }
}

pub(crate) fn refund(cost: u64, id: u128, position: ChargePosition) -> Operation {
    let cost = Cost::new(cost).unwrap();
    Operation::Refund { cost, position, id: ChargeId(id), deduplication: Deduplication::Unneeded }
}

pub(crate) const fn charge<'a>(
    limit: &'a Limit,
    subject: &'a Subject,
    operation: Operation,
) -> Charge<'a> {
    Charge { limit, subject, operation }
}

/// Returns the reading of a call on one limit.
pub(crate) async fn apply_one(
    store: &impl Store,
    now: Timestamp,
    limit: &Limit,
    subject: &Subject,
    operation: Operation,
) -> Result<Reading, StoreError> {
    store.apply(now, &[charge(limit, subject, operation)]).await.map(|readings| readings[0])
}

/// Returns the output of a future that never waits.
pub(crate) fn at_once<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it waits"),
    }
}

/// Runs other tasks until `is_so` returns true.
pub(crate) async fn until(is_so: impl Fn() -> bool) {
    for _ in 0..1_000_000 {
        if is_so() {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("it never comes to that");
}

/// Returns the fields of each reading that a client receives.
pub(crate) fn comparable(readings: &Readings) -> Vec<impl PartialEq + std::fmt::Debug + use<>> {
    let of = |reading: &Reading| {
        (reading.admission, reading.fits_again, reading.used, reading.full_reset_at)
    };
    readings.iter().map(of).collect()
}

/// One call of a trace.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The milliseconds since the previous call.
    pub(crate) later: u64,
    /// The charges of the call: the index of a limit, the number of a user, and the cost. Each pair
    /// of a limit and a user occurs at most once.
    pub(crate) takes: Vec<(usize, u64, u64)>,
}

pub(crate) fn calls(limits: usize, users: u64) -> impl Strategy<Value = Vec<Call>> {
    let takes = prop::collection::btree_map((0..limits, 0..users), 0..4_u64, 1..4);
    let takes = takes.prop_map(|takes| {
        takes.into_iter().map(|((limit, user), cost)| (limit, user, cost)).collect()
    });
    let later = prop_oneof![Just(0), 1..50_u64, 1_000..30_000_u64];
    let call = (later, takes).prop_map(|(later, takes)| Call { later, takes });
    prop::collection::vec(call, 1..100)
}

/// Runs `trace` over `limits`, and passes the time and the charges of every call to `each`.
pub(crate) fn replay(
    trace: &[Call],
    limits: &[Limit],
    mut each: impl FnMut(Timestamp, &[Charge<'_>]) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    let mut now = NOW;
    for (call, id) in trace.iter().zip(1..) {
        now = now.after(Millis::new(call.later));
        let subjects: Vec<_> = call.takes.iter().map(|(_, number, _)| user(*number)).collect();
        let charges: Vec<_> = call
            .takes
            .iter()
            .zip(&subjects)
            .map(|((limit, _, cost), subject)| charge(&limits[*limit], subject, take(*cost, id)))
            .collect();
        each(now, &charges)?;
    }
    Ok(())
}
