//! Clients over TLS.

use std::time::Duration;

use http::Request;
use http_body_util::Empty;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tollgate_proxy::{ClientAuthorities, CloseReason, Settings};

use crate::{
    certificates::{Authority, connect, exchange},
    setup::{Proxy, settings, statuses, within},
    upstream::Recorder,
};

const REQUEST: &str = "GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
const BOTH: [&str; 2] = ["h2", "http/1.1"];

async fn over_tls(authority: &Authority, clients: ClientAuthorities) -> (Recorder, Settings) {
    let recorder = Recorder::start().await;
    let mut settings = settings(recorder.address);
    settings.tls = Some(authority.server(clients, &BOTH));
    (recorder, settings)
}

#[tokio::test]
async fn http1_and_http2_are_negotiated_and_forwarded_as_https() {
    let authority = Authority::new();
    let (recorder, settings) = over_tls(&authority, ClientAuthorities::None).await;
    let proxy = Proxy::with(settings).await;
    let answer = exchange(&authority.connector(None, &["http/1.1"]), proxy.address, REQUEST).await;
    assert_eq!(statuses(&answer), [200]);
    let stream = connect(&authority.connector(None, &BOTH), proxy.address).await.expect("TLS");
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(b"h2".as_slice()));
    let opening = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut sender, connection) = within(opening).await.expect("HTTP/2");
    tokio::spawn(connection);
    let request = Request::get("https://localhost/x").body(Empty::<bytes::Bytes>::new());
    let answer =
        within(sender.send_request(request.expect("a request"))).await.expect("a response");
    assert_eq!(answer.status(), 200);
    let seen = recorder.take();
    assert_eq!(seen.len(), 2);
    for request in seen {
        assert_eq!(request.headers["x-forwarded-proto"], "https");
        let forwarded = request.headers["forwarded"].to_str().expect("text");
        assert!(forwarded.ends_with(";proto=https"), "{forwarded}");
    }
}

#[tokio::test]
async fn clear_text_and_an_unfinished_handshake_are_closed_and_counted() {
    let authority = Authority::new();
    let (recorder, mut settings) = over_tls(&authority, ClientAuthorities::None).await;
    settings.timeouts.tls_handshake = Duration::from_millis(50);
    let metrics = settings.connection_metrics.clone();
    let proxy = Proxy::with(settings).await;
    for sent in [REQUEST, ""] {
        let mut client = TcpStream::connect(proxy.address).await.expect("the proxy accepts");
        client.write_all(sent.as_bytes()).await.expect("the proxy reads");
        let mut read = Vec::new();
        // The connection may end with a reset.
        let _ = within(client.read_to_end(&mut read)).await;
        assert!(!read.starts_with(b"HTTP"), "{read:?}");
    }
    within(async {
        while metrics.closed(CloseReason::TlsHandshake) < 2 || metrics.open() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(recorder.take().is_empty());
}

#[tokio::test]
async fn unfinished_handshakes_count_for_their_address_and_make_room_for_others() {
    let authority = Authority::new();
    let connector = authority.connector(None, &["http/1.1"]);
    let (_recorder, mut settings) = over_tls(&authority, ClientAuthorities::None).await;
    settings.timeouts.tls_handshake = Duration::from_secs(600);
    settings.limits.connections = 2;
    let metrics = settings.connection_metrics.clone();
    let proxy = Proxy::with(settings).await;
    let silent = [
        TcpStream::connect(proxy.address).await.expect("a connection"),
        TcpStream::connect(proxy.address).await.expect("a connection"),
    ];
    let answer = exchange(&connector, proxy.address, REQUEST).await;
    assert_eq!(statuses(&answer), [200], "a silent client was evicted");
    assert!(metrics.closed(CloseReason::Evicted) >= 1);
    drop(silent);

    let (_recorder, mut settings) = over_tls(&authority, ClientAuthorities::None).await;
    settings.timeouts.tls_handshake = Duration::from_secs(600);
    settings.limits.connections_per_address = 1;
    let metrics = settings.connection_metrics.clone();
    let proxy = Proxy::with(settings).await;
    let _silent = TcpStream::connect(proxy.address).await.expect("a connection");
    within(async {
        while metrics.open() == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(exchange(&connector, proxy.address, REQUEST).await, "");
    assert_eq!(metrics.closed(CloseReason::AddressLimit), 1);
}

#[tokio::test]
async fn a_required_certificate_is_verified_and_an_optional_one_may_be_missing() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let ca = authority.file("ca.pem");
    for (clients, without) in [
        (ClientAuthorities::Required(ca.clone()), ""),
        (ClientAuthorities::Optional(ca), "HTTP/1.1 200 OK"),
    ] {
        let (_recorder, settings) = over_tls(&authority, clients).await;
        let proxy = Proxy::with(settings).await;
        let with = authority.connector(Some("billing"), &["http/1.1"]);
        assert_eq!(statuses(&exchange(&with, proxy.address, REQUEST).await), [200]);
        let anonymous = authority.connector(None, &["http/1.1"]);
        let answer = exchange(&anonymous, proxy.address, REQUEST).await;
        assert_eq!(answer.lines().next().unwrap_or_default(), without);
        // Trusts this proxy, and presents a certificate of an authority that the proxy does not know.
        std::fs::copy(authority.file("ca.pem"), stranger.file("ca.pem")).expect("a copy");
        let forged = stranger.connector(Some("billing"), &["http/1.1"]);
        assert_eq!(exchange(&forged, proxy.address, REQUEST).await, "");
    }
}

#[tokio::test]
async fn a_client_that_stops_reading_over_tls_is_closed() {
    const BODY: usize = 32 * 1024 * 1024;
    let authority = Authority::new();
    let upstream = crate::upstream::serve(|_| async {
        http::Response::new(http_body_util::Full::from(bytes::Bytes::from(vec![b'x'; BODY])))
    })
    .await;
    let mut settings = settings(upstream);
    settings.tls = Some(authority.server(ClientAuthorities::None, &BOTH));
    settings.timeouts.write_idle = Duration::from_millis(50);
    let metrics = settings.connection_metrics.clone();
    let proxy = Proxy::with(settings).await;
    let connector = authority.connector(None, &["http/1.1"]);
    let mut client = connect(&connector, proxy.address).await.expect("TLS");
    client.write_all(REQUEST.as_bytes()).await.expect("the proxy reads");
    within(async {
        while metrics.closed(CloseReason::SlowResponse) == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_shutdown_ends_connections_over_tls_after_their_requests() {
    let authority = Authority::new();
    let (_recorder, settings) = over_tls(&authority, ClientAuthorities::None).await;
    let proxy = Proxy::with(settings).await;
    let connector = authority.connector(None, &["http/1.1"]);
    let mut client = connect(&connector, proxy.address).await.expect("TLS");
    client.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("the proxy reads");
    let mut first = [0; 15];
    within(client.read_exact(&mut first)).await.expect("a response");
    assert_eq!(&first, b"HTTP/1.1 200 OK");
    let ended = proxy.stop();
    within(client.read_to_end(&mut Vec::new())).await.expect("a clean end");
    assert_eq!(within(ended).await.expect("no panic"), Ok(()));
}
