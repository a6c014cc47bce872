//! One address opens connections to lock other clients out.

use std::{convert::Infallible, fs, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    sync::Semaphore,
    task::JoinSet,
};
use tollgate_proxy::{CloseReason, ConnectionMetrics, Forward, RequestBody};
use tower::util::service_fn;
use tower_layer::layer_fn;

use crate::{
    setup::{Client, Proxy, exchange, header, settings, statuses, within},
    unread_responses::{connect, send_request},
    upstream::{Recorder, canned},
};

const HOSTILE_CONNECTIONS: usize = 10_000;
const KEPT: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const LAST: &str = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
const EMPTY: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// Returns how many hostile connections the file descriptors of this process allow. Each connection
/// takes two, because both ends are in this process.
fn hostile_connections() -> usize {
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let files = limits.lines().find(|line| line.starts_with("Max open files"));
    let files = files.and_then(|line| line.split_whitespace().nth(3)?.parse::<usize>().ok());
    let files = files.unwrap_or(1_024);
    // The other tests of this process need some, too.
    let most = (files.saturating_sub(2_000) / 2).clamp(64, HOSTILE_CONNECTIONS);
    eprintln!("{most} of {HOSTILE_CONNECTIONS} hostile connections: {files} open files allowed");
    most
}

/// Connects to the proxy from `address`, which is not the address of the other clients.
async fn connect_from(address: [u8; 4], proxy: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(SocketAddr::from((address, 0))).expect("an address of the loopback");
    within(socket.connect(proxy)).await.expect("the proxy listens")
}

/// Returns the response to a normal client at another address.
async fn answer_to_a_good_client(proxy: SocketAddr) -> String {
    let mut stream = connect_from([127, 0, 0, 2], proxy).await;
    within(stream.write_all(LAST.as_bytes())).await.expect("the proxy reads");
    let mut answer = String::new();
    within(stream.read_to_string(&mut answer)).await.expect("an answer");
    answer
}

/// What a hostile client does before it leaves its connection open.
#[derive(Debug, Clone, Copy)]
enum Hostile {
    KeepsIt,
    SendsHalfAHead,
    SendsNothing,
}

const HOSTILE: [Hostile; 3] = [Hostile::KeepsIt, Hostile::SendsHalfAHead, Hostile::SendsNothing];

/// Opens a connection that stays open. Returns `None` if the proxy closed it.
async fn hostile(proxy: SocketAddr, kind: Hostile) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(proxy).await.ok()?;
    match kind {
        Hostile::KeepsIt => {
            stream.write_all(KEPT.as_bytes()).await.ok()?;
            let mut answer = [0; 256];
            let read = stream.read(&mut answer).await.ok()?;
            (read > 0).then_some(stream)
        }
        Hostile::SendsHalfAHead => {
            stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n").await.ok()?;
            Some(stream)
        }
        Hostile::SendsNothing => Some(stream),
    }
}

/// Opens `connections` hostile connections, 64 at a time, and returns those that stay open.
async fn attack(proxy: SocketAddr, connections: usize, kinds: &[Hostile]) -> Vec<TcpStream> {
    let at_once = Arc::new(Semaphore::new(64));
    let mut attempts = JoinSet::new();
    for (_, kind) in (0..connections).zip(kinds.iter().copied().cycle()) {
        let at_once = Arc::clone(&at_once);
        attempts.spawn(async move {
            let _one = at_once.acquire().await.ok()?;
            within(hostile(proxy, kind)).await
        });
    }
    let mut open = Vec::new();
    while let Some(attempt) = attempts.join_next().await {
        open.extend(attempt.expect("no panic"));
    }
    open
}

