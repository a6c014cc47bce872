//! A shadow store. The tests check that differences are counted and that no caller waits for the
//! shadow store.

use std::num::NonZeroU32;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tollgate::model::Percent;
use tollgate::model::{Admission, Millis, Store, StoreError, Timestamp};
use tollgate::rollout_percentage::RolloutPercentage;
use tollgate::store::Memory;
use tollgate_conformance::trace::{Call, Trace, run_trace};
use tollgate_stores::shadow::{DifferenceKind, Differences, MAX_EXAMPLES, MAX_WAITING};
use tollgate_stores::{Fallback, LocalShare, Shadow};

use crate::faulty::{Faulty, Trouble};
use crate::setup::{NOW, WINDOW, apply_one, fixed, key, refund, take, until, user};

fn shadowed<A, B: Store + 'static>(store: A, shadow: B) -> Shadow<A, B> {
    Shadow::start(&key(), RolloutPercentage::new(Percent::ALL), store, shadow)
}

/// Waits until this number of charges is compared. Returns the counts.
async fn compared<A, B>(store: &Shadow<A, B>, charges: u64) -> Differences {
    until(|| store.differences().compared >= charges).await;
    store.differences()
}

#[tokio::test]
async fn stores_that_are_alike_differ_in_nothing() {
    let store = shadowed(Memory::default(), Memory::default());
    for seed in 0..80 {
        run_trace(&store, &of_one_subject(seed), "shadow").await.unwrap();
        let mut compared = None;
        while compared != Some(store.differences().compared) {
            compared = Some(store.differences().compared);
            for _ in 0..1_000 {
                tokio::task::yield_now().await;
            }
        }
    }
    let differences = store.differences();
    assert!(differences.compared > 1_000, "{differences:?}");
    assert_eq!(
        (differences.decision, differences.remaining, differences.reset),
        (0, 0, 0),
        "{:?}",
        differences.examples
    );
    assert_eq!((differences.unanswered, differences.skipped), (0, 0));
}

/// Returns the operations on the first subject in the random trace of `seed`. The shadow store
/// receives the operations of one subject in the deciding store's order, but not the operations of
/// different subjects. With several subjects, the time of one operation could end the state of
/// another subject.
fn of_one_subject(seed: u64) -> Trace {
    let mut trace = Trace::random(seed);
    trace.ops.retain_mut(|op| match &mut op.call {
        Call::Charge(takes) | Call::Peek(takes) | Call::Reserve(takes, _) => {
            takes.retain(|take| take.subject == 0);
            !takes.is_empty()
        }
        Call::Reset(take) => take.subject == 0,
        Call::Refund(..) | Call::Renew(_) | Call::Extend(..) | Call::Settle(..) => true,
    });
    trace
}

#[tokio::test]
async fn every_kind_of_difference_is_counted_by_its_gravest() {
    let (store, shadow) = (Memory::default(), Arc::new(Memory::default()));
    let limit = fixed("core", 2);
    let users = [user(1), user(2), user(3)];
    // Before the comparison starts, the shadow store charges one unit for the first user and two
    // units for the second user. The third user has no usage in the shadow store.
    apply_one(&shadow, NOW, &limit, &users[0], take(1, 1)).await.unwrap();
    apply_one(&shadow, NOW, &limit, &users[1], take(2, 2)).await.unwrap();
    let store = shadowed(store, Arc::clone(&shadow));
    for (subject, id) in users.iter().zip(10..) {
        apply_one(&store, NOW, &limit, subject, take(1, id)).await.unwrap();
    }
    let differences = compared(&store, 3).await;
    assert_eq!(
        (differences.decision, differences.remaining, differences.reset),
        (1, 1, 0),
        "{differences:?}"
    );
    let evaluation = differences
        .examples
        .iter()
        .find(|example| example.kind == DifferenceKind::Decision)
        .unwrap();
    assert_eq!((&*evaluation.limit, evaluation.store.admission), ("core", Admission::Now));
    assert_eq!((evaluation.store.used, evaluation.shadow.used, evaluation.at), (1, 2, NOW));
}

#[tokio::test]
async fn a_reset_of_another_moment_is_a_difference() {
    let (limit, subject) = (fixed("core", 5), user(1));
    let shadow = Arc::new(Memory::default());
    // The shadow store's window is open, but no unit of the window is used.
    let taken = apply_one(&shadow, NOW, &limit, &subject, take(1, 1)).await.unwrap();
    apply_one(&shadow, NOW, &limit, &subject, refund(1, 1, taken.position)).await.unwrap();
    let store = shadowed(Memory::default(), Arc::clone(&shadow));
    let later = NOW.after(Millis::new(7));
    apply_one(&store, later, &limit, &subject, take(0, 2)).await.unwrap();
    apply_one(&store, later, &limit, &subject, take(1, 3)).await.unwrap();
    let differences = compared(&store, 2).await;
    assert_eq!((differences.decision, differences.remaining, differences.reset), (0, 0, 1));
    let [example] = &differences.examples[..] else { panic!("{differences:?}") };
    assert_eq!(example.store.full_reset_at, later.after(WINDOW));
    assert_eq!(example.shadow.full_reset_at, NOW.after(WINDOW));
}

