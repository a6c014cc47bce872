//! The simplest store passes the suite: the core means what the model means.

use tollgate_conformance::trace::{Trace, run_trace, seeds};
use tollgate_conformance::{Cells, check};

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

/// A guarded refund finds a lease that has ended; asked again by a clock that lags, from before its
/// end, it finds it held. The lease is given back once: the first time gave nothing.
#[test]
fn regression_guarded_refund_of_an_ended_lease_repeated_by_a_lagging_clock() {
    let trace = Trace::random(1_010_056);
    if let Err(difference) = run(run_trace(&Cells::default(), &trace, "regression")) {
        panic!("{difference}");
    }
}
