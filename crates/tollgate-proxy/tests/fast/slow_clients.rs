//! Clients that send or read just fast enough not to count as silent.

use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::{BodyExt, Full};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    time::sleep,
};
use tollgate_http::EVICTABLE_AFTER;
use tollgate_proxy::{ClientAuthorities, CloseReason, ConnectionMetrics, Settings};

use crate::{
    certificates::{self, Authority},
    setup::{Proxy, exchange, header, settings, statuses, within},
    unread_responses::{connect, endless, send_request},
    upstream::{Recorder, read_head, serve, serve_raw},
};

const REQUEST: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const ENDLESS: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";

/// Sets a least rate that the clients of these tests stay far below.
fn demanding(mut settings: Settings) -> Settings {
    settings.limits.least_bytes_per_second = 512 << 20;
    settings.timeouts.least_rate_grace = Duration::from_millis(200);
    settings
}

async fn until_closed(metrics: &ConnectionMetrics, reason: CloseReason) {
    within(async {
        while metrics.closed(reason) == 0 {
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_dripped_body_is_408_and_closes() {
    let upstream = Recorder::start().await;
    let settings = demanding(settings(upstream.address));
    let metrics = settings.connection_metrics.clone();
    let proxy = Proxy::with(settings).await;
    let stream = TcpStream::connect(proxy.address).await.expect("the proxy accepts");
    let (mut reader, mut writer) = stream.into_split();
    let drip = tokio::spawn(async move {
        let head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n";
        let mut sent = writer.write_all(head).await;
        while sent.is_ok() {
            sleep(Duration::from_millis(10)).await;
            sent = writer.write_all(b"x").await;
        }
    });
    let mut answer = Vec::new();
    // The connection may end with a reset.
    let _ = within(reader.read_to_end(&mut answer)).await;
    drip.abort();
    let answer = String::from_utf8_lossy(&answer);
    assert_eq!(statuses(&answer), [408], "{answer}");
    assert!(answer.contains("too slowly"), "{answer}");
    assert_eq!(header(&answer, "connection"), Some("close"), "{answer}");
    until_closed(&metrics, CloseReason::SlowRequest).await;
    assert!(upstream.take().is_empty());
}

#[tokio::test]
async fn a_slow_reader_is_closed() {
    let (upstream, mut end) = endless(ENDLESS).await;
    let settings = demanding(settings(upstream));
    let metrics = settings.connection_metrics.clone();
    let proxy = Proxy::with(settings).await;
    let mut slow = TcpStream::connect(proxy.address).await.expect("the proxy accepts");
    slow.write_all(REQUEST.as_bytes()).await.expect("the proxy reads");
    let reading = tokio::spawn(async move {
        let mut some = [0; 4096];
        while slow.read(&mut some).await.is_ok_and(|read| read > 0) {
            sleep(Duration::from_millis(10)).await;
        }
    });
    within(end.recv()).await.expect("the upstream's connection ends");
    until_closed(&metrics, CloseReason::SlowResponse).await;
    reading.abort();
}

/// Sends a request for `bytes` bytes, and reads the response after a pause that is longer than an
/// idle connection is kept while another client waits. Returns the number of bytes of the body.
async fn read_late<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, bytes: usize) -> usize {
    stream.write_all(request_for(bytes).as_bytes()).await.expect("the proxy reads");
    sleep(EVICTABLE_AFTER + Duration::from_millis(1_500)).await;
    let mut all = Vec::new();
    // The connection may end with a reset.
    let _ = within(stream.read_to_end(&mut all)).await;
    all.iter().filter(|byte| **byte == b'~').count()
}

fn request_for(bytes: usize) -> String {
    format!("GET /{bytes} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
}

/// Starts a proxy for one client at a time. A client reads a response of `bytes` bytes late, and
/// another client waits. Returns the number of bytes that the first client received.
async fn received(mut settings: Settings, authority: &Authority, bytes: usize) -> usize {
    settings.limits.connections = 1;
    let is_tls = settings.tls.is_some();
    let connector = authority.connector(None, &["http/1.1"]);
    let proxy = Proxy::with(settings).await;
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(16 * 1_024).expect("a small buffer");
    let stream = within(socket.connect(proxy.address)).await.expect("the proxy accepts");
    let late = async {
        if !is_tls {
            return read_late(stream, bytes).await;
        }
        let name = "localhost".try_into().expect("a name");
        read_late(within(connector.connect(name, stream)).await.expect("TLS"), bytes).await
    };
    let other = async {
        sleep(Duration::from_millis(200)).await;
        match is_tls {
            false => exchange(proxy.address, request_for(1)).await,
            true => certificates::exchange(&connector, proxy.address, &request_for(1)).await,
        }
    };
    let (read, other) = tokio::join!(late, other);
    assert_eq!(statuses(&other), [200]);
    read
}

/// The bug: a connection counted as idle as soon as hyper had the rest of the response in its
/// buffer. The connection was closed to make room for another client, and its client received only
/// a part of the response.
#[tokio::test]
async fn a_response_was_cut_off_before_its_client_had_read_it() {
    let upstream = serve(|request| async move {
        let bytes: usize = request.uri().path()[1..].parse().expect("a number");
        Response::new(Full::<Bytes>::from(vec![b'~'; bytes]))
    })
    .await;
    let authority = Authority::new();
    let over_tls = || {
        let mut settings = settings(upstream);
        settings.tls = Some(authority.server(ClientAuthorities::None, &["http/1.1"]));
        settings
    };
    // The size of the kernel's buffers varies. One of these responses fits into all buffers
    // together, but not into those of the kernel.
    let sizes = [100_000, 130_000, 160_000, 190_000, 220_000];
    let [a, b, c, d, e] = sizes.map(|bytes| {
        let clear = received(settings(upstream), &authority, bytes);
        let tls = received(over_tls(), &authority, bytes);
        async move { tokio::join!(clear, tls) }
    });
    let received = tokio::join!(a, b, c, d, e);
    assert_eq!(<[_; 5]>::from(received), sizes.map(|bytes| (bytes, bytes)));
}

#[tokio::test]
async fn an_answer_that_an_http_2_client_reads_slowly_is_reset() {
    let (upstream, mut end) = endless(ENDLESS).await;
    let settings = demanding(settings(upstream));
    let metrics = settings.connection_metrics.clone();
    let proxy = Proxy::with(settings).await;
    let mut slow = connect(proxy.address, 20_000).await;
    let answer = send_request(&mut slow).await;
    assert_eq!(answer.status(), StatusCode::OK);
    let mut body = answer.into_body();
    let broken = within(async {
        while let Some(frame) = body.frame().await {
            if frame.is_err() {
                return true;
            }
            sleep(Duration::from_millis(10)).await;
        }
        false
    })
    .await;
    assert!(broken, "the stream is reset");
    within(end.recv()).await.expect("the upstream's connection ends");
    assert_eq!(metrics.closed(CloseReason::SlowResponse), 1);
    assert_eq!(metrics.open(), 1, "the connection itself stays");
}

#[tokio::test]
async fn an_event_stream_with_nothing_to_send_is_not_slow() {
    let upstream = serve_raw(|mut stream| async move {
        read_head(&mut stream).await;
        let head =
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        stream.write_all(head).await.expect("the proxy reads");
        for event in ["data: one\n\n", "data: two\n\n"] {
            // Longer than the grace time.
            sleep(Duration::from_millis(500)).await;
            stream.write_all(event.as_bytes()).await.expect("the proxy reads");
        }
    })
    .await;
    let proxy = Proxy::with(demanding(settings(upstream))).await;
    let answer =
        exchange(proxy.address, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    assert!(answer.contains("data: one") && answer.contains("data: two"), "{answer}");
}

#[tokio::test]
async fn a_tunnel_has_no_least_rate() {
    const BYTES: usize = 16 << 20;
    let upstream = serve_raw(|mut stream| async move {
        read_head(&mut stream).await;
        let agreed = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
        stream.write_all(agreed).await.expect("the proxy reads");
        stream.write_all(&vec![b'y'; BYTES]).await.expect("the proxy reads");
    })
    .await;
    let proxy = Proxy::with(demanding(settings(upstream))).await;
    let mut client = TcpStream::connect(proxy.address).await.expect("the proxy accepts");
    let wish = "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
    client.write_all(wish.as_bytes()).await.expect("the proxy reads");
    // Longer than the grace time, while bytes are ready.
    sleep(Duration::from_millis(600)).await;
    let mut all = Vec::new();
    within(client.read_to_end(&mut all)).await.expect("all of it");
    assert_eq!(all.iter().filter(|byte| **byte == b'y').count(), BYTES);
}

/// `WINDOW_UPDATE` and `PRIORITY` cost the proxy work, and a client nothing.
#[tokio::test]
async fn a_flood_of_control_frames_closes_the_connection() {
    let upstream = Recorder::start().await;
    let settings = settings(upstream.address);
    let metrics = settings.connection_metrics.clone();
    let proxy = Proxy::with(settings).await;
    let flooding = TcpStream::connect(proxy.address).await.expect("the proxy accepts");
    let (mut reader, mut writer) = flooding.into_split();
    let flood = async {
        let start = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
        let mut sent = writer.write_all(start).await;
        let priority = b"\0\0\x05\x02\0\0\0\0\x03\0\0\0\0\x10".repeat(1_000);
        while sent.is_ok() {
            sent = writer.write_all(&priority).await;
        }
    };
    let mut rest = Vec::new();
    let (_, _) = within(async { tokio::join!(flood, reader.read_to_end(&mut rest)) }).await;
    until_closed(&metrics, CloseReason::ControlFrames).await;
    let request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let answer = exchange(proxy.address, request).await;
    assert_eq!(statuses(&answer), [200], "{answer}");
}
