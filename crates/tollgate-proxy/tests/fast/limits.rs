use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use parking_lot::Mutex;

use crate::{
    setup::{Client, Proxy, exchange, header, settings, statuses, within},
    upstream::Recorder,
};

#[tokio::test]
async fn a_head_beyond_its_limits_is_431_or_414() {
    let upstream = Recorder::start().await;
    let proxy = Proxy::start(upstream.address).await;
    let large = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "y".repeat(17 * 1024));
    let many = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(100));
    let long = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "y".repeat(9 * 1024));
    for (request, status) in [(large, 431), (many, 431), (long, 414)] {
        let answer = exchange(proxy.address, request).await;
        assert_eq!(statuses(&answer), [status], "{answer}");
        assert_eq!(header(&answer, "content-type"), Some("application/problem+json"));
    }
    let most = format!(
        "GET /{} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{}\r\n",
        "y".repeat(8 * 1024 - 1),
        "X: y\r\n".repeat(98)
    );
    assert_eq!(statuses(&exchange(proxy.address, most).await), [200]);
    assert_eq!(upstream.take().len(), 1);
}

#[tokio::test]
async fn a_body_beyond_its_limit_is_413() {
    let upstream = Recorder::start().await;
    let mut settings = settings(upstream.address);
    settings.limits.request_body_bytes = 10;
    let proxy = Proxy::with(settings).await;
    let head = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n";
    let announced = format!("{head}Content-Length: 11\r\n\r\n");
    let streamed =
        format!("{head}Transfer-Encoding: chunked\r\n\r\n6\r\n123456\r\n5\r\n12345\r\n0\r\n\r\n");
    for request in [announced, streamed] {
        let answer = exchange(proxy.address, request).await;
        assert_eq!(statuses(&answer), [413], "{answer}");
        assert_eq!(header(&answer, "connection"), Some("close"), "{answer}");
    }
    assert!(upstream.take().is_empty());
    let fits = format!("{head}Content-Length: 10\r\n\r\n0123456789");
    assert_eq!(statuses(&exchange(proxy.address, fits).await), [200]);
}

#[tokio::test]
async fn a_refusal_reaches_a_client_that_is_still_sending() {
    let upstream = Recorder::start().await;
    let mut settings = settings(upstream.address);
    settings.limits.request_body_bytes = 10;
    let proxy = Proxy::with(settings).await;
    let request = format!(
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n{}",
        "y".repeat(1_000_000)
    );
    let mut client = Client::connect(proxy.address).await;
    client.send(request).await;
    assert_eq!(statuses(&client.read_response().await), [413]);
}

#[tokio::test]
async fn a_head_that_does_not_end_is_408() {
    let upstream = Recorder::start().await;
    let mut settings = settings(upstream.address);
    settings.timeouts.request_head = Duration::from_secs(1);
    let proxy = Proxy::with(settings).await;
    let answer = exchange(proxy.address, "GET / HTTP/1.1\r\nHost: a\r\n").await;
    assert_eq!(statuses(&answer), [408], "{answer}");
    assert_eq!(exchange(proxy.address, "").await, "", "a silent client is owed no answer");

    let mut client = Client::connect(proxy.address).await;
    client.send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2").await;
    assert_eq!(statuses(&client.read_to_end().await), [200, 408]);
    assert_eq!(upstream.take_one().line, "GET /1");
}

#[tokio::test]
async fn a_body_that_stalls_is_408() {
    let upstream = Recorder::start().await;
    let mut settings = settings(upstream.address);
    settings.timeouts.request_body_idle = Duration::from_millis(50);
    let proxy = Proxy::with(settings).await;
    let request = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab";
    let answer = exchange(proxy.address, request).await;
    assert_eq!(statuses(&answer), [408], "{answer}");
    assert!(upstream.take().is_empty());
}

#[tokio::test]
async fn an_idle_connection_closes() {
    let upstream = Recorder::start().await;
    let mut settings = settings(upstream.address);
    settings.timeouts.keep_alive_idle = Duration::from_secs(1);
    let proxy = Proxy::with(settings).await;
    let mut client = Client::connect(proxy.address).await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(statuses(&client.read_to_end().await), [200]);
}

#[tokio::test]
async fn a_client_that_stops_reading_is_closed() {
    let (ended, mut end) = tokio::sync::mpsc::channel(1);
    let upstream = crate::upstream::serve_raw(move |mut stream| {
        let ended = ended.clone();
        async move {
            use tokio::io::AsyncWriteExt;
            crate::upstream::read_head(&mut stream).await;
            let endless = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";
            let mut piece = stream.write_all(endless).await;
            while piece.is_ok() {
                piece = stream.write_all(&[b'y'; 65_536]).await;
            }
            ended.send(()).await.expect("the test waits");
        }
    })
    .await;
    let mut settings = settings(upstream);
    settings.timeouts.write_idle = Duration::from_millis(50);
    let proxy = Proxy::with(settings).await;
    let mut client = Client::connect(proxy.address).await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    within(end.recv()).await.expect("the upstream's connection ends");
}

#[tokio::test]
async fn clients_beyond_the_limit_wait_for_a_place() {
    let (answer_first, first_may_be_answered) = tokio::sync::oneshot::channel::<()>();
    let answer = Mutex::new(Some(first_may_be_answered));
    let answer = Arc::new(answer);
    let upstream = crate::upstream::serve(move |request| {
        let may_be_answered = match request.uri().path() {
            "/1" => answer.lock().take(),
            _ => None,
        };
        async move {
            if let Some(may_be_answered) = may_be_answered {
                may_be_answered.await.expect("the test says when");
            }
            Response::new(Full::<Bytes>::default())
        }
    })
    .await;
    let mut settings = settings(upstream);
    settings.limits.connections = 1;
    let metrics = settings.connection_metrics.clone();
    let proxy = Proxy::with(settings).await;
    let mut first = Client::connect(proxy.address).await;
    // A connection with a request in flight is not idle, however long the request takes.
    first.send("GET /1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    within(async {
        while metrics.open() == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let mut second = Client::connect(proxy.address).await;
    second.send("GET /2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    answer_first.send(()).expect("the upstream waits");
    assert_eq!(statuses(&first.read_to_end().await), [200]);
    assert_eq!(statuses(&second.read_to_end().await), [200]);
}
