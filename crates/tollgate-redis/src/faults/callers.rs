//! Tests with many concurrent callers, and with callers that are cancelled.

use std::collections::BTreeMap;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::kit::Server;
use super::tally::{count, ran};
use super::*;

/// Polls a future once to start it.
fn begin<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test]
async fn parallel_callers_of_one_key_are_reported_every_count_once() {
    let server = Server::start().await;
    let batcher = ready_batcher(&server.url(), patient()).await;
    let mut answers = Vec::new();
    {
        let calls: Vec<_> = (0..200).map(|id| Box::pin(batcher.run("key", id))).collect();
        for call in calls {
            answers.push(call.await.unwrap());
        }
    }
    answers.sort_unstable();
    assert_eq!(answers, (1..=200).collect::<Vec<_>>());
    assert_eq!(count(&server, "key").await, 200);
}

#[tokio::test]
async fn what_gathers_while_a_call_is_under_way_is_one_call() {
    let server = Server::start().await;
    // The call in flight does not become overdue, even if the server is frozen for long.
    let limits = BatcherLimits { overdue_after: PATIENCE, ..BatcherLimits::default() };
    let batcher = Batcher::start(
        vec![server.url().parse().unwrap()],
        RequiredRole::Primary,
        Tally::arc(),
        limits,
        patient(),
    );
    in_time(batcher.link().up()).await;
    let batcher = std::sync::Arc::new(batcher);
    server.freeze();
    let mut callers = tokio::task::JoinSet::new();
    let run = |id| {
        let batcher = std::sync::Arc::clone(&batcher);
        async move { batcher.run("key", id).await }
    };
    callers.spawn(run(0));
    until(|| batcher.status().counts.calls == 1).await;
    for id in 1..=200 {
        callers.spawn(run(id));
    }
    // All jobs are queued before the server continues.
    tokio::task::yield_now().await;
    server.thaw();
    let mut answers = BTreeMap::new();
    while let Some(answer) = in_time(callers.join_next()).await {
        *answers.entry(answer.unwrap().unwrap()).or_insert(0) += 1;
    }
    assert_eq!(answers, (1..=201).map(|count| (count, 1)).collect());
    let counts = batcher.status().counts;
    // There is one call with the first job, one call with the most jobs that a call may carry, and
    // one call with the rest of the jobs.
    assert_eq!((counts.calls, counts.jobs), (3, 201));
}

#[tokio::test]
async fn a_caller_that_leaves_takes_an_unsent_job_along() {
    let server = Server::start().await;
    let batcher = ready_batcher(&server.url(), patient()).await;
    server.freeze();
    let mut first = pin!(batcher.run("key", 0));
    assert!(begin(first.as_mut()).is_pending());
    until(|| batcher.status().counts.calls == 1).await;
    for id in 1..=100 {
        let left = pin!(batcher.run("key", id));
        assert!(begin(left).is_pending());
    }
    server.thaw();
    assert_eq!(first.await, Ok(1));
    assert_eq!(batcher.run("key", 101).await, Ok(2));
    assert_eq!(ran(&server).await, BTreeMap::from([(0, 1), (101, 1)]));
}

#[tokio::test]
async fn a_caller_that_leaves_a_sent_job_behind_disturbs_nobody() {
    let server = Server::start().await;
    let batcher = ready_batcher(&server.url(), patient()).await;
    for round in 0..200 {
        let (left, stays) = (round * 2, round * 2 + 1);
        let calls = batcher.status().counts.calls;
        {
            let sent = pin!(batcher.run("left", left));
            assert!(begin(sent).is_pending());
            until(|| batcher.status().counts.calls > calls).await;
            // The connection's own task writes the command.
            tokio::task::yield_now().await;
        }
        let expected = i64::try_from(round).unwrap() + 1;
        assert_eq!(batcher.run("stays", stays).await, Ok(expected));
    }
    // Each job that was sent was executed once, although its caller did not receive the answer.
    assert_eq!(ran(&server).await, (0..400).map(|id| (id, 1)).collect());
}

#[tokio::test]
async fn a_caller_that_is_not_polled_holds_nobody_up() {
    let server = Server::start().await;
    let batcher = ready_batcher(&server.url(), patient()).await;
    let mut idle = pin!(batcher.run("key", 0));
    assert!(begin(idle.as_mut()).is_pending());
    // The caller sent its job itself, and does not poll the call for the answer.
    assert_eq!(batcher.status().counts.calls, 1);
    for id in 1..=20 {
        let expected = i64::try_from(id).unwrap() + 1;
        assert_eq!(in_time(batcher.run("key", id)).await, Ok(expected));
    }
    assert_eq!(idle.await, Ok(1));
}

#[tokio::test]
async fn jobs_beyond_the_bounds_are_turned_away_at_once() {
    let server = Server::start().await;
    let limits = BatcherLimits { waiting: 10, waiting_bytes: 100, ..BatcherLimits::default() };
    // One call is in flight, and the other jobs wait.
    for (key, admission) in [("k", 1 + 4), ("a key of twenty bytes", 1 + 2)] {
        let endpoint = server.url().parse().unwrap();
        let batcher =
            Batcher::start(vec![endpoint], RequiredRole::Primary, Tally::arc(), limits, patient());
        in_time(batcher.link().up()).await;
        // The test does not yield, so the batcher's task does not run between the first job and the
        // last job.
        let mut calls: Vec<_> = (0..20).map(|id| Box::pin(batcher.run(key, id))).collect();
        let turned_away = calls
            .iter_mut()
            .filter_map(|call| match begin(call.as_mut()) {
                Poll::Ready(answer) => Some(answer),
                Poll::Pending => None,
            })
            .inspect(|answer| assert_eq!(*answer, Err(BatcherError::Overloaded)))
            .count();
        assert_eq!(turned_away, 20 - admission, "{key}");
        assert_eq!(batcher.status().counts.overloaded, turned_away as u64);
    }
}

#[tokio::test]
async fn a_job_that_cannot_be_in_time_is_not_sent() {
    let server = Server::start().await;
    let batcher = ready_batcher(&server.url(), patient()).await;
    let answer = batcher.run_within("key", 1, Duration::ZERO).await;
    assert_eq!(answer, Err(BatcherError::TimedOut));
    assert_eq!(batcher.run("key", 2).await, Ok(1));
    assert_eq!(ran(&server).await, BTreeMap::from([(2, 1)]));
}
