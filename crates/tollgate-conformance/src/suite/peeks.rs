//! Test cases for peeks. A peek returns the answer that a charge would get, and charges nothing.

use tollgate_core::{Admission, Charge, Limit, Operation, Store};

use super::scene::{Scene, apply, charge, every, fixed, peek, subject};

pub(super) async fn check<S: Store>(store: &S, prefix: &str) {
    looks_tell_what_a_take_would_do(store, prefix).await;
    looks_stand_each_for_itself(store, prefix).await;
}

async fn looks_tell_what_a_take_would_do<S: Store>(store: &S, prefix: &str) {
    for (name, algorithm) in every(5, 1_000) {
        let scene = Scene::new(store, prefix, &format!("look-{name}"), algorithm);
        for (id, (at, units)) in (1..).zip([(0, 2), (250, 3), (250, 1), (600, 6), (1_300, 1)]) {
            let status = scene.peek(at).await;
            let seen = scene.apply(at, peek(units)).await;
            let again = scene.apply(at, peek(units)).await;
            assert_eq!(seen, again, "{name}: a look changes nothing, not even for a look");
            assert_eq!(
                (seen.used, seen.full_reset_at),
                (status.used, status.full_reset_at),
                "{name}"
            );
            assert_eq!((seen.fits_again, seen.refunded), (seen.admission, 0), "{name}");
            let taken = scene.charge(at, units, id).await;
            assert_eq!(seen.admission, taken.admission, "{name}: {units} at {at}");
        }
    }
}

/// Checks that peeks and charges in one call are independent: a peek that does not fit does not
/// make the call's charges fail, and a refused charge does not change the result of a peek.
async fn looks_stand_each_for_itself<S: Store>(store: &S, prefix: &str) {
    for (name, algorithm) in every(5, 1_000) {
        let subject = subject(prefix, &format!("look-beside-{name}"));
        let taken = Limit::new("taken", algorithm).expect("a name");
        let seen = Limit::new("seen", fixed(1, 60_000)).expect("a name");
        let charge_on =
            |limit, operation: Operation| Charge { limit, subject: &subject, operation };
        let beside = [charge_on(&taken, charge(3, 1)), charge_on(&seen, peek(2))];
        let first = apply(store, 0, &beside).await;
        assert_eq!((first[0].admission, first[0].used), (Admission::Now, 3), "{name}");
        assert_eq!((first[1].admission, first[1].used), (Admission::Never, 0), "{name}");
        let refused = [charge_on(&seen, peek(1)), charge_on(&taken, charge(3, 2))];
        let second = apply(store, 0, &refused).await;
        assert_eq!((second[0].admission, second[0].used), (Admission::Now, 0), "{name}");
        assert_ne!(second[1].admission, Admission::Now, "{name}");
        assert_eq!(second[1].used, 3, "{name}: nothing was charged");
    }
}
