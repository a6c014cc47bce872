//! Quota leases: decisions from a lease equal the store's decisions.

use std::num::NonZeroU64;
use std::sync::Arc;

use tokio::runtime::Builder;
use tokio::sync::Semaphore;
use tollgate::model::{
    Admission, Charge, ChargePosition, Cost, DecisionSource, Deduplication, Limit, LimitMode,
    Millis, Operation, Reading, Readings, Store, StoreError, Subject, Timestamp, Value,
};
use tollgate::store::Memory;
use tollgate_conformance::check_one_quota;
use tollgate_stores::QuotaLease;
use tollgate_stores::quota_lease::{
    HOT_THRESHOLD, LeaseConfig, MAX_LEASE_UNITS, MAX_REFUNDS_PER_SWEEP, MAX_SUBJECT_BYTES,
};

use crate::faulty::{Faulty, Trouble};
use crate::setup::{
    NOW, WINDOW, apply_one, at_once, calendar, charge, fixed, key, refund, take, until, user,
};

/// A configuration that takes a lease after the first charge, of the largest size.
pub(crate) const EAGER: LeaseConfig =
    LeaseConfig { at_most: MAX_LEASE_UNITS, share: NonZeroU64::MIN, hot_after: 1 };

/// A store that converts every limit that supports leases to a leased limit.
struct AsLeased<S>(S);

impl<S: Store> Store for AsLeased<S> {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        let limits: Vec<_> = charges.iter().map(|charge| leased(charge.limit)).collect();
        let charges: Vec<_> = charges
            .iter()
            .zip(&limits)
            .map(|(charge, limit)| Charge { limit, ..*charge })
            .collect();
        self.0.apply(now, &charges).await
    }
}

/// Returns the same limit with leases, if the limit supports leases.
pub(crate) fn leased(limit: &Limit) -> Limit {
    limit.clone().with_mode(LimitMode::Leased).unwrap_or_else(|_| limit.clone())
}

#[tokio::test]
async fn one_node_with_leases_is_exact() {
    for (at_most, share) in [(MAX_LEASE_UNITS, 1), (MAX_LEASE_UNITS, 8), (3, 1), (1, 2)] {
        let share = NonZeroU64::new(share).unwrap();
        let terms = LeaseConfig { at_most, share, ..EAGER };
        let store = AsLeased(QuotaLease::new(Memory::default(), terms));
        check_one_quota(&store, &format!("leased-{at_most}-{share}")).await;
        assert!(store.0.counts().decided > 0, "{:?}", store.0.counts());
    }
}

#[test]
fn limits_that_are_not_leased_are_passed_on() {
    let store = QuotaLease::new(Faulty::new(), EAGER);
    let (limit, subject) = (fixed("core", 100), user(1));
    for id in 0..20 {
        let taken = at_once(apply_one(&store, NOW, &limit, &subject, take(1, id))).unwrap();
        assert_eq!(taken.used, id as u64 + 1);
    }
    assert_eq!(store.store().calls(), 20);
    assert_eq!((store.counts().decided, store.held(), store.max_unused_units(&limit)), (0, 0, 0));
}

/// In half of a window, a busy limit costs one store call for each lease, and the leases grow.
#[test]
fn a_hot_limit_costs_the_store_few_calls() {
    let store = QuotaLease::new(Faulty::new(), LeaseConfig::default());
    let (limit, subject) = (leased(&fixed("core", 1_000_000)), user(1));
    for id in 0..100_000 {
        let now = NOW.after(Millis::new(id / 100));
        let taken = at_once(apply_one(&store, now, &limit, &subject, take(1, id.into()))).unwrap();
        assert_eq!((taken.admission, taken.used), (Admission::Now, id + 1));
        assert_eq!(taken.full_reset_at, NOW.after(WINDOW));
    }
    let (calls, counts) = (store.store().calls(), store.counts());
    assert!(calls < 40, "{calls} calls, {counts:?}");
    assert!(counts.decided > 99_900, "{counts:?}");
    assert_eq!(counts.taken + u64::from(HOT_THRESHOLD), calls as u64);
}

#[test]
fn who_is_seldom_charged_has_no_lease() {
    let store = QuotaLease::new(Faulty::new(), LeaseConfig::default());
    let (limit, subject) = (leased(&fixed("core", 1_000_000)), user(1));
    for id in 0..100 {
        let now = NOW.after(Millis::new(id * 50));
        at_once(apply_one(&store, now, &limit, &subject, take(1, id.into()))).unwrap();
    }
    assert_eq!((store.store().calls(), store.held()), (100, 0));
}

