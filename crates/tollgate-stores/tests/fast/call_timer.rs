//! Measured durations of calls.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tollgate::model::StoreError;
use tollgate_stores::{CallTimer, Deadline};

use crate::faulty::{Faulty, Trouble};
use crate::setup::{NOW, apply_one, fixed, take, user};

#[tokio::test(start_paused = true)]
async fn every_call_is_counted_once_whatever_becomes_of_it() {
    let store = CallTimer::new(Faulty::new());
    let (limit, subject) = (fixed("core", 5), user(1));
    assert_eq!(store.durations().count(), 0);
    assert_eq!(apply_one(&store, NOW, &limit, &subject, take(1, 1)).await.unwrap().used, 1);
    store.store().next([Trouble::Unheard(StoreError::Corrupt)]);
    let answer = apply_one(&store, NOW, &limit, &subject, take(1, 2)).await;
    assert_eq!(answer, Err(StoreError::Corrupt), "it passes unchanged");
    assert_eq!(store.durations().count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_closed_is_counted() {
    let store = Deadline::new(CallTimer::new(Faulty::new())).with_budget(Duration::from_millis(3));
    let (limit, subject) = (fixed("core", 5), user(1));
    store.store().store().next([Trouble::Held(Arc::new(Semaphore::new(0)))]);
    let answer = apply_one(&store, NOW, &limit, &subject, take(1, 1)).await;
    assert_eq!(answer, Err(StoreError::TimedOut));
    assert_eq!(store.store().durations().count(), 1);
}
