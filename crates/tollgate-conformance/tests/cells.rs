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