#[test]
fn a_refusal_is_the_store_s_and_comes_at_the_last_unit() {
    let store = QuotaLease::new(Faulty::new(), EAGER);
    let (limit, subject) = (leased(&fixed("core", 100)), user(1));
    for id in 0..100 {
        let taken = at_once(apply_one(&store, NOW, &limit, &subject, take(1, id))).unwrap();
        assert_eq!((taken.admission, taken.used), (Admission::Now, id as u64 + 1));
    }
    let refused = at_once(apply_one(&store, NOW, &limit, &subject, take(1, 100))).unwrap();
    assert_eq!((refused.admission, refused.used), (Admission::At(NOW.after(WINDOW)), 100));
    let over = NOW.after(WINDOW);
    let taken = at_once(apply_one(&store, over, &limit, &subject, take(1, 101))).unwrap();
    assert_eq!((taken.admission, taken.used), (Admission::Now, 1));
}

/// Returns a wrapper, its store, and a limit for which the node has a lease with unused units.
pub(crate) fn with_lease(
    quota: u64,
) -> (QuotaLease<Arc<Faulty>>, Arc<Faulty>, Limit, ChargePosition) {
    let store = Arc::new(Faulty::new());
    let leased_store = QuotaLease::new(Arc::clone(&store), EAGER);
    let limit = leased(&fixed("core", quota));
    let mut position = ChargePosition::default();
    for id in 0..3 {
        position =
            at_once(apply_one(&leased_store, NOW, &limit, &user(1), take(1, id))).unwrap().position;
    }
    assert_eq!(store.calls(), 2, "the first charge, and a lease");
    (leased_store, store, limit, position)
}

fn used(store: &impl Store, limit: &Limit) -> u64 {
    at_once(apply_one(store, NOW, limit, &user(1), take(0, 0))).unwrap().used
}

/// The bug: a charge under another kind of window replaced the entry of the lease, and its unused
/// units stayed used until the window ended.
#[test]
fn the_unused_units_of_another_definition_were_lost() {
    let (here, store, limit, _) = with_lease(1_000);
    let other = leased(&calendar("core", 1_000));
    for id in 10..13 {
        at_once(apply_one(&here, NOW, &other, &user(1), take(1, id))).unwrap();
    }
    for _ in 0..3 {
        at_once(here.sweep(NOW));
    }
    assert_eq!(used(&store, &limit), 6);
}

#[test]
fn what_is_unused_is_seen_by_nobody_here_and_by_everybody_else() {
    let (here, store, limit, _) = with_lease(1_000);
    assert_eq!(used(&here, &limit), 3);
    assert_eq!(used(&store, &limit), 9, "the first charge, and a lease of eight");
    at_once(here.sweep(NOW));
    at_once(here.sweep(NOW));
    assert_eq!((used(&here, &limit), used(&store, &limit)), (3, 3));
    let counts = here.counts();
    assert_eq!((counts.units_taken, counts.units_returned, counts.units_lost), (8, 6, 0));
}

#[test]
fn a_refund_goes_into_the_lease_while_there_is_one_and_else_to_the_store() {
    let (here, store, limit, position) = with_lease(1_000);
    let calls = store.calls();
    let given = at_once(apply_one(&here, NOW, &limit, &user(1), refund(1, 2, position))).unwrap();
    assert_eq!((given.refunded, given.used), (1, 2));
    assert_eq!(store.calls(), calls, "nobody was asked");
    let Operation::Refund { cost, position, id, .. } = refund(1, 1, position) else {
        unreachable!()
    };
    let guarded = Operation::Refund { cost, position, id, deduplication: Deduplication::ById };
    for units in [1, 0, 0] {
        let given = at_once(apply_one(&here, NOW, &limit, &user(1), guarded)).unwrap();
        assert_eq!((given.refunded, given.used), (units, 1), "shown often, given back once");
    }
    assert_eq!(used(&store, &limit), 1, "what was unused went back before it");
    let over = NOW.after(WINDOW);
    let late = at_once(apply_one(&here, over, &limit, &user(1), refund(1, 0, position))).unwrap();
    assert_eq!(late.refunded, 0, "its window is over");
}

