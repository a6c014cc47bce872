//! The test cases that are run with every algorithm.

use tollgate_core::algo::{FixedWindow, Schedule};
use tollgate_core::{Admission, Algorithm, Refusals, Store};

use super::scene::{START, Scene, every, fixed, moment};
use crate::schedule::{EARLIER_UNEVEN_SECONDS, UNEVEN_SECONDS};

pub(super) async fn check<S: Store>(store: &S, prefix: &str) {
    exactly_the_quota(store, prefix).await;
    exactly_the_wait(store, prefix).await;
    peeks_change_nothing(store, prefix).await;
    never(store, prefix).await;
    refusals_are_free_or_counted(store, prefix).await;
    one_reset(store, prefix).await;
    another_algorithm(store, prefix).await;
    scheduled_windows(store, prefix).await;
    another_schedule(store, prefix).await;
}

async fn exactly_the_quota<S: Store>(store: &S, prefix: &str) {
    for (name, algorithm) in every(5, 1_000) {
        let scene = Scene::new(store, prefix, &format!("quota-{name}"), algorithm);
        for id in 1..=5 {
            let reading = scene.charge(0, 1, id).await;
            assert_eq!((reading.admission, reading.used), (Admission::Now, id as u64), "{name}");
            assert_eq!(reading.fits_again == Admission::Now, id < 5, "{name}: {reading:?}");
        }
        let refused = scene.charge(0, 1, 6).await;
        assert!(matches!(refused.admission, Admission::At(_)), "{name}: {refused:?}");
        assert_eq!(refused.used, 5, "{name}");
    }
}

/// Checks that a refused charge is admitted after the reported wait, and is still refused one
/// millisecond earlier.
async fn exactly_the_wait<S: Store>(store: &S, prefix: &str) {
    for (name, algorithm) in every(3, 1_000) {
        for cost in 1..=3 {
            let case = format!("wait-{name}-{cost}");
            let scene = Scene::new(store, prefix, &case, algorithm);
            scene.charge(100, 1, 1).await;
            scene.charge(350, 2, 2).await;
            let Admission::At(ready) = scene.charge(400, cost, 3).await.admission else {
                panic!("{case} is refused for a time")
            };
            let wait = ready.as_millis() - START;
            let early = scene.charge(wait - 1, cost, 4).await;
            assert_eq!(early.admission, Admission::At(ready), "{case}: one millisecond early");
            assert_eq!(
                scene.charge(wait, cost, 5).await.admission,
                Admission::Now,
                "{case}: in time"
            );
        }
    }
}

async fn peeks_change_nothing<S: Store>(store: &S, prefix: &str) {
    for (name, algorithm) in every(1, 1_000) {
        let scene = Scene::new(store, prefix, &format!("peek-{name}"), algorithm);
        for at in [0, 10, 20] {
            let peek = scene.peek(at).await;
            assert_eq!((peek.admission, peek.used), (Admission::Now, 0), "{name}");
        }
        assert_eq!(scene.charge(30, 1, 1).await.admission, Admission::Now, "{name}");
        let (one, other) = (scene.peek(40).await, scene.peek(40).await);
        assert!(one.admission != Admission::Now && one.used == 1, "{name}: {one:?}");
        assert_eq!(
            (one.admission, one.used, one.full_reset_at),
            (other.admission, other.used, other.full_reset_at)
        );
    }
}

/// Checks that a cost above the capacity is refused permanently and changes nothing.
async fn never<S: Store>(store: &S, prefix: &str) {
    for (name, algorithm) in every(5, 1_000) {
        let scene = Scene::new(store, prefix, &format!("never-{name}"), algorithm);
        assert_eq!(scene.charge(0, 6, 1).await.admission, Admission::Never, "{name}");
        assert_eq!(scene.charge(0, 5, 2).await.admission, Admission::Now, "{name}");
        assert_eq!(scene.charge(0, (1 << 53) - 1, 3).await.admission, Admission::Never, "{name}");
    }
}

/// Checks that a refused charge takes nothing, or all remaining units if refusals count.
async fn refusals_are_free_or_counted<S: Store>(store: &S, prefix: &str) {
    for refusals in [Refusals::Free, Refusals::Counted] {
        for (name, algorithm) in every(2, 1_000) {
            let case = format!("refusals-{refusals:?}-{name}");
            let mut scene = Scene::new(store, prefix, &case, algorithm);
            if name == "concurrency" {
                continue;
            }
            scene.limit = scene.limit.with_refusals(refusals).expect("not in flight");
            scene.charge(0, 1, 1).await;
            let refused = scene.charge(0, 2, 2).await;
            assert!(matches!(refused.admission, Admission::At(_)), "{case}: {refused:?}");
            let peek = scene.peek(0).await;
            match refusals {
                Refusals::Free => {
                    assert_eq!((peek.admission, peek.used), (Admission::Now, 1), "{case}");
                }
                Refusals::Counted => {
                    assert!(peek.used >= 2 && peek.admission != Admission::Now, "{case}");
                }
            }
        }
    }
}

