//! HTTP/2 clients with a flow-control window that has no room for the response.

use std::{net::SocketAddr, time::Duration};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::mpsc,
    time::{Instant, sleep},
};
use tollgate::tower::Layer;

use crate::{
    lease::one_at_a_time,
    setup::{Proxy, settings, within},
    upstream::{canned, read_head, serve, serve_raw},
};

pub(crate) type Sender = http2::SendRequest<Full<Bytes>>;

/// Connects a client that answers pings. The client accepts `window` bytes of each response before
/// it has read any byte.
pub(crate) async fn connect(address: SocketAddr, window: u32) -> Sender {
    let stream = TcpStream::connect(address).await.expect("the proxy accepts");
    let mut client = http2::Builder::new(TokioExecutor::new());
    client.initial_stream_window_size(window);
    let (sender, connection) =
        within(client.handshake(TokioIo::new(stream))).await.expect("HTTP/2");
    tokio::spawn(connection);
    sender
}

pub(crate) async fn send_request(sender: &mut Sender) -> Response<Incoming> {
    let request = Request::get("http://a/").body(Full::default()).expect("a request");
    within(sender.send_request(request)).await.expect("an answer")
}

/// Starts an upstream that sends `answer` and then more bytes than any buffer can contain, until
/// the proxy closes the connection. The returned channel reports the close.
pub(crate) async fn endless(answer: &'static str) -> (SocketAddr, mpsc::Receiver<()>) {
    let (ended, end) = mpsc::channel(1);
    let upstream = serve_raw(move |mut stream| {
        let ended = ended.clone();
        async move {
            read_head(&mut stream).await;
            let mut piece = stream.write_all(answer.as_bytes()).await;
            while piece.is_ok() {
                piece = stream.write_all(&[b'y'; 65_536]).await;
            }
            ended.send(()).await.expect("the test waits");
        }
    })
    .await;
    (upstream, end)
}

#[tokio::test]
async fn an_answer_that_an_http_2_client_does_not_take_is_closed_and_lets_go_of_all_it_held() {
    let endless_one = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";
    // Without room for a byte, and with room for the first pieces.
    for window in [0, 20_000] {
        let (upstream, mut end) = endless(endless_one).await;
        let mut settings = settings(upstream);
        settings.timeouts.write_idle = Duration::from_secs(4);
        let proxy = Proxy::layered(settings, Layer::new(one_at_a_time())).await;
        let mut slow = connect(proxy.address, window).await;
        let answer = send_request(&mut slow).await;
        assert_eq!(answer.status(), StatusCode::OK);
        let mut other = connect(proxy.address, 65_535).await;
        assert_eq!(send_request(&mut other).await.status(), StatusCode::TOO_MANY_REQUESTS);
        within(end.recv()).await.expect("the upstream's end");
        within(async {
            while send_request(&mut other).await.status() != StatusCode::OK {
                sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        let broken = within(answer.into_body().collect()).await;
        assert!(broken.is_err(), "{window}: {broken:?}");
        // Only its stream is reset: other streams of the connection may belong to other users.
        drop(other);
        within(async {
            while send_request(&mut slow).await.status() != StatusCode::OK {
                sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }
}

#[tokio::test]
async fn a_short_answer_that_an_http_2_client_does_not_take_does_not_keep_its_connection_at_work() {
    let upstream = canned("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    let mut settings = settings(upstream);
    settings.timeouts.write_idle = Duration::from_millis(100);
    settings.timeouts.keep_alive_idle = Duration::from_millis(100);
    let proxy = Proxy::with(settings).await;
    let mut slow = connect(proxy.address, 0).await;
    let _answer = send_request(&mut slow).await;
    within(async {
        while !slow.is_closed() {
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn who_takes_an_answer_slowly_gets_all_of_it() {
    let upstream = serve(|_| async { Response::new(Full::from(vec![b'y'; 480_000])) }).await;
    let mut settings = settings(upstream);
    settings.timeouts.write_idle = Duration::from_secs(2);
    let proxy = Proxy::with(settings).await;
    let mut slow = connect(proxy.address, 20_000).await;
    let (began, mut taken) = (Instant::now(), 0);
    let mut body = send_request(&mut slow).await.into_body();
    while let Some(frame) = within(body.frame()).await {
        let bytes = frame.expect("a frame").data_ref().map_or(0, Bytes::len);
        taken += bytes;
        // 160 bytes per millisecond.
        sleep(Duration::from_micros(bytes as u64 * 1_000 / 160)).await;
    }
    assert_eq!(taken, 480_000);
    assert!(began.elapsed() > Duration::from_secs(2), "{:?}", began.elapsed());
}

#[tokio::test]
async fn an_upstream_that_is_slow_is_no_client_that_stops_reading() {
    let upstream = serve_raw(|mut stream| async move {
        read_head(&mut stream).await;
        let head = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n";
        stream.write_all(head).await.expect("the proxy reads");
        for piece in [b"on", b"ce", b"!!"] {
            stream.write_all(piece).await.expect("the proxy reads");
            sleep(Duration::from_millis(300)).await;
        }
        // Waits until the proxy closes the connection.
        let _ = stream.read(&mut [0]).await;
    })
    .await;
    let mut settings = settings(upstream);
    settings.timeouts.write_idle = Duration::from_millis(100);
    let proxy = Proxy::with(settings).await;
    let mut client = connect(proxy.address, 65_535).await;
    let answer = send_request(&mut client).await;
    let body = within(answer.into_body().collect()).await.expect("all of it").to_bytes();
    assert_eq!(body, "once!!");
}
