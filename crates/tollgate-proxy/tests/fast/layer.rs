use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{Either, Full};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tollgate::tower::{Peer, UpstreamFailed};
use tollgate_proxy::{Forward, RequestBody, ResponseBody};
use tower::{ServiceExt, util::service_fn};
use tower_layer::layer_fn;

use crate::{
    setup::{Client, Proxy, exchange, settings, statuses},
    upstream::{Recorder, canned},
};

const REQUEST: &str = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/// Returns whether the response to [`REQUEST`] is marked as the proxy's own.
async fn is_marked(upstream: std::net::SocketAddr) -> bool {
    let marks = Arc::new(Mutex::new(Vec::new()));
    let memory = Arc::clone(&marks);
    let layer = layer_fn(move |forward: Forward| {
        let memory = Arc::clone(&memory);
        service_fn(move |request: Request<RequestBody>| {
            let (forward, memory) = (forward.clone(), Arc::clone(&memory));
            async move {
                let answer: Response<ResponseBody> = forward.oneshot(request).await?;
                memory.lock().push(answer.extensions().get::<UpstreamFailed>().is_some());
                Ok::<_, Infallible>(answer)
            }
        })
    });
    let proxy = Proxy::layered(settings(upstream), layer).await;
    exchange(proxy.address, REQUEST).await;
    let marks = marks.lock();
    assert_eq!(marks.len(), 1);
    marks[0]
}

#[tokio::test]
async fn only_the_proxys_own_502_is_marked() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let closed = listener.local_addr().expect("an address");
    drop(listener);
    assert!(is_marked(closed).await);
    assert!(is_marked(canned("no http").await).await);
    let its_own = canned("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n").await;
    assert!(!is_marked(its_own).await);
    assert!(!is_marked(canned("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await).await);
}

#[tokio::test]
async fn a_layer_answers_in_place_of_the_upstream_and_knows_the_peer() {
    let upstream = Recorder::start().await;
    let layer = layer_fn(|forward: Forward| {
        service_fn(move |request: Request<RequestBody>| {
            let forward = forward.clone();
            async move {
                let Peer(peer) = *request.extensions().get::<Peer>().expect("a peer");
                if request.uri().path() == "/allowed" {
                    return Ok(forward.oneshot(request).await?.map(Either::Left));
                }
                let mut refusal = Response::new(Full::<Bytes>::from(peer.ip().to_string()));
                *refusal.status_mut() = StatusCode::TOO_MANY_REQUESTS;
                Ok::<_, Infallible>(refusal.map(Either::Right))
            }
        })
    });
    let proxy = Proxy::layered(settings(upstream.address), layer).await;
    let mut client = Client::connect(proxy.address).await;
    // After a refused upgrade the connection still uses HTTP, and a refused body that was sent
    // completely does not close it.
    client
        .send("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
        .await;
    assert!(client.read_response().await.ends_with("127.0.0.1"));
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc").await;
    assert_eq!(statuses(&client.read_response().await), [429]);
    client.send("GET /allowed HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(statuses(&client.read_response().await), [200]);
    assert_eq!(upstream.take_one().line, "GET /allowed");
}
