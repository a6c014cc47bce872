use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::mpsc,
};

use crate::{
    setup::{Client, Proxy, within},
    upstream::{read_head, serve_raw},
};

/// Starts an upstream that sends `answer`, and then reports the bytes that it reads until the proxy
/// closes the connection.
async fn witness(answer: &'static str) -> (std::net::SocketAddr, mpsc::Receiver<String>) {
    let (sender, reply) = mpsc::channel(8);
    let address = serve_raw(move |mut stream| {
        let sender = sender.clone();
        async move {
            sender.send(read_head(&mut stream).await).await.expect("the test waits");
            stream.write_all(answer.as_bytes()).await.expect("the proxy reads");
            let mut rest = Vec::new();
            // The connection may end with a reset.
            let _ = stream.read_to_end(&mut rest).await;
            sender.send(String::from_utf8_lossy(&rest).into_owned()).await.expect("the test waits");
        }
    })
    .await;
    (address, reply)
}

#[tokio::test]
async fn a_client_that_leaves_before_the_response_ends_the_upstreams_work() {
    let (upstream, mut reply) = witness("").await;
    let proxy = Proxy::start(upstream).await;
    let mut client = Client::connect(proxy.address).await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    within(reply.recv()).await.expect("the request");
    drop(client);
    within(reply.recv()).await.expect("the end");
}

#[tokio::test]
async fn a_client_that_leaves_mid_response_ends_the_upstreams_work() {
    let (upstream, mut reply) =
        witness("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n").await;
    let proxy = Proxy::start(upstream).await;
    let mut client = Client::connect(proxy.address).await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    client.read_until("hello").await;
    drop(client);
    within(reply.recv()).await.expect("the request");
    within(reply.recv()).await.expect("the end");
}

#[tokio::test]
async fn a_client_that_leaves_mid_upload_does_not_complete_it() {
    let (upstream, mut reply) = witness("").await;
    let proxy = Proxy::start(upstream).await;
    let mut client = Client::connect(proxy.address).await;
    client
        .send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        .await;
    let start = within(reply.recv()).await.expect("the request");
    drop(client);
    let rest = within(reply.recv()).await.expect("the end");
    let sent = start + &rest;
    assert!(!sent.contains("\r\n0\r\n"), "a broken upload must not look whole: {sent}");
}

#[tokio::test]
async fn an_upload_whose_framing_breaks_does_not_complete_either() {
    let (upstream, mut reply) = witness("").await;
    let proxy = Proxy::start(upstream).await;
    let mut client = Client::connect(proxy.address).await;
    client
        .send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        .await;
    let start = within(reply.recv()).await.expect("the request");
    client.send("-1\r\n").await;
    let answer = client.read_response().await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(answer.contains("chunk size"), "{answer}");
    let rest = within(reply.recv()).await.expect("the end");
    let sent = start + &rest;
    assert!(!sent.contains("\r\n0\r\n"), "a broken upload must not look whole: {sent}");
}
