//! Requests that are answered without the HTTP library get the same responses as with the library.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tollgate_server::{Access, ConnectionLimits, HttpOptions, Tokens};

use crate::http::server::Server;

const PATIENCE: Duration = Duration::from_secs(30);
const TOKEN: &str = "0123456789abcdef";
const CHECK: &str = r#"{"limits":[{"name":"everybody"}]}"#;

/// Header fields and bodies. The direct reader supports some of them, and passes the others on to
/// the HTTP library.
const FIELDS: [&str; 14] = [
    "",
    "User-Agent: test\r\nAccept: */*\r\naccept-encoding: gzip\r\nACCEPT-LANGUAGE: de\r\n",
    "connection: keep-alive\r\n",
    "prefer: return=minimal\r\n",
    "prefer: return=representation\r\n",
    "authorization: Bearer 0123456789abcdef\r\n",
    "authorization: Bearer wrong\r\n",
    "authorization: Bearer 0123456789abcdef\r\nauthorization: Bearer 0123456789abcdef\r\n",
    "idempotency-key: a b\r\n",
    "origin: https://elsewhere.example\r\n",
    "x-anything: 1\r\n",
    "content-type: text/plain\r\n",
    "expect: 100-continue\r\n",
    "host: b\r\n",
];
const BODIES: [&str; 6] = [
    CHECK,
    r#"{"limits":[{"name":"nobody"}]}"#,
    r#"{"limits":[{"name":"core","cost":0,"subject":{"token":"Bearer x"}}]}"#,
    r#"{"request":{"method":"GET","path":"/a/../b"}}"#,
    "{",
    "",
];

fn request(fields: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST /v1/check HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n{fields}\r\n{body}"
    )
}

/// A response: the lines of its head without the date, and its body.
#[derive(Debug, PartialEq)]
struct Answer {
    head: Vec<String>,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// Removes the parts that differ between two equal requests: the receipt, which is random, and
    /// the usage, to which charges add up.
    fn without_state(mut self) -> Self {
        let Ok(mut document) = serde_json::from_str::<Value>(&self.body) else { return self };
        for member in ["receipt", "statuses", "headers"] {
            if let Some(value) = document.get_mut(member) {
                *value = json!("any");
            }
        }
        self.body = document.to_string();
        self.head.retain(|line| !line.starts_with("content-length"));
        self
    }
}

/// Reads one response from `input` and `stream`.
async fn answer(stream: &mut TcpStream, input: &mut Vec<u8>) -> Answer {
    loop {
        let text = String::from_utf8_lossy(input).into_owned();
        if let Some((head, rest)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.map_or(0, |length| length.parse().unwrap());
            if rest.len() >= length {
                input.drain(..head.len() + 4 + length);
                let has_date = head.lines().any(|line| line.starts_with("date: "));
                assert!(has_date || head.starts_with("HTTP/1.1 100"), "{head}");
                let head = head.lines().filter(|line| !line.starts_with("date: "));
                let head = head.map(str::to_owned).collect();
                return Answer { head, body: rest[..length].to_owned() };
            }
        }
        let read = timeout(PATIENCE, stream.read_buf(input)).await.unwrap().unwrap();
        assert_ne!(read, 0, "closed after {text:?}");
    }
}

async fn send(stream: &mut TcpStream, request: &str) -> Answer {
    stream.write_all(request.as_bytes()).await.unwrap();
    answer(stream, &mut Vec::new()).await
}

/// Returns a connection that the HTTP library serves, because the direct reader does not support
/// its first request.
async fn passed_on(server: &Server) -> TcpStream {
    let mut stream = server.connect().await;
    let ready = send(&mut stream, "GET /readyz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n").await;
    assert_eq!(ready.head[0], "HTTP/1.1 200 OK");
    stream
}

