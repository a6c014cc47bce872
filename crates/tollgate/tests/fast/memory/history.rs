//! A test that checks the answers to many concurrent threads as one history.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::thread;

use tollgate_conformance::history::{Allowance, Recorded, Refunds, Workload};

use super::world::*;

const CALLERS: u64 = 8;

#[test]
fn what_eight_threads_are_reported_is_sound() {
    for seed in 0..8 {
        for refunds in [Refunds::Never, Refunds::Often] {
            let limits = Workload::limits_of_each_kind();
            let workload = Workload::new(seed, limits, refunds);
            let store = Recorded::new(store_of(10_000));
            thread::scope(|scope| {
                for caller in 0..CALLERS {
                    let (workload, store) = (&workload, &store);
                    scope.spawn(move || at_once(workload.call(store, caller)));
                }
            });
            let report = store.history().check(Allowance::default());
            println!("seed {seed}, {refunds:?}: {report}");
            report.assert_sound();
            assert!(report.admitted > 0 && report.refused > 0, "{report}");
        }
    }
}

/// Returns the answer of a store that waits only for short locks.
fn at_once<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("the store waits for something"),
    }
}
