//! Tests of the history checker. Correct stores pass, and each fault is found.

mod broken;
mod by_hand;
mod faults;
mod holds;
mod leased;
mod sound;

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::thread;

use tollgate_conformance::history::{Allowance, Recorded, Report};
use tollgate_core::Store;

const CALLERS: u64 = 8;

/// Returns the report on a correct `store`. Several callers execute `call` concurrently, and `call`
/// receives the number of its caller.
fn check_history<S: Store>(store: S, call: impl AsyncFn(&Recorded<S>, u64) + Sync) -> Report {
    let store = Recorded::new(store);
    thread::scope(|scope| {
        for caller in 0..CALLERS {
            let (store, call) = (&store, &call);
            scope.spawn(move || at_once(call(store, caller)));
        }
    });
    let report = store.history().check(Allowance::default());
    println!("{report}");
    report.assert_sound();
    assert!(report.windows > 0 && report.admitted > 0 && report.refused > 0, "{report}");
    report
}

/// Returns the result of a future that is ready at once.
fn at_once<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("the store waits for something"),
    }
}