#[test]
fn what_another_limit_refuses_is_not_used() {
    let (here, store, limit, _) = with_lease(1_000);
    let full = fixed("full", 1);
    let subject = user(1);
    at_once(apply_one(&here, NOW, &full, &subject, take(1, 10))).unwrap();
    let both = [charge(&limit, &subject, take(1, 11)), charge(&full, &subject, take(1, 11))];
    let calls = store.calls();
    let refused = at_once(here.apply(NOW, &both)).unwrap();
    assert_eq!((refused[0].admission, refused[0].used), (Admission::Now, 3));
    assert_eq!(refused[1].admission, Admission::At(NOW.after(WINDOW)));
    assert_eq!(refused.source(), DecisionSource::Store);
    assert_eq!(store.calls(), calls + 1, "one call, on the other limit");
    store.usually(Trouble::Lost(StoreError::Unavailable));
    assert_eq!(at_once(here.apply(NOW, &both)).err(), Some(StoreError::Unavailable));
    store.usually(Trouble::None);
    assert_eq!(used(&here, &limit), 3);
}

#[test]
fn a_lease_is_used_while_the_store_is_away_and_not_beyond_its_window() {
    let (here, store, limit, _) = with_lease(1_000);
    store.usually(Trouble::Lost(StoreError::Unavailable));
    for id in 3..9 {
        assert!(at_once(apply_one(&here, NOW, &limit, &user(1), take(1, id))).is_ok());
    }
    let refused = at_once(apply_one(&here, NOW, &limit, &user(1), take(1, 9)));
    assert_eq!(refused, Err(StoreError::Unavailable));
    let (here, store, limit, _) = with_lease(1_000);
    store.usually(Trouble::Lost(StoreError::TimedOut));
    let over = NOW.after(WINDOW);
    let refused = at_once(apply_one(&here, over, &limit, &user(1), take(1, 9)));
    assert_eq!(refused, Err(StoreError::TimedOut));
    let before = Timestamp::from_millis(over.as_millis() - 1);
    assert!(at_once(apply_one(&here, before, &limit, &user(1), take(1, 9))).is_ok());
}

#[test]
fn what_is_forgotten_here_takes_its_lease_along() {
    let (here, store, limit, position) = with_lease(1_000);
    at_once(apply_one(&here, NOW, &limit, &user(1), Operation::Reset)).unwrap();
    assert_eq!((used(&here, &limit), used(&store, &limit)), (0, 0));
    at_once(here.sweep(NOW));
    at_once(here.sweep(NOW));
    assert_eq!((used(&store, &limit), here.counts().units_returned), (0, 0));
    let again = at_once(apply_one(&here, NOW, &limit, &user(1), take(1, 9))).unwrap();
    assert_eq!((again.used, again.position), (1, position));
}

/// The bug: an administrator's reset has the quota of the policy. The lease of a subject with an
/// override stayed, and its units were admitted although the store no longer counted them.
#[test]
fn a_reset_kept_the_lease_of_a_subject_with_another_quota() {
    let (here, store, limit, _) = with_lease(1_000);
    let of_policy = limit.with_quota(5_000, None).unwrap();
    at_once(apply_one(&here, NOW, &of_policy, &user(1), Operation::Reset)).unwrap();
    assert_eq!(here.held(), 0);
    at_once(apply_one(&here, NOW, &limit, &user(1), take(1, 9))).unwrap();
    assert_eq!(used(&store, &limit), 1);
}

/// A call uses a unit of a lease and waits for another limit. A reset discards the lease, and the
/// other limit refuses the call.
#[test]
fn a_reset_voids_the_units_of_calls_in_flight() {
    let (here, store, limit, position) = with_lease(1_000);
    let (other, subject, gate) = (fixed("other", 1), user(1), Arc::new(Semaphore::new(0)));
    at_once(apply_one(&here, NOW, &other, &subject, take(1, 3))).unwrap();
    store.next([Trouble::Held(Arc::clone(&gate))]);
    let calls = store.calls();
    let reset = async {
        until(|| store.calls() == calls + 1).await;
        apply_one(&here, NOW, &limit, &subject, Operation::Reset).await.unwrap();
        for id in 5..=6 {
            let taken = apply_one(&here, NOW, &limit, &subject, take(1, id)).await.unwrap();
            assert_eq!(taken.position, position, "the window ends at the same time");
        }
        gate.add_permits(1);
    };
    let charges = [charge(&limit, &subject, take(1, 4)), charge(&other, &subject, take(1, 4))];
    let call = async { tokio::join!(here.apply(NOW, &charges), reset).0 };
    let refused = Builder::new_current_thread().build().unwrap().block_on(call).unwrap();
    assert_ne!(refused[1].admission, Admission::Now);
    at_once(here.refund_all(NOW));
    assert_eq!(used(&store, &limit), 2, "the store has counted both charges after the reset");
}

