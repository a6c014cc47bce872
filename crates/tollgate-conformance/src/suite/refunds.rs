//! Test cases for refunds. Units return only to the windows that were charged, and only once.

use tollgate_core::algo::{SlidingLog, SlidingWindow};
use tollgate_core::{
    Admission, Algorithm, Charge, ChargeId, Cost, Deduplication, Millis, Operation, Store,
};

use super::scene::{START, Scene, apply, every};

pub(super) async fn check<S: Store>(store: &S, prefix: &str) {
    refunded_once(store, prefix).await;
    not_into_a_later_window(store, prefix).await;
    what_was_never_charged(store, prefix).await;
    to_two_places_in_one_call(store, prefix).await;
}

async fn refunded_once<S: Store>(store: &S, prefix: &str) {
    for (name, algorithm) in every(5, 1_000) {
        let scene = Scene::new(store, prefix, &format!("refund-{name}"), algorithm);
        scene.charge(0, 2, 1).await;
        let position = scene.charge(0, 3, 2).await.position;
        assert_ne!(scene.charge(0, 1, 3).await.admission, Admission::Now, "{name}");
        assert_eq!(scene.refund(0, 3, position, 2).await, 3, "{name}");
        assert_eq!(scene.refund(0, 3, position, 2).await, 0, "{name}: asked again");
        assert_eq!(scene.peek(0).await.used, 2, "{name}");
        assert_eq!(scene.charge(0, 3, 4).await.admission, Admission::Now, "{name}");
        assert_eq!(scene.refund(0, 3, position, 2).await, 0, "{name}: asked a third time");
        assert_eq!(scene.peek(0).await.used, 5, "{name}");
    }
}

async fn not_into_a_later_window<S: Store>(store: &S, prefix: &str) {
    for (name, algorithm) in every(5, 1_000) {
        let scene = Scene::new(store, prefix, &format!("late-refund-{name}"), algorithm);
        let first = scene.charge(0, 5, 1).await;
        let over = first.full_reset_at.as_millis() - START;
        assert_eq!(
            scene.charge(over, 5, 2).await.admission,
            Admission::Now,
            "{name}: a new window"
        );
        assert_eq!(scene.refund(over, 5, first.position, 1).await, 0, "{name}: its window is over");
        assert_eq!(scene.peek(over).await.used, 5, "{name}");
    }
}

async fn what_was_never_charged<S: Store>(store: &S, prefix: &str) {
    for (name, algorithm) in every(5, 1_000) {
        let charged = Scene::new(store, prefix, &format!("charged-{name}"), algorithm);
        let position = charged.charge(0, 5, 1).await.position;
        let other = Scene::new(store, prefix, &format!("uncharged-{name}"), algorithm);
        assert_eq!(other.refund(0, 5, position, 1).await, 0, "{name}: never charged");
        assert_eq!(other.peek(0).await.used, 0, "{name}");
        assert_eq!(charged.peek(0).await.used, 5, "{name}: another subject");
    }
}

/// Checks that one call can refund charges in two windows of one limit, and that each charge is
/// refunded separately and once.
async fn to_two_places_in_one_call<S: Store>(store: &S, prefix: &str) {
    let (window, block) = (Millis::new(1_000), Millis::new(250));
    let blocks = SlidingWindow::new(10, window, block).expect("a limit");
    let log = SlidingLog::new(10, window).expect("a limit");
    for (name, algorithm) in
        [("blocks", Algorithm::SlidingWindow(blocks)), ("log", Algorithm::SlidingLog(log))]
    {
        for deduplication in [Deduplication::Unneeded, Deduplication::ById] {
            let case = format!("two-places-{name}-{deduplication:?}");
            let scene = Scene::new(store, prefix, &case, algorithm);
            let first = scene.charge(0, 2, 1).await.position;
            scene.charge(0, 1, 2).await;
            let second = scene.charge(300, 4, 1).await.position;
            assert_ne!(first, second, "{case}");
            let refund = |units, position, id| {
                let cost = Cost::new(units).expect("a few units");
                let operation =
                    Operation::Refund { cost, position, id: ChargeId(id), deduplication };
                Charge { limit: &scene.limit, subject: &scene.subject, operation }
            };
            let both = [refund(2, first, 1), refund(4, second, 3)];
            let given = apply(store, 300, &both).await;
            assert_eq!([given[0].refunded, given[1].refunded], [2, 4], "{case}");
            assert_eq!((given[1].used, scene.peek(300).await.used), (1, 1), "{case}");
            if deduplication == Deduplication::ById {
                let again = apply(store, 300, &both).await;
                assert!(again.iter().all(|reading| reading.refunded == 0), "{case}: again");
            }
        }
    }
}
