//! Requests that wait for a permit, in the order in which they arrived.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::StatusCode;
use http_body_util::BodyExt;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tollgate::limiter::QUEUE_POLL;
use tollgate::model::policy::{ChargeOn, Policy, Queue, Rule, RuleMode};
use tollgate::model::{
    Charge, Millis, Operation, Readings, Refusals, RequestAttributes, Store, StoreError, Timestamp,
};
use tollgate::store::Memory;

use crate::faulty::{Faulty, Trouble};
use crate::tower::world::{PEER, World, concurrent, github, policy, rule, window};

const WAIT: Duration = Duration::from_secs(2);

/// Returns a policy with `places` concurrent requests and a queue of `length` requests, which wait
/// for at most two seconds. Requests for `/4` are also charged on a window of four.
fn in_flight(places: u64, length: usize) -> Policy {
    let queue = Some(Queue { wait: Millis::from_secs(WAIT.as_secs()), length });
    let mut all = rule("all", "/**", &[0], RuleMode::Enforce);
    all.queue = queue;
    let narrow = rule("narrow", "/4", &[1], RuleMode::Enforce);
    policy(vec![concurrent(places), window("narrow", 4)], vec![all, narrow], github())
}

async fn let_others_run() {
    for _ in 0..8 {
        tokio::task::yield_now().await;
    }
}

/// Starts a request, and records `name` when it is answered.
async fn start<S: Store + 'static>(
    world: &World<S>,
    name: usize,
    served: &Arc<Mutex<Vec<usize>>>,
) -> JoinHandle<StatusCode> {
    let (request, served) = (world.get("/slow"), Arc::clone(served));
    let request = tokio::spawn(async move {
        let status = request.await.status();
        served.lock().push(name);
        status
    });
    let_others_run().await;
    request
}

#[tokio::test(start_paused = true)]
async fn places_go_to_those_who_came_first() {
    let world = World::new(in_flight(1, 10));
    let served = Arc::default();
    let mut running = Vec::new();
    for name in 0..6 {
        running.push(start(&world, name, &served).await);
    }
    assert_eq!(world.limiter.queued(), 5);
    // A waiting request is cancelled, and the requests behind it do not wait longer.
    running.remove(3).abort();
    let_others_run().await;
    assert_eq!(world.limiter.queued(), 4);
    for answered in 1..=5 {
        world.gate.add_permits(1);
        let_others_run().await;
        let_others_run().await;
        assert_eq!(served.lock().len(), answered, "no clock had to move");
    }
    assert_eq!(*served.lock(), [0, 1, 2, 4, 5]);
    for request in running {
        assert_eq!(request.await.unwrap(), StatusCode::OK);
    }
    assert_eq!(world.limiter.queued(), 0);
}

