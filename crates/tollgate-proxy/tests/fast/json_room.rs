//! The memory for JSON bodies that are read before the decision, and clients that try to use it up.

use std::{convert::Infallible, net::SocketAddr, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
};
use tollgate::{model::policy::Network, tower::UnreadBody};
use tollgate_proxy::{Forward, RequestBody, Settings};
use tower::util::service_fn;
use tower_layer::layer_fn;

use crate::setup::{Proxy, settings, within};

/// The longest body that the proxy reads in advance.
const LONGEST: usize = 256 * 1024;
const HOSTILE: [u8; 4] = [127, 0, 0, 1];
const GOOD: [u8; 4] = [127, 0, 0, 2];

/// Starts a proxy that reads JSON bodies, and responds with the reason if it did not read a body.
async fn reading(mut settings: Settings) -> Proxy {
    settings.json_bodies.enable();
    settings.limits.connections_per_address = 0;
    let layer = layer_fn(|_: Forward| {
        service_fn(|request: Request<RequestBody>| {
            let read = match request.extensions().get::<UnreadBody>() {
                None => "read".to_owned(),
                Some(UnreadBody(reason)) => format!("{reason:?}"),
            };
            async { Ok::<_, Infallible>(Response::new(Full::<Bytes>::from(read))) }
        })
    });
    Proxy::layered(settings, layer).await
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
    let proxy = reading(settings).await;
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
    let proxy = reading(settings).await;
    let mut stalled = Vec::new();
    while treated(proxy.address, HOSTILE).await != "BodyRoom" {
        stalled.push(send(proxy.address, HOSTILE, LONGEST, LONGEST - 1).await);
    }
    assert_eq!(treated(proxy.address, GOOD).await, "read");
    // The clients of a trusted proxy have no share together.
    trusted.set(vec![Network::parse("127.0.0.0/8").expect("a network")]);
    assert_eq!(treated(proxy.address, HOSTILE).await, "read");
}
