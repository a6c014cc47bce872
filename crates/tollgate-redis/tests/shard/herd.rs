//! Many nodes find a server again that was started anew.

use tokio::time::Instant;

use super::*;

const NODES: usize = 8;
/// Callers of each node, all of which wait for the server.
const CALLERS: usize = 64;
/// Connections that a node may open to find one server: the first attempts may come before it serves.
const CONNECTIONS_A_NODE: usize = 4;

/// However many callers wait, each node comes back by a connection or two, so that others who use
/// the server hardly notice.
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
        until(|| node.gate() == Gate::Open).await;
    }
    let mut callers = JoinSet::new();
    for node in nodes.iter().flat_map(|node| std::iter::repeat_n(node, CALLERS)) {
        let node = Arc::clone(node);
        callers.spawn(async move {
            while node.take(0, 1).await.is_err() {
                tokio::time::sleep(PAUSE).await;
            }
        });
    }
    server.start_again(&[]);
    let back = async {
        nodes[0].store.ready(PATIENCE).await.unwrap();
        // Somebody else, who uses the server too.
        let mut other = server.connect().await;
        let mut slowest = Duration::ZERO;
        while !callers.is_empty() {
            let asked = Instant::now();
            redis::cmd("PING").exec_async(&mut other).await.unwrap();
            slowest = slowest.max(asked.elapsed());
            while callers.try_join_next().is_some() {}
            tokio::time::sleep(PAUSE).await;
        }
        slowest
    };
    let slowest = tokio::time::timeout(PATIENCE, back).await.expect("all nodes come back");
    // Two are the test's own.
    let opened = connections_received(&server).await - 2;
    println!(
        "connections opened by {NODES} nodes with {CALLERS} callers each: {opened} ≤ {}; the \
         slowest reply to somebody else meanwhile: {slowest:?} (not judged)",
        NODES * CONNECTIONS_A_NODE
    );
    assert!((NODES..=NODES * CONNECTIONS_A_NODE).contains(&opened), "{opened} connections");
    assert_eq!(nodes[0].take(0, 0).await.unwrap().used, (NODES * CALLERS) as u64, "each once");
}

async fn connections_received(server: &Server) -> usize {
    let mut connection = server.connect().await;
    let told: String = redis::cmd("INFO").arg("stats").query_async(&mut connection).await.unwrap();
    let count = told.lines().find_map(|line| line.strip_prefix("total_connections_received:"));
    count.unwrap().trim().parse().unwrap()
}