#[tokio::test(start_paused = true)]
async fn who_waited_in_vain_is_refused_after_the_time_and_not_before() {
    let world = World::new(in_flight(1, 10));
    let served = Arc::default();
    let first = start(&world, 0, &served).await;
    let second = start(&world, 1, &served).await;
    let third = start(&world, 2, &served).await;
    tokio::time::advance(WAIT - QUEUE_POLL - Duration::from_millis(1)).await;
    let_others_run().await;
    assert!(!second.is_finished() && !third.is_finished());
    assert_eq!(second.await.unwrap(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(third.await.unwrap(), StatusCode::TOO_MANY_REQUESTS);
    world.gate.add_permits(1);
    assert_eq!(first.await.unwrap(), StatusCode::OK);
    assert_eq!(world.limiter.queued(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_line_that_is_full_refuses_at_once() {
    let world = World::new(in_flight(1, 2));
    let served = Arc::default();
    let first = start(&world, 0, &served).await;
    let second = start(&world, 1, &served).await;
    let third = start(&world, 2, &served).await;
    assert_eq!(world.get("/").await.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(world.limiter.queued(), 2);
    world.gate.add_permits(3);
    for request in [first, second, third] {
        assert_eq!(request.await.unwrap(), StatusCode::OK);
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_where_another_limit_refuses_too() {
    let world = World::new(in_flight(1, 10));
    for _ in 0..4 {
        assert_eq!(world.get("/4").await.status(), StatusCode::OK);
    }
    let served = Arc::default();
    let running = start(&world, 0, &served).await;
    assert_eq!(world.get("/4").await.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(world.limiter.queued(), 0);
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn a_client_above_another_limit_does_not_join_an_existing_queue() {
    let world = World::new(in_flight(1, 2));
    for _ in 0..4 {
        assert_eq!(world.get("/4").await.status(), StatusCode::OK);
    }
    let served = Arc::default();
    let running = start(&world, 0, &served).await;
    let waiting = start(&world, 1, &served).await;
    assert_eq!(world.limiter.queued(), 1);
    for _ in 0..3 {
        assert_eq!(world.get("/4").await.status(), StatusCode::TOO_MANY_REQUESTS);
    }
    assert_eq!(world.limiter.queued(), 1);
    world.gate.add_permits(2);
    for request in [running, waiting] {
        assert_eq!(request.await.unwrap(), StatusCode::OK);
    }
}

/// A primary and a replica that has not received the newest data of the primary. The replica answers
/// calls that only peek.
struct WithStaleReplica {
    primary: Memory,
    replica: Arc<Memory>,
}

impl Store for WithStaleReplica {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        let is_peek = |charge: &Charge<'_>| matches!(charge.operation, Operation::Peek { .. });
        match charges.iter().all(is_peek) {
            true => self.replica.apply(now, charges).await,
            false => self.primary.apply(now, charges).await,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_lags_does_not_keep_a_request_from_an_existing_queue() {
    let replica = Arc::new(Memory::default());
    let earlier = World::over(in_flight(1, 2), Arc::clone(&replica));
    for _ in 0..4 {
        assert_eq!(earlier.get("/4").await.status(), StatusCode::OK);
    }
    // The replica still counts four requests for `/4`. The primary counts three.
    let store = WithStaleReplica { primary: Memory::default(), replica };
    let world = World::over(in_flight(1, 2), store);
    for _ in 0..3 {
        assert_eq!(world.get("/4").await.status(), StatusCode::OK);
    }
    let served = Arc::default();
    let running = start(&world, 0, &served).await;
    let waiting = start(&world, 1, &served).await;
    let joining = tokio::spawn(world.get("/4"));
    let_others_run().await;
    assert_eq!(world.limiter.queued(), 2);
    world.gate.add_permits(2);
    for request in [running, waiting] {
        assert_eq!(request.await.unwrap(), StatusCode::OK);
    }
    assert_eq!(joining.await.unwrap().status(), StatusCode::OK);
}

/// Returns a policy with one concurrent request, a queue of one request, and a window of 100 that
/// counts refused requests. A rule of its own charges the window. Requests for `/4` are also charged
/// on a window of four.
fn counting_refusals() -> Policy {
    let mut all = rule("all", "/**", &[0], RuleMode::Enforce);
    all.queue = Some(Queue { wait: Millis::from_secs(WAIT.as_secs()), length: 1 });
    let counting = rule("counting", "/**", &[1], RuleMode::Enforce);
    let narrow = rule("narrow", "/4", &[2], RuleMode::Enforce);
    let counted = window("counted", 100).with_refusals(Refusals::Counted).unwrap();
    let limits = vec![concurrent(1), counted, window("narrow", 4)];
    policy(limits, vec![all, counting, narrow], github())
}

/// Returns the used units of the window that counts refused requests.
async fn counted<S: Store>(world: &World<S>) -> u64 {
    let request = RequestAttributes {
        method: "GET",
        path: "/",
        query: None,
        host: None,
        peer: Some(PEER),
        headers: &(),
    };
    let statuses = world.limiter.statuses(&request).await.unwrap().statuses;
    statuses.iter().find(|status| status.limit.name() == "counted").unwrap().used
}

#[tokio::test(start_paused = true)]
async fn a_waiting_request_is_charged_once_to_a_limit_that_counts_refused_requests() {
    let world = World::new(counting_refusals());
    let served = Arc::default();
    let running = start(&world, 0, &served).await;
    assert_eq!(counted(&world).await, 1);
    let waiting = start(&world, 1, &served).await;
    tokio::time::advance(QUEUE_POLL * 4).await;
    let_others_run().await;
    assert_eq!(counted(&world).await, 1, "a waiting request has charged nothing");
    // The queue is full, so the third request is refused.
    assert_eq!(world.get("/").await.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(counted(&world).await, 2);
    world.gate.add_permits(2);
    for request in [running, waiting] {
        assert_eq!(request.await.unwrap(), StatusCode::OK);
    }
    assert_eq!(counted(&world).await, 3);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waited_in_vain_is_counted_once_as_refused() {
    let world = World::new(counting_refusals());
    let served = Arc::default();
    let running = start(&world, 0, &served).await;
    let waiting = start(&world, 1, &served).await;
    assert_eq!(waiting.await.unwrap(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(counted(&world).await, 2);
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn a_request_that_another_limit_refuses_is_counted_once_if_others_wait() {
    let world = World::new(counting_refusals());
    for _ in 0..4 {
        assert_eq!(world.get("/4").await.status(), StatusCode::OK);
    }
    assert_eq!(world.get("/4").await.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(counted(&world).await, 5);
    let served = Arc::default();
    let running = start(&world, 0, &served).await;
    let waiting = start(&world, 1, &served).await;
    assert_eq!(counted(&world).await, 6);
    assert_eq!(world.get("/4").await.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(counted(&world).await, 7);
    world.gate.add_permits(2);
    for request in [running, waiting] {
        assert_eq!(request.await.unwrap(), StatusCode::OK);
    }
    assert_eq!(counted(&world).await, 8);
}

#[tokio::test(start_paused = true)]
async fn a_request_refused_by_a_full_queue_takes_no_slot_to_count_its_refusal() {
    let world = World::over(counting_refusals(), Faulty::new());
    let served = Arc::default();
    let running = start(&world, 0, &served).await;
    let waiting = start(&world, 1, &served).await;
    let (refused_by, found_by) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    // The peek of the new request finds no slot. The answer arrives after the slot was released,
    // and before the waiting request takes the slot.
    let peek_of_new = Trouble::Late(Arc::clone(&refused_by));
    let peek_of_waiting = Trouble::Held(Arc::clone(&found_by));
    world.limiter.store().next([peek_of_new, Trouble::None, peek_of_waiting]);
    let new = tokio::spawn(world.get("/"));
    let_others_run().await;
    let calls = world.limiter.store().calls();
    world.gate.add_permits(1);
    assert_eq!(running.await.unwrap(), StatusCode::OK);
    while world.limiter.store().calls() < calls + 2 {
        tokio::task::yield_now().await;
    }
    refused_by.add_permits(1);
    let refused = new.await.unwrap();
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(counted(&world).await, 2, "the running request and the refused request");
    found_by.add_permits(1);
    world.gate.add_permits(1);
    assert_eq!(waiting.await.unwrap(), StatusCode::OK);
    assert_eq!(counted(&world).await, 3);
}

#[tokio::test(start_paused = true)]
async fn each_slot_that_another_node_takes_after_the_peek_counts_one_more_refusal() {
    let store = Arc::new(Faulty::new());
    let here = World::over(counting_refusals(), Arc::clone(&store));
    let there = World::over(counting_refusals(), Arc::clone(&store));
    let served = Arc::default();
    let running = start(&there, 0, &served).await;
    let waiting = start(&here, 1, &served).await;
    there.gate.add_permits(1);
    assert_eq!(running.await.unwrap(), StatusCode::OK);
    let_others_run().await;
    // The waiting request finds the slot at its next poll. Another request takes the slot before the
    // charge of the waiting request arrives.
    let charge = Arc::new(Semaphore::new(0));
    store.next([Trouble::None, Trouble::Held(Arc::clone(&charge))]);
    tokio::time::advance(QUEUE_POLL).await;
    let_others_run().await;
    let faster = start(&there, 2, &served).await;
    charge.add_permits(1);
    let_others_run().await;
    assert_eq!(counted(&here).await, 3, "two running requests, and the lost slot");
    there.gate.add_permits(1);
    assert_eq!(faster.await.unwrap(), StatusCode::OK);
    here.gate.add_permits(1);
    assert_eq!(waiting.await.unwrap(), StatusCode::OK);
    assert_eq!(counted(&here).await, 4);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_cannot_join_a_queue_refunds_no_units_of_other_requests() {
    // The window of failures is charged on arrival. The narrow window is only peeked at.
    let mut all = rule("all", "/**", &[0, 1], RuleMode::Enforce);
    all.queue = Some(Queue { wait: Millis::from_secs(WAIT.as_secs()), length: 10 });
    let narrow = rule("narrow", "/4", &[2], RuleMode::Enforce);
    let rules = [all, narrow].map(|rule| Rule { charge: ChargeOn::Completion, ..rule });
    let failures = window("counted", 100).with_counted([401].into_iter().collect());
    let limits = vec![concurrent(1), failures, window("narrow", 4)];
    let policy = policy(limits, rules.into(), github());
    let store = Arc::new(Memory::default());
    let here = World::over(policy.clone(), Arc::clone(&store));
    let there = World::over(policy, store);
    assert_eq!(here.get("/401").await.status(), StatusCode::UNAUTHORIZED);
    for _ in 0..4 {
        assert_eq!(here.get("/4").await.status(), StatusCode::OK);
    }
    let served = Arc::default();
    let running = start(&there, 0, &served).await;
    let waiting = start(&here, 1, &served).await;
    there.gate.add_permits(1);
    assert_eq!(running.await.unwrap(), StatusCode::OK);
    // The permit is free, and a request of this node still waits.
    assert_eq!(here.get("/4").await.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(counted(&here).await, 1, "the failure is still counted");
    waiting.abort();
}

#[tokio::test(start_paused = true)]
async fn a_place_that_another_node_gives_back_is_found() {
    let store = Arc::new(Memory::default());
    let here = World::over(in_flight(1, 10), Arc::clone(&store));
    let there = World::over(in_flight(1, 10), store);
    let served = Arc::default();
    let running = start(&there, 0, &served).await;
    let waiting = start(&here, 1, &served).await;
    there.gate.add_permits(1);
    assert_eq!(running.await.unwrap(), StatusCode::OK);
    let_others_run().await;
    assert_eq!(*served.lock(), [0], "nobody told this node");
    here.gate.add_permits(1);
    tokio::time::advance(QUEUE_POLL).await;
    assert_eq!(waiting.await.unwrap(), StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn never_more_are_in_flight_than_there_are_places_and_nobody_is_refused_who_could_wait() {
    const REQUESTS: usize = 200;
    let world = World::new(in_flight(3, REQUESTS));
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let requests = (0..REQUESTS).map(|_| {
        let (request, now, most) = (world.get("/"), Arc::clone(&now), Arc::clone(&most));
        tokio::spawn(async move {
            let response = request.await;
            let status = response.status();
            if status == StatusCode::OK {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                now.fetch_sub(1, Ordering::SeqCst);
                response.into_body().collect().await.unwrap();
            }
            status
        })
    });
    for request in requests.collect::<Vec<_>>() {
        assert_eq!(request.await.unwrap(), StatusCode::OK);
    }
    assert!((1..=3).contains(&most.load(Ordering::SeqCst)), "{most:?}");
    assert_eq!(world.limiter.queued(), 0);
}
