//! Test cases with several limits or several subjects in one call.

use tollgate_core::{Admission, Charge, Limit, Store};

use super::scene::{Scene, apply, charge, every, fixed, subject};

pub(super) async fn check<S: Store>(store: &S, prefix: &str) {
    all_or_nothing(store, prefix).await;
    more_limits_than_fit_inline(store, prefix).await;
    subjects_do_not_meet(store, prefix).await;
    limits_of_one_subject_do_not_meet(store, prefix).await;
}

/// Checks that no limit is charged if one limit refuses, and that the readings show which limit
/// refused.
async fn all_or_nothing<S: Store>(store: &S, prefix: &str) {
    for (name, algorithm) in every(5, 1_000) {
        let subject = subject(prefix, &format!("all-or-nothing-{name}"));
        let wide = Limit::new("wide", algorithm).expect("a name");
        let narrow = Limit::new("narrow", fixed(1, 60_000)).expect("a name");
        let charge = |limit, id| Charge { limit, subject: &subject, operation: charge(1, id) };
        let both = |id| [charge(&wide, id), charge(&narrow, id)];
        let first = apply(store, 0, &both(1)).await;
        assert!(first.all_admitted(), "{name}: {first:?}");
        let second = apply(store, 0, &both(2)).await;
        assert_eq!(second[0].admission, Admission::Now, "{name} itself admits");
        assert_ne!(second[1].admission, Admission::Now, "narrow refuses");
        assert_eq!((second[0].used, second[1].used), (1, 1), "{name}: nothing was charged");
        let third = apply(store, 0, &[charge(&wide, 3)]).await;
        assert_eq!(third[0].used, 2, "{name} was charged once before");
    }
}

async fn more_limits_than_fit_inline<S: Store>(store: &S, prefix: &str) {
    let subject = subject(prefix, "nine");
    let limits: Vec<_> = (1..=9)
        .map(|quota| Limit::new(&format!("quota-{quota}"), fixed(quota, 1_000)).expect("a name"))
        .collect();
    let charges: Vec<_> = limits
        .iter()
        .map(|limit| Charge { limit, subject: &subject, operation: charge(1, 1) })
        .collect();
    let admitted = apply(store, 0, &charges).await;
    assert!(admitted.all_admitted() && admitted.iter().all(|reading| reading.used == 1));
    let refused = apply(store, 0, &charges).await;
    let refusing = refused.iter().filter(|reading| reading.admission != Admission::Now).count();
    assert_eq!(refusing, 1, "only the quota of 1 is used up");
    assert!(refused.iter().all(|reading| reading.used == 1));
}

async fn subjects_do_not_meet<S: Store>(store: &S, prefix: &str) {
    for case in ["a", "a\0", "A", "a b", "a,b", "{a}", "a\n", ""] {
        let scene = Scene::new(store, prefix, case, fixed(1, 1_000));
        assert_eq!(
            scene.charge(0, 1, 1).await.admission,
            Admission::Now,
            "{case:?} was never charged"
        );
        assert_ne!(scene.charge(0, 1, 2).await.admission, Admission::Now, "{case:?} is used up");
    }
}

async fn limits_of_one_subject_do_not_meet<S: Store>(store: &S, prefix: &str) {
    let subject = subject(prefix, "limits");
    for name in ["a", "ab", "a.b", "a-b"] {
        let limit = Limit::new(name, fixed(1, 1_000)).expect("a name");
        let charge = Charge { limit: &limit, subject: &subject, operation: charge(1, 1) };
        assert_eq!(apply(store, 0, &[charge]).await[0].used, 1, "{name} was never charged");
    }
}
