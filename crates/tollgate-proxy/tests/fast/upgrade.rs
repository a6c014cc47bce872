use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::mpsc,
};

use crate::{
    setup::{Client, Proxy, exchange, header, settings, statuses, within},
    upstream::{Recorder, read_head, serve_raw},
};

const WISH: &str = "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
const AGREED: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\n\
                        upgrade: WebSocket\r\nsec-websocket-accept: x\r\n\r\n";

async fn echo(mut stream: TcpStream) {
    let (mut reader, mut writer) = stream.split();
    // Returns at the end of the tunnel.
    let _ = tokio::io::copy(&mut reader, &mut writer).await;
    let _ = writer.shutdown().await;
}

#[tokio::test]
async fn an_agreed_upgrade_is_spliced() {
    let upstream = serve_raw(|mut stream| async move {
        let head = read_head(&mut stream).await.to_ascii_lowercase();
        assert!(head.contains("\r\nupgrade: websocket\r\n"), "{head}");
        assert!(head.contains("\r\nconnection: upgrade\r\n"), "{head}");
        assert!(head.contains("\r\nsec-websocket-key: "), "{head}");
        stream.write_all(AGREED).await.expect("the proxy reads");
        echo(stream).await;
    })
    .await;
    let proxy = Proxy::start(upstream).await;
    let mut client = Client::connect(proxy.address).await;
    client.send(WISH).await;
    let head = client.read_until("\r\n\r\n").await;
    assert_eq!(statuses(&head), [101]);
    assert_eq!(header(&head, "upgrade"), Some("websocket"));
    assert_eq!(header(&head, "sec-websocket-accept"), Some("x"));
    // Bytes that are not HTTP.
    for message in ["\0\r\n\n", "GET / HTTP/9\n", "bye"] {
        client.send(message).await;
        client.read_until(message).await;
    }
}

/// The bug: an open tunnel was not counted as in flight, so the balance between addresses ignored
/// it.
#[tokio::test]
async fn a_tunnel_was_not_in_flight_to_its_upstream() {
    let upstream = serve_raw(|mut stream| async move {
        read_head(&mut stream).await;
        stream.write_all(AGREED).await.expect("the proxy reads");
        echo(stream).await;
    })
    .await;
    let settings = settings(upstream);
    let metrics = settings.upstream_metrics.clone();
    let in_flight = || metrics.addresses().iter().map(|one| one.in_flight).sum::<u32>();
    let proxy = Proxy::with(settings).await;
    let mut client = Client::connect(proxy.address).await;
    client.send(WISH).await;
    client.read_until("\r\n\r\n").await;
    client.send("through the tunnel").await;
    client.read_until("through the tunnel").await;
    assert_eq!(in_flight(), 1);
    drop(client);
    within(async {
        while in_flight() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn bytes_sent_early_wait_for_the_101() {
    let (early, mut observed) = mpsc::channel(1);
    let (agree, agreed) = mpsc::channel::<()>(1);
    let agreed = std::sync::Arc::new(tokio::sync::Mutex::new(agreed));
    let upstream = serve_raw(move |mut stream| {
        let (early, agreed) = (early.clone(), std::sync::Arc::clone(&agreed));
        async move {
            let head = read_head(&mut stream).await;
            let after_head = head.split_once("\r\n\r\n").map(|(_, rest)| rest.to_owned());
            early.send(after_head).await.expect("the test waits");
            agreed.lock().await.recv().await;
            let mut more = [0; 64];
            let before_101 = stream.try_read(&mut more);
            assert!(before_101.is_err(), "bytes came before the 101: {before_101:?}");
            stream.write_all(AGREED).await.expect("the proxy reads");
            echo(stream).await;
        }
    })
    .await;
    let proxy = Proxy::start(upstream).await;
    let mut client = Client::connect(proxy.address).await;
    client.send(format!("{WISH}early bytes")).await;
    assert_eq!(within(observed.recv()).await.expect("a head"), Some(String::new()));
    agree.send(()).await.expect("the upstream waits");
    client.read_until("\r\n\r\n").await;
    client.read_until("early bytes").await;
}

#[tokio::test]
async fn a_declined_upgrade_smuggles_nothing() {
    // The bytes after the request are checked and counted as a separate request.
    let upstream = Recorder::start().await;
    let proxy = Proxy::start(upstream.address).await;
    let sound = "GET /next HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let answer = exchange(proxy.address, format!("{WISH}{sound}")).await;
    assert_eq!(statuses(&answer), [200, 200], "{answer}");
    let lines: Vec<_> = upstream.take().into_iter().map(|observed| observed.line).collect();
    assert_eq!(lines, ["GET /chat", "GET /next"]);

    let unsound = "GET /next HTTP/1.1\r\nHost : a\r\n\r\n";
    let answer = exchange(proxy.address, format!("{WISH}{unsound}")).await;
    assert_eq!(statuses(&answer), [200, 400], "{answer}");
    assert_eq!(upstream.take_one().line, "GET /chat");
}

#[tokio::test]
async fn a_protocol_that_is_not_offered_is_not_asked_for() {
    let upstream = Recorder::start().await;
    let proxy = Proxy::start(upstream.address).await;
    let request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings, close\r\n\
                   Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n";
    assert_eq!(statuses(&exchange(proxy.address, request).await), [200]);
    let observed = upstream.take_one();
    assert!(!observed.headers.contains_key("upgrade"));
    assert!(!observed.headers.contains_key("http2-settings"));
}

#[tokio::test]
async fn another_protocol_than_asked_for_is_a_502() {
    let upstream = crate::upstream::canned(
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n",
    )
    .await;
    let proxy = Proxy::start(upstream).await;
    let mut client = Client::connect(proxy.address).await;
    client.send(WISH).await;
    assert_eq!(statuses(&client.read_response().await), [502]);
}

#[tokio::test]
async fn a_tunnel_ends_with_either_side_or_with_silence() {
    let (closed, mut closing) = mpsc::channel(1);
    let upstream = serve_raw(move |mut stream| {
        let closed = closed.clone();
        async move {
            read_head(&mut stream).await;
            stream.write_all(AGREED).await.expect("the proxy reads");
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest).await;
            closed.send(()).await.expect("the test waits");
        }
    })
    .await;
    let mut settings = settings(upstream);
    settings.timeouts.tunnel_idle = std::time::Duration::from_secs(1);
    let patient = Proxy::start(upstream).await;
    let mut client = Client::connect(patient.address).await;
    client.send(WISH).await;
    client.read_until("\r\n\r\n").await;
    drop(client);
    within(closing.recv()).await.expect("the client's end is passed on");

    let impatient = Proxy::with(settings).await;
    let mut client = Client::connect(impatient.address).await;
    client.send(WISH).await;
    client.read_until("\r\n\r\n").await;
    assert_eq!(client.read_to_end().await, "");
    within(closing.recv()).await.expect("silence ends the other side too");
}