#[tokio::test]
async fn a_response_does_not_depend_on_what_serves_it() {
    for access in [Access::Open, Access::Tokens(Tokens::parse(TOKEN).unwrap())] {
        let options = HttpOptions { access, ..HttpOptions::default() };
        let server = Server::start(options, ConnectionLimits::default());
        for (fields, body) in FIELDS.iter().flat_map(|one| BODIES.map(|body| (*one, body))) {
            let request = request(fields, body);
            let direct = send(&mut server.connect().await, &request).await.without_state();
            let other = send(&mut passed_on(&server).await, &request).await.without_state();
            assert_eq!(direct, other, "{request}");
        }
        server.end().await.unwrap();
    }
}

/// The bytes of several requests arrive in pieces of any size, with a request of another form
/// between them.
#[tokio::test]
async fn requests_are_found_however_they_are_split() {
    let server = Server::start(HttpOptions::default(), ConnectionLimits::default());
    let ready = "GET /readyz HTTP/1.1\r\nhost: a\r\n\r\n";
    let check = request("", CHECK);
    let all = [&*check, &*check, ready, &*check, &*check].concat();
    let mut used = 0;
    for part in [1, 7, 64, check.len() - 1, check.len(), check.len() + 1, all.len()] {
        let (mut stream, mut input) = (server.connect().await, Vec::new());
        stream.set_nodelay(true).unwrap();
        for bytes in all.as_bytes().chunks(part) {
            stream.write_all(bytes).await.unwrap();
            tokio::task::yield_now().await;
        }
        for index in 0..5 {
            let answer = answer(&mut stream, &mut input).await;
            assert_eq!(answer.head[0], "HTTP/1.1 200 OK");
            if index != 2 {
                used += 1;
                assert_eq!(answer.json()["statuses"][0]["used"], used);
            }
        }
        assert!(input.is_empty());
    }
    server.end().await.unwrap();
}

/// The rest of a request is read even if it arrives late.
#[tokio::test]
async fn a_client_may_pause_within_a_request() {
    let server = Server::start(HttpOptions::default(), ConnectionLimits::default());
    let check = request("", CHECK);
    for pause_at in [1, 30, check.len() - CHECK.len(), check.len() - 1] {
        let mut stream = server.connect().await;
        assert_eq!(send(&mut stream, &check).await.head[0], "HTTP/1.1 200 OK");
        stream.write_all(&check.as_bytes()[..pause_at]).await.unwrap();
        sleep(Duration::from_millis(120)).await;
        let answer = send(&mut stream, &check[pause_at..]).await;
        assert_eq!(answer.head[0], "HTTP/1.1 200 OK");
        assert_eq!(send(&mut stream, &check).await.head[0], "HTTP/1.1 200 OK");
    }
    server.end().await.unwrap();
}

/// A request that is longer than the input buffer.
#[tokio::test]
async fn a_long_request_is_answered() {
    let server = Server::start(HttpOptions::default(), ConnectionLimits::default());
    let mut stream = server.connect().await;
    let long = format!("{CHECK}{}", " ".repeat(20_000));
    for body in [CHECK, &long, CHECK] {
        assert_eq!(send(&mut stream, &request("", body)).await.head[0], "HTTP/1.1 200 OK");
    }
    server.end().await.unwrap();
}

/// A drain closes an idle connection, and the response to a last request says so.
#[tokio::test]
async fn a_drain_is_announced() {
    let server = Server::start(HttpOptions::default(), ConnectionLimits::default());
    let (mut idle, mut last) = (server.connect().await, server.connect().await);
    for stream in [&mut idle, &mut last] {
        send(stream, &request("", CHECK)).await;
    }
    let ended = tokio::spawn(server.end());
    sleep(Duration::from_millis(100)).await;
    let answer = send(&mut last, &request("", CHECK)).await;
    assert!(answer.head.contains(&"connection: close".to_owned()), "{answer:?}");
    for stream in [&mut idle, &mut last] {
        assert_eq!(timeout(PATIENCE, stream.read(&mut [0])).await.unwrap().unwrap(), 0);
    }
    timeout(PATIENCE, ended).await.unwrap().unwrap().unwrap();
}
