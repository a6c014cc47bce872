//! Tests that every answer arrives by the deadline.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;
use tollgate::model::StoreError;
use tollgate_stores::Deadline;

use crate::faulty::{Faulty, Trouble};
use crate::setup::{NOW, apply_one, fixed, take, user};

#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_is_closed_in_time() {
    let store = Deadline::new(Faulty::new());
    let (limit, subject) = (fixed("core", 5), user(1));
    assert_eq!(apply_one(&store, NOW, &limit, &subject, take(1, 1)).await.unwrap().used, 1);
    store.store().next([Trouble::Held(Arc::new(Semaphore::new(0)))]);
    let started = Instant::now();
    let answer = apply_one(&store, NOW, &limit, &subject, take(1, 2)).await;
    assert_eq!(answer, Err(StoreError::TimedOut));
    assert!(started.elapsed() >= tollgate_stores::deadline::DEFAULT_BUDGET);
    assert!(started.elapsed() <= store.max_wait());
    assert_eq!(store.deadline_misses(), 1);
}

#[tokio::test(start_paused = true)]
async fn answers_in_time_and_errors_pass_unchanged() {
    let budget = Duration::from_millis(3);
    let store = Deadline::new(Faulty::new()).with_budget(budget);
    let (limit, subject) = (fixed("core", 5), user(1));
    let gate = Arc::new(Semaphore::new(0));
    store.store().next([
        Trouble::Held(Arc::clone(&gate)),
        Trouble::Lost(StoreError::Full),
        Trouble::Unheard(StoreError::Corrupt),
    ]);
    let opens = async {
        tokio::time::sleep(budget - Duration::from_millis(1)).await;
        gate.add_permits(1);
    };
    let (late, ()) = tokio::join!(apply_one(&store, NOW, &limit, &subject, take(1, 1)), opens);
    assert_eq!(late.unwrap().used, 1);
    for (id, error) in [(2, StoreError::Full), (3, StoreError::Corrupt)] {
        assert_eq!(apply_one(&store, NOW, &limit, &subject, take(1, id)).await, Err(error));
    }
    assert_eq!(apply_one(&store, NOW, &limit, &subject, take(0, 4)).await.unwrap().used, 2);
    assert_eq!(store.deadline_misses(), 0);
}
