//! Tests of the charges for units that the fallback admitted, if some of these charges fail.

use std::collections::HashSet;
use std::num::NonZeroU32;

use parking_lot::Mutex;
use tollgate::model::{
    Charge, DecisionSource, Millis, Readings, Store, StoreError, Timestamp, key::Subject,
};
use tollgate::store::Memory;
use tollgate_stores::LocalShare;
use tollgate_stores::fallback::{Fallback, LocalChargeCounts};

use crate::faulty::Trouble;
use crate::local_charges::{NOTHING, fails, node, one, recovers};
use crate::setup::{NOW, apply_one, at_once, charge, fixed, take, user};

/// The bug: the store did not answer the charge for the admitted units, so the call itself was not
/// sent. The call failed with the error of that charge, after which a call is never charged again.
#[test]
fn a_call_that_was_not_sent_after_an_outage_was_never_charged() {
    for error in [StoreError::TimedOut, StoreError::Corrupt] {
        let (node, limit, subject) = (node(2), fixed("core", 20), user(1));
        fails(&node);
        one(&node, &limit, &subject, take(5, 1));
        recovers(&node);
        node.store().next([Trouble::Lost(error)]);
        let calls = node.store().calls();
        let readings = at_once(node.apply(NOW, &[charge(&limit, &subject, take(1, 2))])).unwrap();
        assert_eq!(readings.source(), DecisionSource::Fallback(StoreError::Unavailable));
        assert_eq!(node.store().calls(), calls + 1, "only the charge for the admitted units");
        assert_eq!(one(&node, &limit, &subject, take(1, 3)).used, 2);
        let counts = LocalChargeCounts { charged: 1, unknown: 5, ..NOTHING };
        assert_eq!(node.local_charges(), counts);
    }
}

/// A store of two shards. The shard of the subjects in the set fails with the error.
struct TwoShards {
    store: Memory,
    failing: Mutex<(HashSet<Subject>, StoreError)>,
}

impl Store for TwoShards {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        {
            let (subjects, error) = &*self.failing.lock();
            if charges.iter().any(|charge| subjects.contains(charge.subject)) {
                return Err(*error);
            }
        }
        self.store.apply(now, charges).await
    }
}

const SUBJECTS: u64 = 600;

/// Returns a node that admitted one unit for each of many subjects while both shards were down.
/// Then one of the shards returned, and the other one, with every second subject, fails with
/// `error`.
fn after_the_return_of_one_shard(error: StoreError) -> Fallback<TwoShards, LocalShare<Memory>> {
    let all = (0..SUBJECTS).map(user).collect();
    let failing = Mutex::new((all, StoreError::Unavailable));
    let store = TwoShards { store: Memory::default(), failing };
    let node = Fallback::new(store, LocalShare::new(Memory::default(), NonZeroU32::MIN));
    let limit = fixed("core", 20);
    for number in 0..SUBJECTS {
        one(&node, &limit, &user(number), take(1, 1));
    }
    *node.store().failing.lock() = ((0..SUBJECTS).step_by(2).map(user).collect(), error);
    node
}

const LATER: Timestamp = NOW.after(Millis::new(50));

/// The bug: a node without traffic tries once a second. It stopped at the first batch with an
/// error, so the shard that answered was charged for 64 of 8,192 subjects each second.
#[test]
fn one_pass_charges_a_shard_although_another_is_down() {
    let node = after_the_return_of_one_shard(StoreError::Unavailable);
    at_once(node.charge_local(LATER));
    assert_eq!(node.local_charges(), LocalChargeCounts { charged: SUBJECTS / 2, ..NOTHING });
}

/// Units in a charge with an unknown outcome are not charged again, and the charge takes the whole
/// deadline.
#[test]
fn a_pass_stops_at_an_unknown_outcome() {
    let node = after_the_return_of_one_shard(StoreError::TimedOut);
    at_once(node.charge_local(LATER));
    let unknown = node.local_charges().unknown;
    assert!((1..=128).contains(&unknown), "{unknown}");
}

/// The bug: after a failed attempt, the node waits for some milliseconds of the decision time. If
/// the clock was set back by seconds, it charged no other subject for these seconds.
#[test]
fn a_clock_that_was_set_back_delayed_the_charges_of_other_subjects() {
    let (node, limit) = (node(2), fixed("core", 20));
    fails(&node);
    one(&node, &limit, &user(1), take(3, 1));
    at_once(node.charge_local(LATER));
    recovers(&node);
    let before = Timestamp::from_millis(NOW.as_millis() - 2_000);
    at_once(apply_one(&node, before, &limit, &user(2), take(1, 2))).unwrap();
    assert_eq!(node.local_charges(), LocalChargeCounts { charged: 3, ..NOTHING });
}
