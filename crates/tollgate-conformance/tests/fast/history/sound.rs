//! Tests that correct stores pass, in any interleaving of their callers.

use tollgate_conformance::Cells;
use tollgate_conformance::history::{Allowance, Recorded, Recorder, Refunds, Workload};
use tollgate_core::Store;

use super::faults::Lossy;
use super::{CALLERS, at_once, check_history};

fn judge<S: Store>(workload: &Workload, store: S) {
    println!("seed {}, {:?}", workload.seed, workload.refunds);
    let report = check_history(store, async |store, caller| workload.call(store, caller).await);
    assert_eq!(report.calls, CALLERS * workload.calls);
}

#[test]
fn eight_callers_of_a_sound_store_pass() {
    for seed in 0..10 {
        for refunds in [Refunds::Never, Refunds::Often] {
            let limits = Workload::limits_of_each_kind();
            judge(&Workload::new(seed, limits, refunds), Cells::default());
        }
    }
}

#[test]
fn answers_that_are_lost_are_no_violation() {
    for seed in 0..10 {
        for refunds in [Refunds::Never, Refunds::Often] {
            let limits = Workload::limits_of_each_kind();
            judge(&Workload::new(seed, limits, refunds), Lossy::default());
        }
    }
}

#[test]
fn a_recorder_that_is_full_says_so() {
    let workload = Workload::new(0, Workload::limits_of_each_kind(), Refunds::Never);
    let recorder = Recorder::new(100).into();
    let store = Recorded::with_recorder(Cells::default(), recorder);
    at_once(workload.call(&store, 0));
    let report = store.history().check(Allowance::default());
    assert_eq!((report.calls, report.unrecorded), (100, workload.calls - 100));
    assert!(!report.is_sound() && report.to_string().contains("300 calls were not recorded"));
}