#[test]
fn a_reservation_finds_the_whole_limit() {
    let (here, store, limit, _) = with_lease(10);
    let cost = Cost::new(7).unwrap();
    let id = tollgate::model::ChargeId(9);
    let until = NOW.after(Millis::from_secs(1));
    let reserve = Operation::Reserve { cost, id, until };
    let held = at_once(apply_one(&here, NOW, &limit, &user(1), reserve)).unwrap();
    assert_eq!((held.admission, held.used, held.reserved), (Admission::Now, 10, 7));
    assert_eq!(used(&store, &limit), 10);
    let settled = Operation::Settle { id, position: held.position, cost: Cost::ONE };
    let settled = at_once(apply_one(&here, NOW, &limit, &user(1), settled)).unwrap();
    assert_eq!((settled.refunded, settled.used), (6, 4));
}

#[test]
fn leases_have_a_bound_and_make_place_when_they_are_cold() {
    let here = QuotaLease::with_leases(Memory::default(), EAGER, 16);
    let limit = leased(&fixed("core", 1_000));
    for number in 0..1_000 {
        for id in 0..3 {
            at_once(apply_one(&here, NOW, &limit, &user(number), take(1, id))).unwrap();
        }
    }
    assert!(here.held() <= here.capacity() && here.capacity() == 16);
    for _ in 0..20 {
        at_once(here.sweep(NOW));
    }
    assert_eq!(here.held(), 0);
    let counts = here.counts();
    assert_eq!(counts.units_taken - counts.units_returned, 2 * counts.taken);
}

#[test]
fn a_sweep_refunds_a_bounded_number_of_leases_and_the_next_one_the_rest() {
    const LEFT: usize = 10;
    let here = QuotaLease::new(Faulty::new(), EAGER);
    let limit = leased(&fixed("core", 1_000));
    for number in 0..(MAX_REFUNDS_PER_SWEEP + LEFT) as u64 {
        for id in 0..3 {
            at_once(apply_one(&here, NOW, &limit, &user(number), take(1, id))).unwrap();
        }
    }
    // Each lease has 6 unused units, and none of them is refunded right after it was used.
    at_once(here.sweep(NOW));
    assert_eq!(here.counts().units_returned, 0);
    for refunds in [MAX_REFUNDS_PER_SWEEP, LEFT, 0] {
        let (returned, calls) = (here.counts().units_returned, here.store().calls());
        at_once(here.sweep(NOW));
        assert_eq!(here.counts().units_returned - returned, 6 * refunds as u64);
        assert_eq!(here.store().calls() - calls, refunds.div_ceil(64), "64 refunds in a call");
    }
}

#[test]
fn a_subject_that_is_too_long_has_no_lease() {
    // A longer value would be hashed, so the subject has several values.
    let of = |bytes: usize| {
        let value = [b'x'; 100];
        let values = [100; 9].into_iter().chain([bytes]);
        let pairs = values.map(|bytes| ("user", Value::Clear(&value[..bytes])));
        Subject::new(pairs, &key())
    };
    let others = of(0).as_bytes().len();
    for (bytes, calls, leases) in [(MAX_SUBJECT_BYTES, 2, 1), (MAX_SUBJECT_BYTES + 1, 9, 0)] {
        let here = QuotaLease::new(Faulty::new(), EAGER);
        let (limit, subject) = (leased(&fixed("core", 1_000)), of(bytes - others));
        assert_eq!(subject.as_bytes().len(), bytes);
        for id in 0..9 {
            let taken = at_once(apply_one(&here, NOW, &limit, &subject, take(1, id))).unwrap();
            assert_eq!((taken.admission, taken.used), (Admission::Now, id as u64 + 1));
        }
        assert_eq!((here.store().calls(), here.held()), (calls, leases), "{bytes}");
    }
}

#[test]
fn all_is_refunded_before_the_end() {
    let (here, store, limit, _) = with_lease(1_000);
    at_once(here.refund_all(NOW));
    assert_eq!((used(&store, &limit), here.counts().units_returned), (3, 6));
}

#[test]
fn a_store_that_stops_reading_back_keeps_the_units_till_the_window_is_over() {
    let (here, store, limit, _) = with_lease(1_000);
    store.usually(Trouble::Lost(StoreError::Unavailable));
    at_once(here.sweep(NOW));
    at_once(here.sweep(NOW));
    store.usually(Trouble::None);
    assert_eq!((here.counts().units_lost, used(&store, &limit)), (6, 9));
    let over = NOW.after(WINDOW);
    let reading: Reading = at_once(apply_one(&here, over, &limit, &user(1), take(1, 9))).unwrap();
    assert_eq!(reading.used, 1);
}
