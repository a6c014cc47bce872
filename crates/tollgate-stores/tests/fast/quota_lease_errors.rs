//! Quota leases: what a caller receives if the store does not answer one of several calls.

use tollgate::model::{
    Admission, ChargeId, Cost, DecisionSource, Millis, Operation, Store, StoreError,
};

use crate::faulty::Trouble;
use crate::quota_lease::with_lease;
use crate::setup::{NOW, apply_one, at_once, charge, fixed, take, user};

/// The bug: the node first refunds its unused units. The store did not answer the refund, so the
/// charge was not sent, and it failed with the error of the refund. A fallback never charges such a
/// call later.
#[test]
fn a_charge_that_was_not_sent_failed_as_if_it_was() {
    for error in [StoreError::TimedOut, StoreError::Corrupt] {
        let (here, store, limit, _) = with_lease(1_000);
        let calls = store.calls();
        store.next([Trouble::Unheard(error)]);
        let until = NOW.after(Millis::from_secs(1));
        let reserve = Operation::Reserve { cost: Cost::ONE, id: ChargeId(9), until };
        let reserved = at_once(apply_one(&here, NOW, &limit, &user(1), reserve));
        assert_eq!((reserved, store.calls()), (Err(StoreError::Unavailable), calls + 1));
    }
}

/// The bug: the store admitted a call, and did not answer when the node corrected the reading of a
/// peek. The call failed as if the store had executed nothing of it. A fallback charged the other
/// limits again, and the permits of the call stayed in use.
#[test]
fn an_admitted_call_failed_because_its_peek_was_not_corrected() {
    let troubles = [
        vec![Trouble::None, Trouble::Lost(StoreError::Unavailable)],
        vec![Trouble::None, Trouble::None, Trouble::Lost(StoreError::Unavailable)],
    ];
    for troubles in troubles {
        let (here, store, limit, _) = with_lease(10);
        let (other, subject, calls) = (fixed("other", 5), user(1), store.calls());
        let in_store = at_once(apply_one(&store, NOW, &limit, &subject, take(0, 0))).unwrap();
        let look = Operation::Peek { cost: Cost::new(7).unwrap() };
        let charges = [charge(&other, &subject, take(1, 4)), charge(&limit, &subject, look)];
        let expected = calls + 1 + troubles.len();
        store.next(troubles);
        let readings = at_once(here.apply(NOW, &charges)).unwrap();
        assert_eq!(store.calls(), expected, "the call, the refund, and the peek again");
        assert_eq!(readings.source(), DecisionSource::Store);
        assert_eq!((readings[0].admission, readings[0].used), (Admission::Now, 1));
        // The units are refunded or lost. The reading is from before that.
        assert_eq!(readings[1].used, in_store.used);
        assert_ne!(readings[1].admission, Admission::Now);
    }
}