async fn until(is_so: impl Fn() -> bool) {
    within(async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// Refuses every request, like a limit that is used up.
fn refuses() -> impl tower_layer::Layer<
    Forward,
    Service: tower_service::Service<
        Request<RequestBody>,
        Response = Response<Full<Bytes>>,
        Error = Infallible,
        Future: Send,
    > + Clone
                 + Send
                 + 'static,
> + Send
+ 'static {
    layer_fn(|_: Forward| {
        service_fn(|_: Request<RequestBody>| async {
            let mut refusal = Response::new(Full::default());
            *refusal.status_mut() = StatusCode::TOO_MANY_REQUESTS;
            Ok::<_, Infallible>(refusal)
        })
    })
}

#[tokio::test]
async fn one_address_has_so_many_connections_and_another_client_is_answered() {
    let upstream = Recorder::start().await;
    let settings = settings(upstream.address);
    let metrics = settings.connection_metrics.clone();
    let most = settings.limits.connections_per_address;
    let proxy = Proxy::with(settings).await;
    let hostile = attack(proxy.address, HOSTILE_CONNECTIONS, &[Hostile::KeepsIt]).await;
    assert_eq!(statuses(&answer_to_a_good_client(proxy.address).await), [200]);
    assert!(metrics.closed(CloseReason::AddressLimit) > 0);
    assert!(metrics.open() <= most + 1, "{metrics:?}");
    assert_eq!(metrics.closed(CloseReason::Evicted), 0);
    drop(hostile);
}

#[tokio::test]
async fn one_address_takes_the_whole_proxy_and_another_client_is_answered() {
    let connections = hostile_connections();
    let upstream = Recorder::start().await;
    let mut settings = settings(upstream.address);
    settings.limits.connections = u32::try_from(connections).expect("a number");
    settings.limits.connections_per_address = 0;
    // Longer than the test waits: a client that disconnects earlier was evicted.
    settings.timeouts.request_head = Duration::from_secs(600);
    settings.timeouts.keep_alive_idle = Duration::from_secs(600);
    let metrics = settings.connection_metrics.clone();
    let proxy = Proxy::with(settings).await;
    let hostile = attack(proxy.address, connections, &HOSTILE).await;
    assert_eq!(hostile.len(), connections);
    until(|| metrics.open() as usize == connections).await;
    assert_eq!(statuses(&answer_to_a_good_client(proxy.address).await), [200]);
    assert!(metrics.closed(CloseReason::Evicted) > 0, "{metrics:?}");
    drop(hostile);
}

#[tokio::test]
async fn addresses_of_trusted_proxies_have_no_limit() {
    let mut settings = settings(canned(EMPTY).await);
    settings.limits.connections_per_address = 1;
    let trusted = settings.trusted_proxies.clone();
    let proxy = Proxy::with(settings).await;
    let kept = Client::connect(proxy.address).await;
    let open = |proxy: SocketAddr| async move {
        let answer = exchange(proxy, LAST).await;
        statuses(&answer)
    };
    assert!(open(proxy.address).await.is_empty());
    trusted.set(vec![tollgate::model::policy::Network::parse("127.0.0.0/8").expect("a network")]);
    assert_eq!(open(proxy.address).await, [200]);
    drop(kept);
}

/// Opens and keeps `kept` of ten connections.
async fn occupy(proxy: SocketAddr, metrics: &ConnectionMetrics, kept: u32) -> Vec<Client> {
    let mut clients = Vec::new();
    for _ in 0..kept {
        clients.push(Client::connect(proxy).await);
    }
    until(|| metrics.open() == kept).await;
    clients
}

#[tokio::test]
async fn a_refusal_closes_its_connection_when_the_proxy_is_nearly_full() {
    for (kept, is_closed) in [(7, false), (8, true)] {
        let mut settings = settings(canned(EMPTY).await);
        settings.limits.connections = 10;
        let metrics = settings.connection_metrics.clone();
        let proxy = Proxy::layered(settings, refuses()).await;
        let clients = occupy(proxy.address, &metrics, kept).await;
        let mut refused = Client::connect(proxy.address).await;
        refused.send(KEPT).await;
        let answer = refused.read_response().await;
        assert_eq!(statuses(&answer), [429]);
        assert_eq!(header(&answer, "connection"), is_closed.then_some("close"), "{answer}");
        if is_closed {
            assert_eq!(refused.read_to_end().await, "");
            until(|| metrics.closed(CloseReason::Refused) == 1).await;
        }
        drop(clients);
    }
}

#[tokio::test]
async fn a_refusal_closes_its_http_2_connection_when_the_proxy_is_nearly_full() {
    let mut settings = settings(canned(EMPTY).await);
    settings.limits.connections = 10;
    let metrics = settings.connection_metrics.clone();
    let proxy = Proxy::layered(settings, refuses()).await;
    let clients = occupy(proxy.address, &metrics, 8).await;
    let mut refused = connect(proxy.address, 65_535).await;
    assert_eq!(send_request(&mut refused).await.status(), StatusCode::TOO_MANY_REQUESTS);
    until(|| refused.is_closed()).await;
    until(|| metrics.closed(CloseReason::Refused) == 1).await;
    drop(clients);
}
