//! Many nodes that reconnect to a restarted server.

use tokio::time::Instant;
use tollgate_conformance::{Figure, assert_held};

use super::*;

const NODES: u64 = 8;
/// The number of callers of each node. All callers wait for the server.
const CALLERS: u64 = 64;
/// The most connections that a node may open to find one server. The first attempts may come before
/// the server accepts connections.
const CONNECTIONS_A_NODE: u64 = 4;

/// Each node reconnects with one or two connections, however many callers wait, so other clients of
/// the server are hardly affected.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_come_back_by_few_connections() {
    let mut server = Server::start().await;
    let settings = patient(server.url().parse().unwrap());
    let mut nodes = Vec::new();
    for _ in 0..NODES {
        nodes.push(Client::new(&settings, Way::Function, 1 << 40).await);
    }
    server.kill();
    for node in &nodes {
        until(|| node.circuit_state() == CircuitState::Open).await;
    }
    let mut callers = JoinSet::new();
    for node in nodes.iter().flat_map(|node| std::iter::repeat_n(node, CALLERS as usize)) {
        let node = Arc::clone(node);
        callers.spawn(async move {
            let mut in_vain = 0;
            while node.take(0, 1).await.is_err() {
                in_vain += 1;
                tokio::time::sleep(PAUSE).await;
            }
            in_vain
        });
    }
    server.start_again(&[]);
    let back = async {
        nodes[0].store.ready(PATIENCE).await.unwrap();
        // This connection acts as another client of the server.
        let mut other = server.connect().await;
        let (mut slowest, mut in_vain) = (Duration::ZERO, 0);
        while !callers.is_empty() {
            let sent_at = Instant::now();
            redis::cmd("PING").exec_async(&mut other).await.unwrap();
            slowest = slowest.max(sent_at.elapsed());
            while let Some(tried) = callers.try_join_next() {
                in_vain += tried.unwrap();
            }
            tokio::time::sleep(PAUSE).await;
        }
        (slowest, in_vain)
    };
    let (slowest, in_vain) =
        tokio::time::timeout(PATIENCE, back).await.expect("all nodes come back");
    // Two of the connections are the test's own.
    let opened = connections_received(&server).await - 2;
    let used = nodes[0].take(0, 0).await.unwrap().used;
    assert_held(&[
        Figure::fault_seen("calls of those who waited", in_vain),
        Figure::at_most("connections opened", opened, NODES * CONNECTIONS_A_NODE),
        Figure::at_most("units not counted once", used.abs_diff(NODES * CALLERS), 0),
        Figure::context("ms for somebody else's reply", slowest.as_millis() as u64, 20),
    ]);
    assert!(opened >= NODES, "{opened} connections");
}

async fn connections_received(server: &Server) -> u64 {
    let mut connection = server.connect().await;
    let info: String = redis::cmd("INFO").arg("stats").query_async(&mut connection).await.unwrap();
    let count = info.lines().find_map(|line| line.strip_prefix("total_connections_received:"));
    count.unwrap().trim().parse().unwrap()
}
