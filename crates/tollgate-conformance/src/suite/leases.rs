//! Test cases for permits. A permit is held until it is released or expires, and a renewal extends
//! the permit.

use tollgate_core::{Admission, ChargePosition, Store};

use super::scene::{Scene, concurrency, fixed, moment};

pub(super) async fn check<S: Store>(store: &S, prefix: &str) {
    ended_leases_are_free(store, prefix).await;
    renewed_leases_are_held(store, prefix).await;
    refunded_permits_are_free(store, prefix).await;
    only_concurrency_has_leases(store, prefix).await;
}

async fn ended_leases_are_free<S: Store>(store: &S, prefix: &str) {
    let scene = Scene::new(store, prefix, "lease-ends", concurrency(2, 1_000));
    scene.charge(0, 1, 1).await;
    scene.charge(300, 1, 2).await;
    assert_eq!(scene.charge(999, 1, 3).await.admission, Admission::At(moment(1_000)));
    let third = scene.charge(1_000, 1, 3).await;
    assert_eq!((third.admission, third.used), (Admission::Now, 2));
    assert_eq!(third.fits_again, Admission::At(moment(1_300)));
    assert_eq!(scene.renew(1_000, 1).await.admission, Admission::Never, "the first is over");
}

async fn renewed_leases_are_held<S: Store>(store: &S, prefix: &str) {
    let scene = Scene::new(store, prefix, "lease-renewed", concurrency(1, 1_000));
    scene.charge(0, 1, 1).await;
    for at in [900, 1_800, 2_700] {
        assert_eq!(scene.renew(at, 1).await.admission, Admission::Now, "at {at}");
        assert_eq!(
            scene.charge(at, 1, 2).await.admission,
            Admission::At(moment(at + 1_000)),
            "at {at}"
        );
    }
    assert_eq!(scene.renew(3_700, 1).await.admission, Admission::Never, "it ran out");
    assert_eq!(scene.charge(3_700, 1, 2).await.admission, Admission::Now);
}

async fn refunded_permits_are_free<S: Store>(store: &S, prefix: &str) {
    let scene = Scene::new(store, prefix, "lease-given-back", concurrency(3, 1_000));
    for id in 1..=3 {
        scene.charge(0, 1, id).await;
    }
    assert_eq!(scene.refund(10, 1, ChargePosition::default(), 2).await, 1);
    assert_eq!(scene.refund(10, 1, ChargePosition::default(), 2).await, 0, "it is gone");
    assert_eq!(
        scene.charge(10, 2, 4).await.admission,
        Admission::At(moment(1_000)),
        "one is free, not two"
    );
    assert_eq!(scene.charge(10, 1, 5).await.used, 3);
}

async fn only_concurrency_has_leases<S: Store>(store: &S, prefix: &str) {
    let scene = Scene::new(store, prefix, "no-lease", fixed(2, 1_000));
    scene.charge(0, 1, 1).await;
    let reading = scene.renew(10, 1).await;
    assert_eq!((reading.admission, reading.used), (Admission::Never, 1));
}
