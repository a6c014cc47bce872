use std::{sync::Arc, time::Duration};

use http::{Request, Response};
use http_body_util::Full;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tollgate_proxy::{Error, Forward, RequestBody, run};
use tower::{ServiceExt, util::service_fn};
use tower_layer::layer_fn;

use crate::{
    setup::{Client, Proxy, header, settings, statuses, within},
    upstream::{read_head, serve, serve_raw},
};

const REQUEST: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// An upstream that reports each request by `arrived`, and answers it when `released` allows.
struct Held {
    arrived: Arc<Semaphore>,
    released: Arc<Semaphore>,
}

impl Held {
    async fn start() -> (Self, std::net::SocketAddr) {
        let held = Self { arrived: gate(), released: gate() };
        let (arrived, released) = (Arc::clone(&held.arrived), Arc::clone(&held.released));
        let address = serve(move |_| {
            let (arrived, released) = (Arc::clone(&arrived), Arc::clone(&released));
            async move {
                arrived.add_permits(1);
                released.acquire().await.expect("open").forget();
                Response::new(Full::<bytes::Bytes>::from("done"))
            }
        })
        .await;
        (held, address)
    }

    async fn arrival(&self) {
        within(self.arrived.acquire()).await.expect("open").forget();
    }
}

fn gate() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(0))
}

#[tokio::test]
async fn a_request_in_flight_is_finished_and_no_more_are_accepted() {
    let (held, upstream) = Held::start().await;
    let proxy = Proxy::start(upstream).await;
    let address = proxy.address;
    let mut busy = Client::connect(address).await;
    busy.send(REQUEST).await;
    held.arrival().await;
    let mut idle = Client::connect(address).await;

    let ended = proxy.stop();
    assert_eq!(idle.read_to_end().await, "");
    within(async { while TcpStream::connect(address).await.is_ok() {} }).await;
    assert!(!ended.is_finished());

    held.released.add_permits(1);
    let answer = busy.read_to_end().await;
    assert_eq!(statuses(&answer), [200]);
    assert!(answer.ends_with("done"), "{answer}");
    assert_eq!(header(&answer, "connection"), Some("close"), "{answer}");
    assert_eq!(within(ended).await.expect("no panic"), Ok(()));
}

#[tokio::test]
async fn a_client_that_kept_its_connection_may_ask_once_more_and_is_reported() {
    let (held, upstream) = Held::start().await;
    let proxy = Proxy::start(upstream).await;
    let address = proxy.address;
    held.released.add_permits(3);
    let (mut kept, mut fresh) = (Client::connect(address).await, Client::connect(address).await);
    kept.send(REQUEST).await;
    assert_eq!(header(&kept.read_until("done").await, "connection"), None);

    let ended = proxy.stop();
    within(async { while TcpStream::connect(address).await.is_ok() {} }).await;
    for client in [&mut kept, &mut fresh] {
        client.send(REQUEST).await;
        let answer = client.read_to_end().await;
        assert_eq!(statuses(&answer), [200]);
        assert_eq!(header(&answer, "connection"), Some("close"), "{answer}");
    }
    assert_eq!(within(ended).await.expect("no panic"), Ok(()));
}

#[tokio::test]
async fn what_outlasts_the_drain_is_cut_off_and_reported() {
    let (held, upstream) = Held::start().await;
    let mut settings = settings(upstream);
    settings.timeouts.drain = Duration::from_millis(50);
    let proxy = Proxy::with(settings).await;
    let mut client = Client::connect(proxy.address).await;
    client.send(REQUEST).await;
    held.arrival().await;

    let ended = within(proxy.stop()).await.expect("no panic");
    let waited = Duration::from_millis(50);
    assert_eq!(ended, Err(Error::DrainTimeout { connections: 1, waited }));
    assert_eq!(client.read_to_end().await, "");
}

/// The bug: `run` returned before the connections that it cut off had ended. The process then ended
/// its runtime, and the permits of their requests were held until they expired.
#[tokio::test]
async fn connections_that_were_cut_off_outlived_the_proxy() {
    const CLIENTS: u32 = 50;
    let (held, upstream) = Held::start().await;
    let mut settings = settings(upstream);
    settings.timeouts.drain = Duration::from_millis(50);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    // A request has one of the permits while it is in flight.
    let permits = Arc::new(Semaphore::new(CLIENTS as usize));
    let of_requests = Arc::clone(&permits);
    let layer = layer_fn(move |forward: Forward| {
        let permits = Arc::clone(&of_requests);
        service_fn(move |request: Request<RequestBody>| {
            let (forward, permits) = (forward.clone(), Arc::clone(&permits));
            async move {
                let _permit = permits.acquire().await.expect("open");
                forward.oneshot(request).await
            }
        })
    });
    let mut clients = Vec::new();
    let shutdown = async {
        for _ in 0..CLIENTS {
            let mut client = Client::connect(address).await;
            client.send(REQUEST).await;
            clients.push(client);
        }
        within(held.arrived.acquire_many(CLIENTS)).await.expect("open").forget();
    };
    let ended = run(listener, settings, layer, shutdown).await;
    assert!(matches!(ended, Err(Error::DrainTimeout { connections: CLIENTS, .. })), "{ended:?}");
    assert_eq!(permits.available_permits(), CLIENTS as usize);
}

#[tokio::test]
async fn an_open_tunnel_is_given_the_drain_and_then_cut_off() {
    let upstream = canned_open(
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\nhi",
    )
    .await;
    let mut settings = settings(upstream);
    settings.timeouts.drain = Duration::from_millis(50);
    let proxy = Proxy::with(settings).await;
    let mut client = Client::connect(proxy.address).await;
    client
        .send("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
        .await;
    client.read_until("\r\n\r\nhi").await;
    let ended = within(proxy.stop()).await.expect("no panic");
    assert!(matches!(ended, Err(Error::DrainTimeout { connections: 1, .. })), "{ended:?}");
    assert_eq!(client.read_to_end().await, "");
}

/// Starts an upstream that sends `answer` and keeps the connection open.
async fn canned_open(answer: &'static str) -> std::net::SocketAddr {
    use tokio::io::AsyncWriteExt;
    serve_raw(move |mut stream| async move {
        read_head(&mut stream).await;
        stream.write_all(answer.as_bytes()).await.expect("the proxy reads");
        std::future::pending::<()>().await;
    })
    .await
}

#[tokio::test]
async fn settings_that_cannot_work_are_refused_at_once() {
    let mut settings = settings("127.0.0.1:9".parse().expect("an address"));
    settings.limits.connections = 0;
    let proxy = Proxy::with(settings).await;
    let ended = within(proxy.ended()).await.expect("no panic");
    assert_eq!(ended, Err(Error::Zero { name: "limits.connections" }));
}
