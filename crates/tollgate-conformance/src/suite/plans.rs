//! Test cases for counters that charges with different quotas share, such as the quotas of two
//! plans. Each charge is decided by its own quota, and no charge frees units that another charge
//! has counted.

use tollgate_core::{
    Admission, ChargePosition, Cost, Limit, Operation, Refusals, ReservationTerms, Store,
};
use tollgate_core::{Algorithm, ChargeId};

use super::scene::{Scene, every, moment};

/// The quota of the larger plan in these cases.
const LARGE: u64 = 6;
/// The quota of the smaller plan in these cases.
const SMALL: u64 = 2;

pub(super) async fn check<S: Store>(store: &S, prefix: &str) {
    no_charge_frees_units(store, prefix).await;
    no_plan_gets_more_than_its_quota(store, prefix).await;
}

/// The cases with reservations, for a store that supports reservations.
pub(super) async fn check_reservations<S: Store>(store: &S, prefix: &str) {
    settlements_keep_to_the_overdraft(store, prefix).await;
    no_charge_drops_reservations(store, prefix).await;
}

/// Returns a scene with the larger plan for each algorithm, for limits that count refusals and for
/// limits that do not, and the smaller plan of the same limit.
fn plans<'s, S: Store>(store: &'s S, prefix: &str, case: &str) -> Vec<(Scene<'s, S>, Limit)> {
    let mut scenes = Vec::new();
    for (name, algorithm) in every(LARGE, 1_000) {
        for refusals in [Refusals::Free, Refusals::Counted] {
            let case = format!("plans-{case}-{name}-{refusals:?}");
            let mut scene = Scene::new(store, prefix, &case, algorithm);
            let Ok(limit) = scene.limit.clone().with_refusals(refusals) else { continue };
            let small = limit.with_quota(SMALL, None).expect("a smaller quota");
            scene.limit = limit;
            scenes.push((scene, small));
        }
    }
    scenes
}

/// Checks that a charge of the smaller plan never lowers the used units of the larger plan, in the
/// same window and in the next window.
async fn no_charge_frees_units<S: Store>(store: &S, prefix: &str) {
    for (case, first, second) in [("same", 100, 200), ("next", 999, 1_100)] {
        for (mut large, small) in plans(store, prefix, case) {
            assert_eq!(large.charge(first, LARGE, 1).await.admission, Admission::Now);
            for id in 2..6 {
                let before = large.peek(second).await;
                let large_limit = std::mem::replace(&mut large.limit, small.clone());
                large.charge(second, 1, id).await;
                large.limit = large_limit;
                let after = large.peek(second).await;
                assert!(after.used >= before.used, "{case}: {before:?}, {after:?}: {small:?}");
            }
        }
    }
}

/// Checks that the larger plan is admitted exactly up to its quota after charges of the smaller plan
/// were refused. A refused charge that counts can use units of the larger plan.
async fn no_plan_gets_more_than_its_quota<S: Store>(store: &S, prefix: &str) {
    for (mut large, small) in plans(store, prefix, "quota") {
        let is_bucket = matches!(small.algorithm(), Algorithm::TokenBucket(_));
        let is_free = small.refusals() == Refusals::Free;
        let mut admitted = 0;
        for id in 1..=4 {
            admitted += u64::from(large.charge(0, 1, id).await.admission == Admission::Now);
        }
        assert_eq!(admitted, 4, "{small:?}");
        let large_limit = std::mem::replace(&mut large.limit, small.clone());
        for id in 5..=8 {
            let is_admitted = large.charge(0, 1, id).await.admission == Admission::Now;
            assert!(!is_admitted || is_bucket, "{small:?}");
            admitted += u64::from(is_admitted);
        }
        large.limit = large_limit;
        for id in 9..=16 {
            admitted += u64::from(large.charge(0, 1, id).await.admission == Admission::Now);
        }
        assert!(admitted == LARGE || admitted < LARGE && !is_free, "{admitted}: {small:?}");
    }
}

/// Checks that settlements together use at most the overdraft, although other charges follow the
/// reservations.
async fn settlements_keep_to_the_overdraft<S: Store>(store: &S, prefix: &str) {
    for (name, algorithm) in every(LARGE, 1_000) {
        let terms = ReservationTerms { overdraft: LARGE, ..ReservationTerms::default() };
        let mut scene = Scene::new(store, prefix, &format!("overdraft-{name}"), algorithm);
        let Ok(limit) = scene.limit.clone().with_reservation_terms(terms) else { continue };
        scene.limit = limit;
        for id in 1..=2 {
            reserve(&scene, id - 1, 1, id.into()).await;
        }
        for id in 3..=6_u8 {
            let reading = scene.charge(u64::from(id) - 1, 1, id.into()).await;
            assert_eq!(reading.admission, Admission::Now, "{name}");
        }
        assert_eq!(settle(&scene, 10, 1, 7).await, (Admission::Now, 6), "{name}");
        assert_eq!(settle(&scene, 11, 2, 7).await, (Admission::Now, 0), "{name}");
        assert_eq!(scene.peek(12).await.used, 2 * LARGE, "{name}");
    }
}

/// Checks that a reservation of the larger plan can be settled after a charge of the smaller plan.
async fn no_charge_drops_reservations<S: Store>(store: &S, prefix: &str) {
    for (mut large, small) in plans(store, prefix, "reserved") {
        if matches!(small.algorithm(), Algorithm::Concurrency(_)) {
            continue;
        }
        reserve(&large, 0, 3, 1).await;
        let large_limit = std::mem::replace(&mut large.limit, small.clone());
        large.charge(1, 1, 2).await;
        assert_eq!(large.peek(1).await.reserved, 3, "{small:?}");
        large.limit = large_limit;
        assert_eq!(large.peek(1).await.reserved, 3, "{small:?}");
        assert_eq!(settle(&large, 2, 1, 4).await, (Admission::Now, 1), "{small:?}");
    }
}

async fn reserve<S: Store>(scene: &Scene<'_, S>, at: u8, units: u64, id: u128) {
    let (cost, until) = (Cost::up_to(units), moment(900));
    let operation = Operation::Reserve { cost, id: ChargeId(id), until };
    assert_eq!(scene.apply(at.into(), operation).await.admission, Admission::Now);
}

/// Settles the reservation `id` at `units`. Returns the admission and the added units.
async fn settle<S: Store>(scene: &Scene<'_, S>, at: u64, id: u128, units: u64) -> (Admission, u64) {
    let (position, cost) = (ChargePosition::default(), Cost::up_to(units));
    let reading = scene.apply(at, Operation::Settle { id: ChargeId(id), position, cost }).await;
    (reading.admission, reading.added)
}
