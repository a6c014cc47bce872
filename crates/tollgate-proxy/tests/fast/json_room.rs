//! The memory for JSON bodies that are read before the decision, and clients that try to use it up.

use std::{convert::Infallible, future::pending, net::SocketAddr, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::Full;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    sync::mpsc,
};
use tollgate::{model::policy::Network, tower::UnreadBody};
use tollgate_proxy::{Forward, RequestBody, Settings};
use tower::util::service_fn;
use tower_layer::layer_fn;

use crate::setup::{Proxy, settings, within};

/// The longest body that the proxy reads in advance.
const LONGEST: usize = 256 * 1024;
/// The number of the longest bodies that take all the memory for one address.
const BODIES_OF_ADDRESS: usize = 32;
const HOSTILE: [u8; 4] = [127, 0, 0, 1];
const GOOD: [u8; 4] = [127, 0, 0, 2];

/// Starts a proxy that reads JSON bodies, and responds with the reason if it did not read a body.
/// The proxy holds requests with one of the longest bodies after the read, and the channel reports
/// each of them. The memory of such a body stays in use.
async fn reading(mut settings: Settings) -> (Proxy, mpsc::UnboundedReceiver<()>) {
    let (holds, held) = mpsc::unbounded_channel();
    settings.json_bodies.enable();
    settings.limits.connections_per_address = 0;
    let layer = layer_fn(move |_: Forward| {
        let holds = holds.clone();
        service_fn(move |request: Request<RequestBody>| {
            let holds = holds.clone();
            let read = match request.extensions().get::<UnreadBody>() {
                None => "read".to_owned(),
                Some(UnreadBody(reason)) => format!("{reason:?}"),
            };
            async move {
                if request.body().size_hint().lower() == LONGEST as u64 {
                    holds.send(()).expect("the test runs");
                    pending::<()>().await;
                }
                drop(request);
                Ok::<_, Infallible>(Response::new(Full::<Bytes>::from(read)))
            }
        })
    });
    (Proxy::layered(settings, layer).await, held)
}

/// Sends a request with a body of `length` bytes, of which `sent` are sent.
async fn send(proxy: SocketAddr, from: [u8; 4], length: usize, sent: usize) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(SocketAddr::from((from, 0))).expect("an address of the loopback");
    let mut stream = within(socket.connect(proxy)).await.expect("the proxy accepts");
    let head = format!(
        "POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n"
    );
    let request = [head.as_bytes(), &vec![b' '; sent]].concat();
    within(stream.write_all(&request)).await.expect("the proxy reads");
    stream
}

/// Returns how a request with a short and complete body is treated.
async fn treated(proxy: SocketAddr, from: [u8; 4]) -> String {
    let mut stream = send(proxy, from, 2, 2).await;
    let mut answer = String::new();
    within(stream.read_to_string(&mut answer)).await.expect("an answer");
    answer.rsplit("\r\n").next().unwrap_or_default().to_owned()
}

fn unused() -> Settings {
    settings("127.0.0.1:9".parse().expect("an address"))
}

/// The bug: a request reserved memory for its whole body before a byte had arrived. 256 requests
/// without a byte took all the memory, and no JSON body of any client was read.
#[tokio::test]
async fn bodies_that_never_arrived_took_the_memory_of_others() {
    let settings = unused();
    let metrics = settings.connection_metrics.clone();
    let (proxy, _held) = reading(settings).await;
    let mut silent = Vec::new();
    for _ in 0..300 {
        silent.push(send(proxy.address, HOSTILE, LONGEST, 0).await);
    }
    within(async {
        while metrics.open() < 300 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    // The requests arrive one after the other, and each takes its memory at once.
    for _ in 0..20 {
        assert_eq!(treated(proxy.address, GOOD).await, "read");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The bug: one client could use up the memory for the bodies of all clients.
#[tokio::test]
async fn one_address_took_the_memory_of_others() {
    let settings = unused();
    let trusted = settings.trusted_proxies.clone();
    let (proxy, mut held) = reading(settings).await;
    let mut waiting = Vec::new();
    for _ in 0..BODIES_OF_ADDRESS {
        waiting.push(send(proxy.address, HOSTILE, LONGEST, LONGEST).await);
        within(held.recv()).await.expect("the request is held");
    }
    assert_eq!(treated(proxy.address, HOSTILE).await, "BodyRoom");
    assert_eq!(treated(proxy.address, GOOD).await, "read");
    // The clients of a trusted proxy have no share together.
    trusted.set(vec![Network::parse("127.0.0.0/8").expect("a network")]);
    assert_eq!(treated(proxy.address, HOSTILE).await, "read");
}
