//! Test cases for resets of a subject. After a reset, the subject starts with its whole quota, and
//! other subjects are not affected.

use tollgate_core::{Admission, Operation, Store, StoredState};

use super::scene::{Scene, charge, every};

pub(super) async fn check<S: Store>(store: &S, prefix: &str) {
    for (name, algorithm) in every(5, 1_000) {
        let scene = Scene::new(store, prefix, &format!("forget-{name}"), algorithm);
        let other = Scene::new(store, prefix, &format!("remember-{name}"), algorithm);
        for scene in [&scene, &other] {
            scene.charge(0, 5, 1).await;
            assert_ne!(scene.charge(1, 1, 2).await.admission, Admission::Now, "{name}: used up");
        }
        let forgotten = scene.apply(2, Operation::Reset).await;
        assert_eq!((forgotten.used, forgotten.admission), (0, Admission::Now), "{name}");
        assert_eq!(forgotten.found, StoredState::Present, "{name}: what was there");
        let again = scene.apply(2, Operation::Reset).await;
        assert_eq!(
            (again.used, again.found),
            (0, StoredState::Missing),
            "{name}: nothing was there"
        );
        assert_eq!(
            scene.charge(3, 5, 3).await.admission,
            Admission::Now,
            "{name}: all of the quota is there"
        );
        assert_ne!(
            scene.apply(3, charge(1, 4)).await.admission,
            Admission::Now,
            "{name}: and no more than that"
        );
        assert_eq!(other.peek(3).await.used, 5, "{name}: another subject keeps what it used");
    }
}
