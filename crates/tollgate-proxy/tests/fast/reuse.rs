//! Connections to the upstream: reused, closed, and never shared by two requests.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::Response;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::mpsc,
    time::sleep,
};

use crate::{
    setup::{Client, Proxy, settings, statuses, within},
    upstream::{read_head, serve, serve_raw},
};

const REQUEST: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const ANSWER: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// Starts an upstream that answers every request of each connection. Returns its address and the
/// number of its connections.
async fn counting(answer: &'static str) -> (SocketAddr, Arc<AtomicUsize>) {
    let connections = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&connections);
    let address = serve_raw(move |mut stream| {
        count.fetch_add(1, Ordering::SeqCst);
        async move {
            while !read_head(&mut stream).await.is_empty() {
                stream.write_all(answer.as_bytes()).await.expect("the proxy reads");
            }
        }
    })
    .await;
    (address, connections)
}

#[tokio::test]
async fn one_connection_serves_one_request_after_another() {
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    let empty = "HTTP/1.1 204 No Content\r\n\r\n";
    for (answer, end) in [(ANSWER, "ok"), (chunked, "\r\n0\r\n\r\n"), (empty, "\r\n\r\n")] {
        let (upstream, connections) = counting(answer).await;
        let proxy = Proxy::start(upstream).await;
        for _ in 0..3 {
            let mut client = Client::connect(proxy.address).await;
            for _ in 0..3 {
                client.send(REQUEST).await;
                client.read_until(end).await;
            }
        }
        assert_eq!(connections.load(Ordering::SeqCst), 1, "{answer:?}");
    }
}

#[tokio::test]
async fn a_connection_that_the_upstream_ended_is_not_used_again() {
    let (sender, mut reply) = mpsc::channel(8);
    let upstream = serve_raw(move |mut stream| {
        let sender = sender.clone();
        async move {
            read_head(&mut stream).await;
            stream.write_all(ANSWER.as_bytes()).await.expect("the proxy reads");
            drop(stream);
            sender.send(()).await.expect("the test waits");
        }
    })
    .await;
    let proxy = Proxy::start(upstream).await;
    let mut client = Client::connect(proxy.address).await;
    for _ in 0..3 {
        client.send(REQUEST).await;
        assert_eq!(statuses(&client.read_response().await), [200]);
        within(reply.recv()).await.expect("the end of the connection");
    }
}

#[tokio::test]
async fn a_connection_that_idles_is_closed() {
    let (sender, mut reply) = mpsc::channel(8);
    let upstream = serve_raw(move |mut stream| {
        let sender = sender.clone();
        async move {
            read_head(&mut stream).await;
            stream.write_all(ANSWER.as_bytes()).await.expect("the proxy reads");
            let rest = stream.read_to_end(&mut Vec::new()).await;
            sender.send(rest.unwrap_or(0)).await.expect("the test waits");
        }
    })
    .await;
    let mut settings = settings(upstream);
    settings.timeouts.keep_alive_idle = Duration::from_millis(20);
    let proxy = Proxy::with(settings).await;
    let mut client = Client::connect(proxy.address).await;
    client.send(REQUEST).await;
    assert_eq!(statuses(&client.read_response().await), [200]);
    assert_eq!(within(reply.recv()).await, Some(0));
}

#[tokio::test]
async fn a_response_that_begins_before_the_end_of_its_request_is_not_cut_off() {
    let upstream = serve(|request| async move { Response::new(request.into_body()) }).await;
    let mut settings = settings(upstream);
    settings.timeouts.keep_alive_idle = Duration::from_millis(500);
    let proxy = Proxy::with(settings).await;
    let mut client = Client::connect(proxy.address).await;
    client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n").await;
    client.send("3\r\none\r\n").await;
    client.read_until("one").await;
    sleep(Duration::from_secs(1)).await;
    client.send("3\r\ntwo\r\n0\r\n\r\n").await;
    client.read_until("two\r\n0\r\n\r\n").await;
}

#[tokio::test]
async fn a_client_that_reads_after_all_was_sent_gets_a_response_that_came_before() {
    // More than all socket buffers on the way can contain.
    const BYTES: usize = 9 * 1024 * 1024;
    let upstream = serve_raw(|stream| async move {
        let (mut reader, mut writer) = stream.into_split();
        let mut first = [0];
        reader.read_exact(&mut first).await.expect("the request's first byte");
        let upload = async {
            let mut rest = Vec::new();
            while !rest.ends_with(b"end") {
                assert!(
                    reader.read_buf(&mut rest).await.expect("bytes") > 0,
                    "the upload ended early"
                );
            }
        };
        let answer = async {
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {BYTES}\r\n\r\n");
            writer.write_all(head.as_bytes()).await.expect("the proxy reads");
            writer.write_all(&vec![b'y'; BYTES]).await.expect("the proxy reads");
        };
        tokio::join!(upload, answer);
    })
    .await;
    let proxy = Proxy::start(upstream).await;
    let mut client = Client::connect(proxy.address).await;
    client.send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {BYTES}\r\n\r\n")).await;
    client.send(vec![b'x'; BYTES - 3]).await;
    client.send("end").await;
    let answer = within(client.read_response()).await;
    assert_eq!(statuses(&answer), [200]);
    assert_eq!(answer.bytes().filter(|&byte| byte == b'y').count(), BYTES);
}
