//! A JSON body that is read for the layer needs only memory for its bytes, in however many pieces
//! it arrives.
//!
//! The test is a separate binary, because it counts the allocations of the whole process.

use std::{alloc::System, convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use cap::Cap;
use http::{Request, Response};
use http_body_util::Full;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{Semaphore, mpsc},
    time::timeout,
};
use tollgate::tower::JsonBody;
use tollgate_proxy::{Forward, RequestBody, Settings, run};
use tower::util::service_fn;
use tower_layer::layer_fn;

#[global_allocator]
static ALLOCATED: Cap<System> = Cap::new(System, usize::MAX);

const REQUESTS: usize = 4;
const BYTES: usize = 50_000;

/// The most memory of one request, in bytes: its body in a buffer that grew by doubling, and the
/// buffers of its connection.
const EACH: usize = 320 * 1024;

#[tokio::test]
async fn a_body_in_pieces_of_a_byte_takes_its_bytes() {
    let (arrived, mut arrivals) = mpsc::unbounded_channel();
    let open = Arc::new(Semaphore::new(0));
    let gate = Arc::clone(&open);
    // Holds each request in the layer until all have arrived.
    let layer = layer_fn(move |_: Forward| {
        let (arrived, gate) = (arrived.clone(), Arc::clone(&gate));
        service_fn(move |request: Request<RequestBody>| {
            let (arrived, gate) = (arrived.clone(), Arc::clone(&gate));
            async move {
                let read = request.extensions().get::<JsonBody>().map_or(0, |body| body.0.len());
                arrived.send(read).expect("the test waits");
                let _passed = gate.acquire().await.expect("a gate");
                Ok::<_, Infallible>(Response::new(Full::<Bytes>::from("held")))
            }
        })
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let settings = Settings::new("http://127.0.0.1:9".parse().expect("an upstream"));
    settings.json_bodies.enable();
    tokio::spawn(run(listener, settings, layer, std::future::pending()));

    let head = "POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-type: application/json\r\n\
                transfer-encoding: chunked\r\n\r\n";
    let request = Bytes::from(format!("{head}{}0\r\n\r\n", "1\r\n1\r\n".repeat(BYTES)));
    let before = ALLOCATED.allocated();
    let clients: Vec<_> = (0..REQUESTS)
        .map(|_| {
            let request = request.clone();
            tokio::spawn(async move {
                let mut stream = TcpStream::connect(address).await.expect("the proxy accepts");
                stream.write_all(&request).await.expect("the proxy reads");
                let mut answer = String::new();
                stream.read_to_string(&mut answer).await.expect("an answer");
                assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            })
        })
        .collect();
    for _ in 0..REQUESTS {
        let read = timeout(Duration::from_secs(60), arrivals.recv()).await.expect("no hang");
        assert_eq!(read, Some(BYTES));
    }
    let grown = ALLOCATED.allocated().saturating_sub(before);
    open.add_permits(REQUESTS);
    for client in clients {
        client.await.expect("an answer");
    }
    assert!(grown <= REQUESTS * EACH, "{grown} bytes for {REQUESTS} requests");
}
