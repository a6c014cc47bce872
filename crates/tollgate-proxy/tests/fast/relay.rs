use http::Response;
use http_body_util::{BodyExt, Full};
use tollgate_proxy::ForwardedFields;

use crate::{
    setup::{Client, Proxy, exchange, header, settings, statuses, within},
    upstream::{Recorder, canned, serve},
};

#[tokio::test]
async fn a_request_is_forwarded_without_its_hop_by_hop_fields() {
    let upstream = Recorder::start().await;
    let proxy = Proxy::start(upstream.address).await;
    let answer = exchange(
        proxy.address,
        "POST /a%20b?c=d HTTP/1.1\r\nHost: api.example\r\nConnection: close, X-Hop\r\n\
         X-Hop: 1\r\nKeep-Alive: timeout=9\r\nTE: trailers, gzip\r\nUpgrade: h2c\r\n\
         HTTP2-Settings: AAMAAABkAAQAAP__\r\nProxy-Authorization: Basic eA==\r\nX-Own: 2\r\n\
         X-Forwarded-For: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\nContent-Length: 003\r\n\r\nabc",
    )
    .await;
    assert_eq!(statuses(&answer), [200], "{answer}");
    assert!(answer.ends_with("POST /a%20b?c=d [abc]"), "{answer}");
    assert_eq!(header(&answer, "via"), Some("1.1 tollgate"));

    let observed = upstream.take_one();
    let mut names: Vec<_> = observed.headers.keys().map(|name| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "connection",
            "content-length",
            "forwarded",
            "host",
            "te",
            "via",
            "x-forwarded-for",
            "x-forwarded-host",
            "x-forwarded-proto",
            "x-own"
        ]
    );
    assert_eq!(observed.headers["host"], "api.example");
    assert_eq!(observed.headers["connection"], "te");
    assert_eq!(observed.headers["te"], "trailers");
    assert_eq!(observed.headers["content-length"], "3");
    assert_eq!(observed.headers["x-forwarded-for"], "127.0.0.1");
    assert_eq!(observed.headers["forwarded"], "for=127.0.0.1;host=\"api.example\";proto=http");
}

#[tokio::test]
async fn a_trusted_peer_is_appended_to() {
    let upstream = Recorder::start().await;
    let mut settings = settings(upstream.address);
    settings.trusted_proxies =
        vec![tollgate::model::policy::Network::parse("127.0.0.0/8").expect("a network")].into();
    settings.forwarded = ForwardedFields::XForwarded;
    let proxy = Proxy::with(settings).await;
    exchange(
        proxy.address,
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Forwarded-For: 198.51.100.1\r\n\r\n",
    )
    .await;
    let observed = upstream.take_one();
    assert_eq!(observed.headers["x-forwarded-for"], "198.51.100.1, 127.0.0.1");
    assert!(!observed.headers.contains_key("forwarded"));
}

#[tokio::test]
async fn the_connection_to_the_upstream_is_kept() {
    let upstream = canned_twice().await;
    let proxy = Proxy::start(upstream).await;
    let mut client = Client::connect(proxy.address).await;
    for expected in ["first", "second"] {
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let answer = client.read_response().await;
        assert!(answer.ends_with(expected), "{answer}");
    }
}

/// Answers the two requests of one connection. A second connection gets no response.
async fn canned_twice() -> std::net::SocketAddr {
    use std::sync::atomic::{AtomicBool, Ordering};
    use tokio::io::AsyncWriteExt;
    let used = std::sync::Arc::new(AtomicBool::new(false));
    crate::upstream::serve_raw(move |mut stream| {
        let fresh = !used.swap(true, Ordering::SeqCst);
        async move {
            for body in ["first", "second"].iter().filter(|_| fresh) {
                crate::upstream::read_head(&mut stream).await;
                let answer =
                    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                stream.write_all(answer.as_bytes()).await.expect("the proxy reads");
            }
        }
    })
    .await
}

#[tokio::test]
async fn bodies_stream_both_ways_at_once() {
    // The upstream answers each piece when it arrives, so a proxy that collects the body would wait
    // forever.
    let upstream = serve(|request| async move { Response::new(request.into_body()) }).await;
    let proxy = Proxy::start(upstream).await;
    let mut client = Client::connect(proxy.address).await;
    client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n").await;
    for piece in ["one", "two", "six"] {
        client.send(format!("3\r\n{piece}\r\n")).await;
        client.read_until(piece).await;
    }
    client.send("0\r\n\r\n").await;
    client.read_until("0\r\n\r\n").await;
}

