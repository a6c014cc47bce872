//! HTTP/2 clients with a flow-control window that has no room for the response.

use std::time::Duration;

use hyper::Request;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tollgate_server::{ConnectionLimits, HttpOptions};

use crate::http::server::Server;

const PATIENCE: Duration = Duration::from_secs(30);

/// Connects a client that answers pings, so its connection stays alive.
async fn connect(server: &Server, window: u32) -> http2::SendRequest<String> {
    let stream = TcpStream::connect(&server.address).await.unwrap();
    let mut client = http2::Builder::new(TokioExecutor::new());
    client.initial_stream_window_size(window);
    let (sender, connection) = client.handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

#[tokio::test]
async fn an_http_2_client_that_reads_no_response_is_not_at_work_for_ever() {
    let limits = ConnectionLimits { idle: Duration::from_secs(1), ..Default::default() };
    let server = Server::start(HttpOptions::default(), limits);
    for window in [0, 1] {
        let mut client = connect(&server, window).await;
        let request = Request::get("http://a/openapi.json").body(String::new()).unwrap();
        let _unread = timeout(PATIENCE, client.send_request(request)).await.unwrap().unwrap();
        let closed = async {
            while !client.is_closed() {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, closed).await.unwrap();
    }
    server.end().await.unwrap();
}

/// If no slot is free, clients that do not read their responses no longer count as busy.
#[tokio::test]
async fn a_listener_full_of_clients_that_take_no_answer_serves_who_comes() {
    let limits =
        ConnectionLimits { at_once: 3, idle: Duration::from_secs(2), ..Default::default() };
    let server = Server::start(HttpOptions::default(), limits);
    let mut unread = Vec::new();
    for _ in 0..3 {
        let mut client = connect(&server, 0).await;
        let request = Request::get("http://a/openapi.json").body(String::new()).unwrap();
        unread.push(timeout(PATIENCE, client.send_request(request)).await.unwrap().unwrap());
    }
    let served = async {
        let mut client = connect(&server, 65_535).await;
        let request = Request::get("http://a/readyz").body(String::new()).unwrap();
        client.send_request(request).await.unwrap().status()
    };
    assert_eq!(timeout(PATIENCE, served).await.unwrap(), 200);
    server.end().await.unwrap();
}