#[tokio::test]
async fn what_is_refunded_is_refunded_by_the_shadow_of_its_own() {
    let (limit, subject) = (fixed("core", 5), user(1));
    let shadow = Arc::new(Memory::default());
    // The shadow store's window ends at another time, so the deciding store's position does not
    // exist in the shadow store.
    let earlier = Timestamp::from_millis(NOW.as_millis() - 9);
    apply_one(&shadow, earlier, &limit, &subject, take(1, 1)).await.unwrap();
    let store = shadowed(Memory::default(), Arc::clone(&shadow));
    let taken = apply_one(&store, NOW, &limit, &subject, take(3, 2)).await.unwrap();
    apply_one(&store, NOW, &limit, &subject, refund(3, 2, taken.position)).await.unwrap();
    compared(&store, 2).await;
    assert_eq!(apply_one(&shadow, NOW, &limit, &subject, take(0, 0)).await.unwrap().used, 1);
    let unknown = refund(1, 77, taken.position);
    apply_one(&store, NOW, &limit, &subject, unknown).await.unwrap();
    until(|| store.differences().uncomparable == 1).await;
}

#[tokio::test]
async fn nobody_waits_for_a_shadow_that_hangs_and_what_waits_is_bounded() {
    let gate = Arc::new(Semaphore::new(0));
    let shadow = Faulty::new();
    shadow.usually(Trouble::Held(Arc::clone(&gate)));
    let store = shadowed(Memory::default(), shadow);
    let (limit, subject) = (fixed("core", 1_000_000), user(1));
    let calls = 2 * MAX_WAITING as u64;
    for id in 0..calls {
        apply_one(&store, NOW, &limit, &subject, take(1, id.into())).await.unwrap();
    }
    let skipped = store.differences().skipped;
    assert!(skipped >= MAX_WAITING as u64 - 1, "{skipped}");
    gate.add_permits(calls as usize);
    let differences = compared(&store, calls - skipped).await;
    assert_eq!(differences.compared + differences.skipped, calls);
}

#[tokio::test]
async fn a_shadow_without_an_answer_and_a_dial_at_nobody_cost_nothing() {
    let shadow = Faulty::new();
    shadow.usually(Trouble::Lost(StoreError::Unavailable));
    let store = shadowed(Memory::default(), shadow);
    let (limit, subject) = (fixed("core", 1_000), user(1));
    apply_one(&store, NOW, &limit, &subject, take(1, 1)).await.unwrap();
    until(|| store.differences().unanswered == 1).await;
    store.percentage().set(Percent::NONE);
    apply_one(&store, NOW, &limit, &subject, take(1, 2)).await.unwrap();
    store.percentage().set(Percent::ALL);
    apply_one(&store, NOW, &limit, &subject, take(1, 3)).await.unwrap();
    until(|| store.differences().unanswered == 2).await;
    assert_eq!(store.shadow().calls(), 2);
}

/// An answer of the shadow store's fallback does not count as an answer of the shadow store.
#[tokio::test]
async fn a_stand_in_of_the_shadow_is_no_answer_of_the_shadow() {
    let shadow = Faulty::new();
    shadow.usually(Trouble::Lost(StoreError::Unavailable));
    let share = LocalShare::new(Memory::default(), NonZeroU32::MIN);
    let store = shadowed(Memory::default(), Fallback::new(shadow, share));
    let (limit, subject) = (fixed("core", 5), user(1));
    for id in 0..8 {
        apply_one(&store, NOW, &limit, &subject, take(1, id)).await.unwrap();
    }
    until(|| store.differences().unanswered == 8).await;
    assert_eq!(store.differences().compared, 0);
}

#[tokio::test]
async fn examples_are_the_latest_and_do_not_pile_up() {
    let (limit, subject) = (fixed("core", 1_000), user(1));
    let shadow = Arc::new(Memory::default());
    apply_one(&shadow, NOW, &limit, &subject, take(1, 1)).await.unwrap();
    let store = shadowed(Memory::default(), Arc::clone(&shadow));
    let calls = MAX_EXAMPLES as u64 + 10;
    for id in 0..calls {
        apply_one(&store, NOW, &limit, &subject, take(1, id.into())).await.unwrap();
    }
    let differences = compared(&store, calls).await;
    assert_eq!((differences.remaining, differences.examples.len()), (calls, MAX_EXAMPLES));
    assert_eq!(differences.examples.last().map(|example| example.store.used), Some(calls));
}
