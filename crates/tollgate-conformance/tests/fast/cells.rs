//! Tests that the simplest store passes the suite, and therefore that the core agrees with the
//! model.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tollgate_conformance::trace::{Trace, run_trace, run_trace_by, seeds};
use tollgate_conformance::{Cells, check};
use tollgate_core::{Charge, Readings, Store, StoreError, Timestamp};

fn run<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("a runtime").block_on(future)
}

#[test]
fn cells_pass_the_suite() {
    run(check(&Cells::default(), "suite"));
}

/// TOLLGATE_SEED=… cargo test -p tollgate-conformance cells_answer_as_the_model
#[test]
fn cells_answer_as_the_model() {
    for seed in seeds(10_000, 22_000) {
        let store = Cells::default();
        if let Err(difference) = run(run_trace(&store, &Trace::random(seed), "model")) {
            panic!("{difference}");
        }
    }
}

/// TOLLGATE_SEED=… cargo test -p tollgate-conformance cells_answer_calls_on_two_subjects
#[test]
fn cells_answer_calls_on_two_subjects_as_the_model() {
    for seed in seeds(40_000, 4_000) {
        let store = Cells::default();
        if let Err(difference) = run(run_trace(&store, &Trace::spanning(seed), "spanning")) {
            panic!("{difference}");
        }
    }
}

/// TOLLGATE_SEED=… cargo test -p tollgate-conformance cells_answer_reservations
#[test]
fn cells_answer_reservations_as_the_model() {
    for seed in seeds(80_000, 12_000) {
        let store = Cells::default();
        if let Err(difference) = run(run_trace(&store, &Trace::reserving(seed), "reserving")) {
            panic!("{difference}");
        }
    }
}

/// TOLLGATE_SEED=… cargo test -p tollgate-conformance cells_answer_several_quotas
#[test]
fn cells_answer_several_quotas_of_a_limit_as_the_model() {
    for seed in seeds(120_000, 12_000) {
        let traces = [Trace::random(seed), Trace::reserving(seed)];
        for (part, trace) in ["plans", "reserving-plans"].iter().zip(traces) {
            let trace = trace.with_plans();
            if let Err(difference) = run(run_trace(&Cells::default(), &trace, part)) {
                panic!("{part}: {difference}");
            }
        }
    }
}

/// A deduplicated refund finds a permit that has expired. The same refund is repeated by a slow
/// clock, at a time before the expiry, and finds the permit held. The store must release the
/// permit, because the first refund released nothing.
#[test]
fn regression_guarded_refund_of_an_ended_lease_repeated_by_a_lagging_clock() {
    let trace = Trace::random(1_010_056);
    if let Err(difference) = run(run_trace(&Cells::default(), &trace, "regression")) {
        panic!("{difference}");
    }
}

/// A store that loses its state in the first runs, like a server that deletes expired keys while
/// the machine stalls. A run reads the stopwatch at its start and its end.
struct Forgetful<'t> {
    cells: Cells,
    looks: &'t AtomicU64,
    losing: u64,
}

impl Store for Forgetful<'_> {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        let run = (self.looks.load(Ordering::Relaxed) - 1) / 2;
        if run < self.losing {
            return Cells::default().apply(now, charges).await;
        }
        self.cells.apply(now, charges).await
    }
}

#[test]
fn a_trace_that_a_stall_spoiled_is_run_again_and_no_other() {
    let passes = |losing, between_looks| {
        let looks = AtomicU64::new(0);
        let store = Forgetful { cells: Cells::default(), looks: &looks, losing };
        let elapsed = || between_looks * looks.fetch_add(1, Ordering::Relaxed) as u32;
        run(run_trace_by(&store, &Trace::random(7), "stalled", elapsed)).is_ok()
    };
    let (quick, stalled) = (Duration::from_millis(10), Duration::from_secs(60));
    assert!(passes(0, quick) && passes(0, stalled));
    assert!(passes(2, stalled));
    assert!(!passes(2, quick), "the store is to blame");
    assert!(!passes(u64::MAX, stalled), "not for ever");
}
