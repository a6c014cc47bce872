use std::{
    convert::Infallible,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::oneshot,
    task::JoinHandle,
};

use crate::{
    setup::{Proxy, settings, within},
    upstream::{Recorder, serve},
};

type Connection = JoinHandle<hyper::Result<()>>;

async fn connect(address: SocketAddr) -> (http2::SendRequest<Full<Bytes>>, Connection) {
    let stream = TcpStream::connect(address).await.expect("the proxy accepts");
    let (sender, connection) =
        within(http2::handshake(TokioExecutor::new(), TokioIo::new(stream))).await.expect("HTTP/2");
    (sender, tokio::spawn(connection))
}

async fn send(
    sender: &mut http2::SendRequest<Full<Bytes>>,
    request: http::request::Builder,
    body: &'static str,
) -> Response<Incoming> {
    let request = request.body(Full::from(body)).expect("a request");
    within(sender.send_request(request)).await.expect("a response")
}

async fn text(response: Response<Incoming>) -> String {
    let body = within(response.into_body().collect()).await.expect("a body").to_bytes();
    String::from_utf8_lossy(&body).into_owned()
}

#[tokio::test]
async fn requests_of_one_connection_are_forwarded_as_http_1_1() {
    let upstream = Recorder::start().await;
    let proxy = Proxy::start(upstream.address).await;
    let (mut sender, _connection) = connect(proxy.address).await;
    let request = Request::builder()
        .method(Method::POST)
        .uri("http://api.example/a?b")
        .header("cookie", "a=b")
        .header("cookie", "c=d")
        .header("te", "trailers");
    let response = send(&mut sender, request, "hello").await;
    assert_eq!(response.headers()["via"], "1.1 tollgate");
    assert_eq!(text(response).await, "POST /a?b [hello]");
    let observed = upstream.take_one();
    assert_eq!(observed.headers["host"], "api.example");
    assert_eq!(observed.headers["cookie"], "a=b; c=d");
    assert_eq!(observed.headers["via"], "2 tollgate");
    assert_eq!(observed.headers["te"], "trailers");
    assert_eq!(observed.headers["x-forwarded-host"], "api.example");

    let (mut one, mut other) = (sender.clone(), sender);
    let (one, other) = tokio::join!(
        send(&mut one, Request::get("http://a/1"), ""),
        send(&mut other, Request::get("http://a/2"), ""),
    );
    assert_eq!(text(one).await, "GET /1 []");
    assert_eq!(text(other).await, "GET /2 []");
}

/// A body that does not state its length.
struct OfUnknownLength(Option<Bytes>);

impl Body for OfUnknownLength {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|data| Ok(Frame::data(data))))
    }
}

/// The bug: the upstream received a GET or HEAD request of unknown length without its body.
#[tokio::test]
async fn the_body_of_a_get_without_a_length_was_dropped() {
    let upstream = Recorder::start().await;
    let proxy = Proxy::start(upstream.address).await;
    let stream = TcpStream::connect(proxy.address).await.expect("the proxy accepts");
    let (mut sender, connection) =
        within(http2::handshake(TokioExecutor::new(), TokioIo::new(stream))).await.expect("HTTP/2");
    tokio::spawn(connection);
    for (method, length) in [(Method::GET, None), (Method::HEAD, None), (Method::GET, Some("2"))] {
        let mut request = Request::builder().method(method.clone()).uri("http://a/b");
        if let Some(length) = length {
            request = request.header("content-length", length);
        }
        let body = OfUnknownLength(Some(Bytes::from("hi")));
        let request = request.body(body).expect("a request");
        let response = within(sender.send_request(request)).await.expect("a response");
        assert_eq!(response.status(), StatusCode::OK);
        let observed = upstream.take_one();
        assert_eq!((observed.line, observed.body), (format!("{method} /b"), "hi".to_owned()));
        assert_eq!(observed.headers.contains_key("transfer-encoding"), length.is_none());
    }
}