async fn one_reset<S: Store>(store: &S, prefix: &str) {
    let scene = Scene::new(store, prefix, "one-reset", fixed(3, 1_000));
    let reset = scene.charge(7, 1, 1).await.full_reset_at;
    assert_eq!(reset, moment(1_007));
    for (at, id) in [(8, 2), (500, 3), (900, 4), (1_006, 5)] {
        assert_eq!(scene.charge(at, 1, id).await.full_reset_at, reset, "at {at}");
    }
    let next = scene.charge(1_007, 1, 6).await;
    assert_eq!((next.used, next.full_reset_at), (1, moment(2_007)));
}

/// Checks that the state of the old algorithm counts as empty after a limit's algorithm is changed.
async fn another_algorithm<S: Store>(store: &S, prefix: &str) {
    let all = every(1, 1_000);
    for (before, old) in all {
        for (after, new) in all.into_iter().filter(|(name, _)| *name != before) {
            let same_kind = ["fixed-window", "calendar"];
            if same_kind.contains(&before) && same_kind.contains(&after) {
                continue;
            }
            let case = format!("{before}-then-{after}");
            let mut scene = Scene::new(store, prefix, &case, old);
            assert_eq!(scene.charge(0, 1, 1).await.used, 1);
            scene.limit = tollgate_core::Limit::new("suite", new).expect("a name");
            let reading = scene.charge(1, 1, 2).await;
            assert_eq!((reading.admission, reading.used), (Admission::Now, 1), "{case}");
            assert_ne!(scene.charge(1, 1, 3).await.admission, Admission::Now, "{case}");
        }
    }
}

fn scheduled(quota: u64, schedule: Schedule) -> Algorithm {
    Algorithm::FixedWindow(FixedWindow::scheduled(quota, schedule).expect("it fits"))
}

/// Checks that every window of a schedule has the full quota, regardless of its length. Also checks
/// that a refund after the end of its window has no effect.
async fn scheduled_windows<S: Store>(store: &S, prefix: &str) {
    let scene = Scene::new(store, prefix, "scheduled", scheduled(3, UNEVEN_SECONDS));
    let (mut at, mut id) = (0, 0);
    for _ in 0..7 {
        let window = UNEVEN_SECONDS.window_at(moment(at));
        let last = window.end.as_millis() - START - 1;
        let mut position = None;
        for (time, used) in [(at, 1), (last, 2), (last, 3)] {
            id += 1;
            let reading = scene.charge(time, 1, id).await;
            let actual = (reading.admission, reading.used, reading.full_reset_at);
            assert_eq!(actual, (Admission::Now, used, window.end), "at {time}");
            position = Some(reading.position);
        }
        let refused = scene.charge(last, 1, id + 1).await;
        assert_eq!(refused.admission, Admission::At(window.end), "at {last}");
        let peek = scene.peek(last + 1).await;
        let next = UNEVEN_SECONDS.window_at(window.end);
        assert_eq!((peek.used, peek.full_reset_at), (0, next.end), "at the end");
        let position = position.expect("three charges");
        assert_eq!(scene.refund(last + 1, 1, position, id).await, 0, "after the end");
        at = last + 1;
        id += 1;
    }
}

/// Checks that an open window keeps its end when the schedule changes, and that the next window
/// ends as the new schedule defines.
async fn another_schedule<S: Store>(store: &S, prefix: &str) {
    let mut scene = Scene::new(store, prefix, "another-schedule", scheduled(3, UNEVEN_SECONDS));
    let open = UNEVEN_SECONDS.window_at(moment(0));
    assert_eq!(scene.charge(0, 2, 1).await.full_reset_at, open.end);
    let new = scheduled(3, EARLIER_UNEVEN_SECONDS);
    scene.limit = tollgate_core::Limit::new("suite", new).expect("a name");
    let end = open.end.as_millis() - START;
    let kept = scene.charge(end - 1, 1, 2).await;
    assert_eq!((kept.used, kept.full_reset_at), (3, open.end));
    let next = scene.charge(end, 1, 3).await;
    let expected = EARLIER_UNEVEN_SECONDS.window_at(open.end).end;
    assert_eq!((next.used, next.full_reset_at), (1, expected));
}
