use std::sync::Arc;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tollgate::{
    Limiter,
    model::{
        Algorithm, Cost, Limit, Millis, Policy,
        algo::Concurrency,
        policy::{LimitBinding, LimitRef, MatchMode, PathPattern, RequestMatch, Rule},
    },
    store::Memory,
    tower::Layer,
};

use crate::{
    setup::{Client, Proxy, exchange, settings, statuses, within},
    upstream::{read_head, serve_raw},
};

const WISH: &str =
    "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
const PLAIN: &str = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/// Allows one request at a time in total.
pub(crate) fn one_at_a_time() -> Limiter<Memory> {
    let in_flight = Concurrency::new(1, Millis::from_secs(3600)).expect("a lease");
    let limit = Limit::new("one", Algorithm::Concurrency(in_flight)).expect("a name");
    let limit = LimitBinding { limit: Arc::new(limit), per: Vec::new() };
    let paths = vec![PathPattern::parse("/**").expect("a path")];
    let used = LimitRef { limit: 0, cost: Cost::ONE };
    let rule = Rule::new("all", RequestMatch { paths, ..RequestMatch::default() }, vec![used]);
    let policy = Policy::new(Vec::new(), vec![limit], vec![rule], MatchMode::FirstMatch);
    Limiter::new(policy.expect("a policy"), Memory::default())
}

/// Accepts an upgrade and then echoes, or else answers 200.
async fn answer(mut stream: TcpStream) {
    let head = read_head(&mut stream).await.to_ascii_lowercase();
    if !head.contains("\r\nupgrade: websocket\r\n") {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        stream.write_all(answer).await.expect("the proxy reads");
        return;
    }
    let agreed =
        b"HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n";
    stream.write_all(agreed).await.expect("the proxy reads");
    let mut byte = [0];
    while let Ok(1) = stream.read(&mut byte).await {
        stream.write_all(&byte).await.expect("the proxy reads");
    }
}

#[tokio::test]
async fn a_tunnel_holds_the_lease_of_its_handshake_until_it_ends() {
    let upstream = serve_raw(answer).await;
    let proxy = Proxy::layered(settings(upstream), Layer::new(one_at_a_time())).await;
    let mut client = Client::connect(proxy.address).await;
    client.send(WISH).await;
    assert_eq!(statuses(&client.read_until("\r\n\r\n").await), [101]);
    // The proxy has finished with the 101 when a byte of the tunnel comes back.
    client.send("x").await;
    client.read_until("x").await;
    assert_eq!(statuses(&exchange(proxy.address, PLAIN).await), [429]);
    drop(client);
    // The proxy needs some time to detect the end of the connection.
    within(async {
        while statuses(&exchange(proxy.address, PLAIN).await) != [200] {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