#[tokio::test]
async fn http2_obeys_the_same_limits() {
    let upstream = Recorder::start().await;
    let mut settings = settings(upstream.address);
    settings.limits.request_body_bytes = 3;
    let proxy = Proxy::with(settings).await;
    let (mut sender, _connection) = connect(proxy.address).await;
    let mut status = async |request: http::request::Builder, body| {
        let response = send(&mut sender, request, body).await;
        assert!(!response.headers().contains_key("connection"));
        response.status()
    };
    assert_eq!(status(Request::post("http://a/"), "four").await, StatusCode::PAYLOAD_TOO_LARGE);
    let mismatch = Request::get("http://a/").header("host", "b");
    assert_eq!(status(mismatch, "").await, StatusCode::BAD_REQUEST);
    let long = Request::get(format!("http://a/{}", "x".repeat(9_000)));
    assert_eq!(status(long, "").await, StatusCode::URI_TOO_LONG);
    let large = Request::get("http://a/").header("x", "y".repeat(17 * 1024));
    assert_eq!(status(large, "").await, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    let tea = Request::get("http://a/").header("expect", "tea");
    assert_eq!(status(tea, "").await, StatusCode::EXPECTATION_FAILED);
    assert!(upstream.take().is_empty());
    assert_eq!(status(Request::post("http://a/"), "one").await, StatusCode::OK);
}

#[tokio::test]
async fn a_drain_finishes_the_streams_and_closes() {
    let (arrived, arrival) = oneshot::channel();
    let (release, released) = oneshot::channel::<()>();
    let gates = std::sync::Arc::new(parking_lot::Mutex::new(Some((arrived, released))));
    let upstream = serve(move |_| {
        let gates = gates.lock().take();
        async move {
            let (arrived, released) = gates.expect("one request");
            arrived.send(()).expect("the test waits");
            released.await.expect("the test releases");
            Response::new(Full::<Bytes>::from("done"))
        }
    })
    .await;
    let proxy = Proxy::start(upstream).await;
    let (mut sender, connection) = connect(proxy.address).await;
    let response =
        tokio::spawn(async move { send(&mut sender, Request::get("http://a/"), "").await });
    within(arrival).await.expect("a request");
    let ended = proxy.stop();
    release.send(()).expect("the upstream waits");
    let response = within(response).await.expect("no panic");
    assert_eq!(text(response).await, "done");
    assert_eq!(within(ended).await.expect("no panic"), Ok(()));
    within(connection).await.expect("no panic").expect("a clean end");
}

#[tokio::test]
async fn an_idle_connection_closes() {
    let upstream = Recorder::start().await;
    let mut settings = settings(upstream.address);
    settings.timeouts.keep_alive_idle = Duration::from_secs(1);
    let proxy = Proxy::with(settings).await;
    let (mut sender, connection) = connect(proxy.address).await;
    assert_eq!(text(send(&mut sender, Request::get("http://a/"), "").await).await, "GET / []");
    within(connection).await.expect("no panic").expect("a clean end");
}

#[tokio::test]
async fn a_broken_preface_is_no_http2() {
    let upstream = Recorder::start().await;
    let proxy = Proxy::start(upstream.address).await;
    let mut stream = TcpStream::connect(proxy.address).await.expect("the proxy accepts");
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n").await.expect("the proxy reads");
    let mut answer = String::new();
    within(stream.read_to_string(&mut answer)).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 505"), "{answer}");
}

#[tokio::test]
async fn a_reset_stream_ends_the_upstreams_work() {
    let (ended, mut end) = tokio::sync::mpsc::channel::<()>(1);
    let upstream = crate::upstream::serve_raw(move |mut stream| {
        let ended = ended.clone();
        async move {
            crate::upstream::read_head(&mut stream).await;
            ended.send(()).await.expect("the test waits");
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest).await;
            ended.send(()).await.expect("the test waits");
        }
    })
    .await;
    let proxy = Proxy::start(upstream).await;
    let (mut sender, _connection) = connect(proxy.address).await;
    let request = Request::get("http://a/").body(Full::from("")).expect("a request");
    let response = tokio::spawn(async move { sender.send_request(request).await });
    within(end.recv()).await.expect("the request");
    response.abort();
    within(end.recv()).await.expect("the end");
}
