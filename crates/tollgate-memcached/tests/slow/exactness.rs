//! Many nodes that charge at once. The tests check that no window admits more than its quota and no
//! charge counts twice.

use std::sync::Arc;

use crate::kit::{PATIENCE, Server, connected, subject, take, window};
use tokio::task::JoinSet;
use tollgate_core::algo::{SlidingLog, TokenBucket};
use tollgate_core::{
    Admission, Algorithm, Charge, ChargeId, ChargePosition, Cost, Deduplication, Limit, Millis,
    Operation, Timestamp,
};
use tollgate_memcached::{Layout, Memcached, MemcachedError, ServerSettings};

/// The number of nodes. Each node has a store of its own, and the nodes share only the server.
const NODES: usize = 8;
const TRIES: usize = 60;
const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_123);

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_window_in_one_item_never_passes_its_quota() {
    a_window_never_passes_its_quota(Layout::Cell).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_window_in_two_items_never_passes_its_quota() {
    a_window_never_passes_its_quota(Layout::Pairs).await;
}

async fn a_window_never_passes_its_quota(layout: Layout) {
    let server = Server::start();
    let nodes = nodes(&server, layout).await;
    let quota = 200;
    let limit = window("core", quota, Millis::from_secs(60));
    // The test uses several windows, so nodes also open the same window at once.
    for opened in 0..4 {
        let now = NOW.after(Millis::from_secs(60 * opened));
        let (admitted, resets) = storm(&nodes, &limit, "a", now).await;
        assert_eq!(admitted, quota, "window {opened}");
        assert_eq!(resets.len(), 1, "window {opened}: {resets:?}");
        assert_eq!(used(&nodes[0], &limit, "a", now).await, quota);
    }
    let cas_conflicts: u64 = nodes.iter().map(|node| node.status().cas_conflicts).sum();
    assert!(cas_conflicts > 0, "the nodes never met");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn other_algorithms_are_as_exact() {
    let server = Server::start();
    let nodes = nodes(&server, Layout::Pairs).await;
    let minute = Millis::from_secs(60);
    let bucket = TokenBucket::new(100, minute, 100).unwrap();
    let log = SlidingLog::new(100, minute).unwrap();
    for (name, algorithm) in
        [("bucket", Algorithm::TokenBucket(bucket)), ("log", Algorithm::SlidingLog(log))]
    {
        let limit = Limit::new(name, algorithm).unwrap();
        assert_eq!(storm(&nodes, &limit, "b", NOW).await.0, 100, "{name}");
    }
}

/// Calls charge two limits, and the second limit has fewer units. Charges of refused calls on the
/// first limit are refunded.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn takes_over_several_items_are_all_or_nothing() {
    let server = Server::start();
    for layout in [Layout::Cell, Layout::Pairs] {
        let nodes = nodes(&server, layout).await;
        let wide = Arc::new(window("a-wide", 1_000, Millis::from_secs(60)));
        let narrow = Arc::new(window("b-narrow", 100, Millis::from_secs(60)));
        let name = format!("{layout:?}");
        let mut tasks = JoinSet::new();
        for node in &nodes {
            let (node, name) = (Arc::clone(node), name.clone());
            let (wide, narrow) = (Arc::clone(&wide), Arc::clone(&narrow));
            tasks.spawn(async move {
                let subject = subject(&name);
                let charges = [take(&wide, &subject), take(&narrow, &subject)];
                let mut admitted = 0;
                for _ in 0..TRIES {
                    match node.apply_within(NOW, &charges, PATIENCE).await {
                        Ok(readings) => admitted += u64::from(readings.all_admitted()),
                        Err(error) => assert_eq!(error, MemcachedError::Contended),
                    }
                }
                admitted
            });
        }
        let admitted: u64 = tasks.join_all().await.into_iter().sum();
        assert!(admitted <= 100, "{admitted}");
        for limit in [&wide, &narrow] {
            assert_eq!(used(&nodes[0], limit, &name, NOW).await, admitted, "{}", limit.name());
        }
        let status: Vec<_> = nodes.iter().map(|node| node.status()).collect();
        assert!(status.iter().all(|status| status.unrefunded == 0), "{status:?}");
        assert!(admitted == 100 || status.iter().any(|status| status.contended > 0));
    }
}

/// Each node sends calls until all of its calls are done. A call that failed as contended charged
/// nothing and is sent again. Returns the number of admitted calls and the reported resets.
async fn storm(
    nodes: &[Arc<Memcached>],
    limit: &Limit,
    name: &str,
    now: Timestamp,
) -> (u64, Vec<Timestamp>) {
    let mut tasks = JoinSet::new();
    for node in nodes {
        let (node, limit, subject) = (Arc::clone(node), limit.clone(), subject(name));
        tasks.spawn(async move {
            let mut results = Vec::new();
            let mut done = 0;
            while done < TRIES {
                match node.apply_within(now, &[take(&limit, &subject)], PATIENCE).await {
                    Ok(readings) => {
                        done += 1;
                        results.push((readings.all_admitted(), readings[0].full_reset_at));
                    }
                    Err(error) => assert_eq!(error, MemcachedError::Contended),
                }
            }
            results
        });
    }
    let results: Vec<_> = tasks.join_all().await.into_iter().flatten().collect();
    let admitted = results.iter().filter(|(admitted, _)| *admitted).count() as u64;
    let mut resets: Vec<_> = results.into_iter().map(|(_, full_reset_at)| full_reset_at).collect();
    resets.sort_unstable();
    resets.dedup();
    (admitted, resets)
}

async fn nodes(server: &Server, layout: Layout) -> Vec<Arc<Memcached>> {
    let mut nodes = Vec::new();
    for _ in 0..NODES {
        let settings = ServerSettings { layout, ..server.settings() };
        nodes.push(Arc::new(connected(&settings).await));
    }
    nodes
}

async fn used(node: &Memcached, limit: &Limit, name: &str, now: Timestamp) -> u64 {
    let operation = Operation::Peek { cost: Cost::ONE };
    let subject = subject(name);
    let look = [Charge { limit, subject: &subject, operation }];
    node.apply_within(now, &look, PATIENCE).await.unwrap()[0].used
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_refund_that_is_repeated_by_many_gives_back_once() {
    let server = Server::start();
    let nodes = nodes(&server, Layout::Cell).await;
    let limit = window("core", 10, Millis::from_secs(60));
    let subject = subject("r");
    let mut position = ChargePosition::default();
    for _ in 0..5 {
        let taken = nodes[0].apply_within(NOW, &[take(&limit, &subject)], PATIENCE).await.unwrap();
        assert_eq!(taken[0].admission, Admission::Now);
        position = taken[0].position;
    }
    let deduplication = Deduplication::ById;
    let operation = Operation::Refund { cost: Cost::ONE, position, id: ChargeId(1), deduplication };
    let mut tasks = JoinSet::new();
    for node in &nodes {
        let (node, limit, subject) = (Arc::clone(node), limit.clone(), subject.clone());
        tasks.spawn(async move {
            let charge = [Charge { limit: &limit, subject: &subject, operation }];
            node.apply_within(NOW, &charge, PATIENCE).await.unwrap()[0].refunded
        });
    }
    assert_eq!(tasks.join_all().await.into_iter().sum::<u64>(), 1);
    assert_eq!(used(&nodes[0], &limit, "r", NOW).await, 4);
}
