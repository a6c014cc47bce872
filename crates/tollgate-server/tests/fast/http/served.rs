//! The listener on real sockets: both versions of HTTP, slow clients, and a drain.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tollgate_server::{CloseReason, ConnectionLimits, HttpOptions};

use crate::http::server::Server;

const BODY: &str = r#"{"limits":[{"name":"everybody"}]}"#;

fn head(path: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        BODY.len()
    )
}

/// Reads one response with a `content-length`.
async fn answer(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8(bytes.clone()).unwrap();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.unwrap().parse().unwrap() {
                return text;
            }
        }
        assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0, "closed after {text:?}");
    }
}

#[tokio::test]
async fn a_connection_is_used_again_and_answers_come_in_order() {
    let server = Server::start(HttpOptions::default(), ConnectionLimits::default());
    let mut stream = server.connect().await;
    let two = format!("{}{BODY}{}{BODY}", head("/v1/check"), head("/v1/nothing"));
    stream.write_all(two.as_bytes()).await.unwrap();
    assert!(answer(&mut stream).await.starts_with("HTTP/1.1 200 OK\r\n"));
    stream.write_all(format!("{}{BODY}", head("/v1/check")).as_bytes()).await.unwrap();
    let mut rest = Vec::new();
    while !String::from_utf8_lossy(&rest).contains("\"used\":2") {
        assert_ne!(stream.read_buf(&mut rest).await.unwrap(), 0);
    }
    server.end().await.unwrap();
}

/// Connections with incomplete heads and bodies are closed while others are served.
#[tokio::test]
async fn slow_clients_are_closed_while_others_are_served() {
    let limits = ConnectionLimits { request: Duration::from_millis(200), ..Default::default() };
    let server = Server::start(HttpOptions::default(), limits);
    let mut slow = Vec::new();
    for sent in [&head("/v1/check")[..30], &head("/v1/check")[..1]] {
        for _ in 0..100 {
            let mut stream = server.connect().await;
            stream.write_all(sent.as_bytes()).await.unwrap();
            slow.push(stream);
        }
    }
    let mut good = server.connect().await;
    for stream in &mut slow {
        good.write_all(format!("{}{BODY}", head("/v1/check")).as_bytes()).await.unwrap();
        assert!(answer(&mut good).await.starts_with("HTTP/1.1 200 OK\r\n"));
        let mut rest = Vec::new();
        // The connection ends, cleanly or by a reset, and no client waits forever.
        let _ = stream.read_to_end(&mut rest).await;
    }
    server.end().await.unwrap();
}

/// A full listener closes the connections that have been idle for longest, and keeps one slot free
/// for the next client.
#[tokio::test]
async fn a_full_listener_closes_who_was_idle_for_longest_and_serves_the_others() {
    let limits = ConnectionLimits { at_once: 3, ..Default::default() };
    let server = Server::start(HttpOptions::default(), limits);
    let check = format!("{}{BODY}", head("/v1/check"));
    let send = async |stream: &mut TcpStream| {
        stream.write_all(check.as_bytes()).await.unwrap();
        assert!(answer(stream).await.starts_with("HTTP/1.1 200 OK\r\n"));
    };
    let mut clients = Vec::new();
    for _ in 0..4 {
        let mut client = server.connect().await;
        send(&mut client).await;
        clients.push(client);
    }
    for closed in &mut clients[..2] {
        assert_eq!(closed.read(&mut [0]).await.unwrap(), 0);
    }
    for served in &mut clients[2..] {
        send(served).await;
    }
    server.end().await.unwrap();
}

#[tokio::test]
async fn a_draining_node_answers_what_was_asked_and_closes_what_is_idle() {
    let server = Server::start(HttpOptions::default(), ConnectionLimits::default());
    let mut stream = server.connect().await;
    // A complete head and half of a body: the request was sent before the shutdown.
    stream.write_all(head("/v1/check").as_bytes()).await.unwrap();
    stream.write_all(&BODY.as_bytes()[..5]).await.unwrap();
    let mut ready = server.connect().await;
    ready.write_all(b"GET /readyz HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    assert!(answer(&mut ready).await.starts_with("HTTP/1.1 200 OK\r\n"));
    let ended = tokio::spawn(server.end());
    // The idle connection is closed after a while, which shows that the drain has started.
    let mut rest = Vec::new();
    ready.read_to_end(&mut rest).await.unwrap();
    assert!(rest.is_empty());
    stream.write_all(&BODY.as_bytes()[5..]).await.unwrap();
    let printed = answer(&mut stream).await;
    assert!(
        printed.starts_with("HTTP/1.1 200 OK\r\n") && printed.contains("connection: close"),
        "{printed}"
    );
    ended.await.unwrap().unwrap();
}

/// The preface of an HTTP/2 connection, and empty `SETTINGS`.
const HTTP_2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// `WINDOW_UPDATE` and `PRIORITY` cost the listener work, and a client nothing.
#[tokio::test]
async fn a_flood_of_control_frames_closes_the_connection() {
    let server = Server::start(HttpOptions::default(), ConnectionLimits::default());
    let window_update = b"\0\0\x04\x08\0\0\0\0\0\0\0\0\x01";
    let priority = b"\0\0\x05\x02\0\0\0\0\x03\0\0\0\0\x10";
    for (closed, frame) in (1..).zip([&window_update[..], priority]) {
        let (mut reader, mut writer) = server.connect().await.into_split();
        let flood = async {
            let mut sent = writer.write_all(HTTP_2).await;
            let frames = frame.repeat(1_000);
            while sent.is_ok() {
                sent = writer.write_all(&frames).await;
            }
        };
        let mut rest = Vec::new();
        let (_, _) = tokio::join!(flood, reader.read_to_end(&mut rest));
        assert_eq!(server.counters.closed(CloseReason::ControlFrames), closed);
    }
    let mut good = server.connect().await;
    good.write_all(format!("{}{BODY}", head("/v1/check")).as_bytes()).await.unwrap();
    assert!(answer(&mut good).await.starts_with("HTTP/1.1 200 OK\r\n"));
    drop(good);
    server.end().await.unwrap();
}

#[tokio::test]
async fn connections_without_a_first_request_are_closed_and_counted() {
    let limits = ConnectionLimits { first_byte: Duration::from_millis(100), ..Default::default() };
    let server = Server::start(HttpOptions::default(), limits);
    let mut silent = Vec::new();
    for sent in [&b""[..], HTTP_2].repeat(10) {
        let mut stream = server.connect().await;
        stream.write_all(sent).await.unwrap();
        silent.push(stream);
    }
    for stream in &mut silent {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
    }
    assert_eq!(server.counters.closed(CloseReason::NoRequest), 20);
    server.end().await.unwrap();
}