#[tokio::test]
async fn trailers_pass_both_ways() {
    let upstream = Recorder::start().await;
    let proxy = Proxy::start(upstream.address).await;
    exchange(
        proxy.address,
        "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTrailer: digest\r\n\
         Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nDigest: x\r\n\r\n",
    )
    .await;
    let trailers = upstream.take_one().trailers.expect("trailers");
    assert_eq!(trailers["digest"], "x");

    let upstream = canned(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: digest\r\n\r\n\
         3\r\nabc\r\n0\r\ndigest: y\r\n\r\n",
    )
    .await;
    let proxy = Proxy::start(upstream).await;
    let answer = exchange(
        proxy.address,
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTE: trailers\r\n\r\n",
    )
    .await;
    assert!(answer.ends_with("3\r\nabc\r\n0\r\ndigest: y\r\n\r\n"), "{answer}");
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let upstream = Recorder::start().await;
    let proxy = Proxy::start(upstream.address).await;
    let answer = exchange(
        proxy.address,
        "GET /1 HTTP/1.1\r\nHost: a\r\n\r\n\
         POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi\
         POST /3 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n\
         GET /4 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    )
    .await;
    assert_eq!(statuses(&answer), [200, 200, 200, 200], "{answer}");
    let lines: Vec<_> =
        upstream.take().into_iter().map(|observed| observed.line + &observed.body).collect();
    assert_eq!(lines, ["GET /1", "POST /2hi", "POST /3x", "GET /4"]);
}

#[tokio::test]
async fn the_answers_before_a_refused_request_still_come() {
    let upstream = Recorder::start().await;
    let proxy = Proxy::start(upstream.address).await;
    let answer = exchange(
        proxy.address,
        "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost : a\r\n\r\n\
         GET /3 HTTP/1.1\r\nHost: a\r\n\r\n",
    )
    .await;
    assert_eq!(statuses(&answer), [200, 400], "{answer}");
    assert!(answer.contains("application/problem+json"), "{answer}");
    assert!(answer.contains("connection: close"), "{answer}");
    assert_eq!(upstream.take_one().line, "GET /1");
}

#[tokio::test]
async fn responses_lose_their_hop_by_hop_fields() {
    let upstream = canned(
        "HTTP/1.1 200 OK\r\nconnection: x-hop, keep-alive\r\nx-hop: 1\r\nkeep-alive: timeout=1\r\n\
         proxy-authenticate: Basic\r\nupgrade: h2c\r\nx-own: 2\r\ncontent-length: 2\r\n\r\nok",
    )
    .await;
    let proxy = Proxy::start(upstream).await;
    let mut client = Client::connect(proxy.address).await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let answer = client.read_response().await;
    assert_eq!(header(&answer, "x-own"), Some("2"), "{answer}");
    for name in ["connection", "x-hop", "keep-alive", "proxy-authenticate", "upgrade"] {
        assert_eq!(header(&answer, name), None, "{answer}");
    }
}

#[tokio::test]
async fn answers_without_a_body_stay_without() {
    let head = canned("HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n").await;
    let proxy = Proxy::start(head).await;
    let request = "HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let answer = exchange(proxy.address, request).await;
    assert_eq!(header(&answer, "content-length"), Some("999"), "{answer}");
    assert!(answer.ends_with("\r\n\r\n"), "{answer}");

    let not_modified = canned("HTTP/1.1 304 Not Modified\r\netag: \"a\"\r\n\r\n").await;
    let no_content = canned("HTTP/1.1 204 No Content\r\n\r\n").await;
    for (upstream, status) in [(not_modified, 304), (no_content, 204)] {
        let proxy = Proxy::start(upstream).await;
        let request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        let answer = exchange(proxy.address, request).await;
        assert_eq!(statuses(&answer), [status]);
        assert!(answer.ends_with("\r\n\r\n"), "{answer}");
        assert_eq!(header(&answer, "transfer-encoding"), None, "{answer}");
    }
}

#[tokio::test]
async fn an_early_hint_is_passed_over() {
    let upstream = canned(
        "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
    )
    .await;
    let proxy = Proxy::start(upstream).await;
    let answer =
        exchange(proxy.address, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    assert_eq!(statuses(&answer), [200], "{answer}");
}

#[tokio::test]
async fn a_body_is_sent_when_it_is_asked_for() {
    let upstream = Recorder::start().await;
    let proxy = Proxy::start(upstream.address).await;
    let mut client = Client::connect(proxy.address).await;
    client
        .send("PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
        .await;
    let interim = client.read_until("\r\n\r\n").await;
    assert_eq!(statuses(&interim), [100]);
    client.send("hi").await;
    assert!(client.read_response().await.ends_with("PUT / [hi]"));
    assert!(!upstream.take_one().headers.contains_key("expect"));
}

#[tokio::test]
async fn an_http_1_0_client_is_answered_in_its_way() {
    let upstream =
        canned("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\npiece\r\n0\r\n\r\n")
            .await;
    let proxy = Proxy::start(upstream).await;
    let answer = exchange(proxy.address, "GET / HTTP/1.0\r\n\r\n").await;
    assert_eq!(header(&answer, "transfer-encoding"), None, "{answer}");
    assert!(answer.ends_with("\r\n\r\npiece"), "{answer}");
}

#[tokio::test]
async fn a_large_body_arrives_whole() {
    let upstream = serve(|request| async move {
        let body = request.into_body().collect().await.expect("a body").to_bytes();
        Response::new(Full::from(body))
    })
    .await;
    let proxy = Proxy::start(upstream).await;
    let body: String = (0..400_000).map(|n| char::from(b'a' + (n % 23) as u8)).collect();
    let mut client = Client::connect(proxy.address).await;
    let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len());
    client.send(head + &body).await;
    let answer = within(client.read_response()).await;
    assert!(answer.ends_with(&body));
}
