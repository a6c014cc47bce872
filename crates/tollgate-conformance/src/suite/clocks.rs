//! Test cases with clocks that step back, and with state from times in the future that no correct
//! clock can have reached.

use tollgate_core::time::DEFAULT_SKEW_MAX;
use tollgate_core::{Admission, Store, StoredState};

use super::scene::{Scene, every};

pub(super) async fn check<S: Store>(store: &S, prefix: &str) {
    time_never_runs_backwards(store, prefix).await;
    an_impossible_future_counts_as_nothing(store, prefix).await;
}

/// Checks that a caller with a slow clock does not open a second window.
async fn time_never_runs_backwards<S: Store>(store: &S, prefix: &str) {
    for (name, algorithm) in every(2, 1_000) {
        let scene = Scene::new(store, prefix, &format!("back-{name}"), algorithm);
        scene.charge(10_000, 1, 1).await;
        let behind = scene.charge(9_000, 1, 2).await;
        assert_eq!((behind.admission, behind.used), (Admission::Now, 2), "{name}");
        assert_ne!(scene.charge(8_000, 1, 3).await.admission, Admission::Now, "{name}");
        assert_ne!(scene.charge(10_000, 1, 4).await.admission, Admission::Now, "{name}");
    }
}

async fn an_impossible_future_counts_as_nothing<S: Store>(store: &S, prefix: &str) {
    for (name, algorithm) in every(1, 1_000) {
        let scene = Scene::new(store, prefix, &format!("future-{name}"), algorithm);
        let future = 1_000 * 3_600_000;
        scene.charge(future, 1, 1).await;
        let near = future - DEFAULT_SKEW_MAX.get();
        assert_ne!(
            scene.charge(near, 1, 2).await.admission,
            Admission::Now,
            "{name}: within the skew"
        );
        let peek = scene.peek(0).await;
        assert_eq!(
            (peek.admission, peek.found),
            (Admission::Now, StoredState::Discarded),
            "{name}"
        );
        let reading = scene.charge(0, 1, 3).await;
        assert_eq!((reading.admission, reading.used), (Admission::Now, 1), "{name}");
        assert_eq!(reading.found, StoredState::Discarded, "{name}");
        assert_ne!(scene.charge(0, 1, 4).await.admission, Admission::Now, "{name}: counted anew");
    }
}
