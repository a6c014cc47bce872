//! Callers die between reservation and settlement, and replies are cut off. Reservations that are
//! not settled expire, and no unit is lost.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tollgate_conformance::PlainHash;
use tollgate_conformance::history::{
    Allowance, Call, History, Outcome, Recorded, ReservingWorkload,
};
use tollgate_core::algo::FixedWindow;
use tollgate_core::algo::fixed_window::Anchor;
use tollgate_core::{
    Algorithm, Charge, ChargeId, Cost, DecisionSource, Limit, Millis, Operation, Readings,
    ReservationTerms, Store, StoreError, Timestamp,
};
use tollgate_redis::{Keys, RedisShard, RuntimeChoice};

use crate::kit::{Passage, Proxy, Server};
use crate::shard::{PATIENCE, patient, until};

const CALLERS: u64 = 8;
/// The number of times that replies are cut off.
const CUTS: usize = 10;
/// The deadline of each call. A call that waits longer for a new connection gets no answer, like a
/// call with a reply that was cut off.
const WITHIN: Duration = Duration::from_secs(1);
const AFTER_ERRORS: Duration = Duration::from_millis(20);
/// The length of a window that outlives the test. Keys last for the same time, and every used unit
/// of an open window is visible in the window.
const HOUR: Millis = Millis::from_secs(3_600);

/// A store with callers that pause after an error. Without the pause, the callers would send all
/// their calls while the server cannot be reached.
struct Unhurried<'s>(&'s Recorded<RedisShard>);

impl Store for Unhurried<'_> {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        let result = self.0.apply(now, charges).await;
        if result.is_err() {
            tokio::time::sleep(AFTER_ERRORS).await;
        }
        result
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_settles_runs_out_and_nothing_leaks() {
    let server = Server::start().await;
    let network = Proxy::start(server.port()).await;
    let settings = patient(network.url().parse().unwrap());
    let store = RedisShard::open(&settings, Keys::new(PlainHash), RuntimeChoice::Best);
    let store = store.with_deadline(WITHIN);
    store.ready(PATIENCE).await.unwrap();
    let store = Arc::new(Recorded::new(store));
    let workload = Arc::new(ReservingWorkload::new(11, limits()));

    let mut callers = JoinSet::new();
    let mut begin = |caller: u64| {
        let (workload, store) = (Arc::clone(&workload), Arc::clone(&store));
        callers.spawn(async move { workload.call(&Unhurried(&store), caller).await })
    };
    let mut dying: Vec<_> = (0..CALLERS).map(&mut begin).collect();
    let all = (CALLERS * workload.calls) as usize;
    for cut in 1..=CUTS {
        until(|| store.recorder().calls() >= all * cut / (CUTS * 2)).await;
        network.replies(Passage::Cut);
        let unheard = store.recorder().calls();
        // A caller that makes another call received an answer to its last call, or an error for a
        // reply that was cut off.
        until(|| store.recorder().calls() > unheard).await;
        network.replies(Passage::Open);
        store.store().ready(PATIENCE).await.unwrap();
        // Another caller replaces a caller that died.
        if let Some(caller) = dying.pop() {
            caller.abort();
            begin(CALLERS + cut as u64);
        }
    }
    while callers.join_next().await.is_some() {}

    look_after_the_last_end(&store, &workload).await;
    let history = store.history();
    let (forgotten, unheard) = (forgotten(&history), unheard(&history));
    let report = history.check(Allowance::default());
    println!(
        "{report}\nviolations {} ≤ 0; reservations that nobody settled {forgotten} ≥ 1; \
         reservations whose answer was cut off {unheard} ≥ 1",
        report.violated
    );
    report.assert_sound();
    assert!(forgotten > 0 && unheard > 0, "the faults did not bite");
    server.assert_every_key_ends().await;
}

/// Returns the limits of each algorithm, and one limit with a window that outlives the test. In
/// that window, every unit that a reservation did not return stays visible.
fn limits() -> Vec<Limit> {
    let window = FixedWindow::new(100_000, HOUR, Anchor::FirstRequest).unwrap();
    let terms = ReservationTerms { max: Millis::new(120), ..ReservationTerms::default() };
    let long = Limit::new("long", Algorithm::FixedWindow(window)).unwrap();
    let limits = ReservingWorkload::limits_of_each_kind().into_iter();
    let limits = limits.chain([long.with_reservation_terms(terms).unwrap()]);
    limits.map(|limit| limit.with_skew_max(HOUR)).collect()
}

/// Records the readings of all limits after every reservation has expired.
async fn look_after_the_last_end(store: &Recorded<RedisShard>, workload: &ReservingWorkload) {
    let history = store.history();
    let last = history.calls.iter().map(|call| call.now).max().unwrap_or(Timestamp::EPOCH);
    let later = last.after(Millis::from_secs(1));
    let subjects: BTreeSet<_> =
        history.calls.iter().flat_map(|call| &call.charges).map(|charge| &charge.subject).collect();
    for (limit, subject) in workload
        .limits
        .iter()
        .flat_map(|limit| subjects.iter().map(move |subject| (limit, subject)))
    {
        let operation = Operation::Charge { cost: Cost::PEEK, id: ChargeId(0) };
        let result = store.apply(later, &[Charge { limit, subject, operation }]).await.unwrap();
        assert_eq!(result.source(), DecisionSource::Store);
        assert_eq!(result[0].reserved, 0, "{} of {subject}: {result:?}", limit.name());
    }
}

/// Returns the number of reservations that were answered and never settled.
fn forgotten(history: &History) -> usize {
    let charges = || {
        history
            .calls
            .iter()
            .flat_map(|call| call.charges.iter().map(move |it| (call, it.operation)))
    };
    let settled: BTreeSet<_> = charges()
        .filter_map(|(_, operation)| match operation {
            Operation::Settle { id, .. } => Some(id),
            _ => None,
        })
        .collect();
    let result = charges().filter(|(call, operation)| match (&call.outcome, operation) {
        (Outcome::Answered(readings), Operation::Reserve { id, .. }) => {
            readings.all_admitted() && !settled.contains(id)
        }
        _ => false,
    });
    result.count()
}

/// Returns the number of reservations without an answer.
fn unheard(history: &History) -> usize {
    let is_unheard = |call: &&Call| {
        matches!(call.outcome, Outcome::Unknown)
            && call
                .charges
                .iter()
                .any(|charge| matches!(charge.operation, Operation::Reserve { .. }))
    };
    history.calls.iter().filter(is_unheard).count()
}
