//! Refunds: into where they were taken from, once, and nowhere else.

use tollgate_core::{Fit, Store};

use super::scene::{START, Scene, every};

pub(super) async fn check<S: Store>(store: &S, prefix: &str) {
    given_back_once(store, prefix).await;
    not_into_a_later_window(store, prefix).await;
    what_was_never_charged(store, prefix).await;
}

async fn given_back_once<S: Store>(store: &S, prefix: &str) {
    for (name, algorithm) in every(5, 1_000) {
        let scene = Scene::new(store, prefix, &format!("refund-{name}"), algorithm);
        scene.take(0, 2, 1).await;
        let mark = scene.take(0, 3, 2).await.mark;
        assert_ne!(scene.take(0, 1, 3).await.fit, Fit::Now, "{name}");
        assert_eq!(scene.refund(0, 3, mark, 2).await, 3, "{name}");
        assert_eq!(scene.refund(0, 3, mark, 2).await, 0, "{name}: asked again");
        assert_eq!(scene.peek(0).await.used, 2, "{name}");
        assert_eq!(scene.take(0, 3, 4).await.fit, Fit::Now, "{name}");
        assert_eq!(scene.refund(0, 3, mark, 2).await, 0, "{name}: asked a third time");
        assert_eq!(scene.peek(0).await.used, 5, "{name}");
    }
}

async fn not_into_a_later_window<S: Store>(store: &S, prefix: &str) {
    for (name, algorithm) in every(5, 1_000) {
        let scene = Scene::new(store, prefix, &format!("late-refund-{name}"), algorithm);
        let first = scene.take(0, 5, 1).await;
        let over = first.whole_at.as_millis() - START;
        assert_eq!(scene.take(over, 5, 2).await.fit, Fit::Now, "{name}: a new window");
        assert_eq!(scene.refund(over, 5, first.mark, 1).await, 0, "{name}: its window is over");
        assert_eq!(scene.peek(over).await.used, 5, "{name}");
    }
}

async fn what_was_never_charged<S: Store>(store: &S, prefix: &str) {
    for (name, algorithm) in every(5, 1_000) {
        let charged = Scene::new(store, prefix, &format!("charged-{name}"), algorithm);
        let mark = charged.take(0, 5, 1).await.mark;
        let other = Scene::new(store, prefix, &format!("uncharged-{name}"), algorithm);
        assert_eq!(other.refund(0, 5, mark, 1).await, 0, "{name}: never charged");
        assert_eq!(other.peek(0).await.used, 0, "{name}");
        assert_eq!(charged.peek(0).await.used, 5, "{name}: another subject");
    }
}
