use std::{net::SocketAddr, time::Duration};

use tokio::net::TcpListener;

use crate::{
    setup::{Client, Proxy, exchange, header, settings, statuses},
    upstream::{Recorder, canned, read_head, serve_raw},
};

const REQUEST: &str = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

async fn assert_problem(upstream: SocketAddr, status: u16, detail: &str) {
    let proxy = Proxy::start(upstream).await;
    assert_problem_of(&proxy, upstream, status, detail).await;
}

async fn assert_problem_of(proxy: &Proxy, upstream: SocketAddr, status: u16, detail: &str) {
    let answer = exchange(proxy.address, REQUEST).await;
    assert_eq!(statuses(&answer), [status], "{answer}");
    assert_eq!(header(&answer, "content-type"), Some("application/problem+json"));
    assert!(answer.contains(&format!("\"status\":{status}")), "{answer}");
    assert!(answer.contains(detail), "{answer}");
    assert!(!answer.contains(&upstream.port().to_string()), "the upstream shows: {answer}");
}

#[tokio::test]
async fn an_upstream_that_refuses_is_a_502() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let upstream = listener.local_addr().expect("an address");
    drop(listener);
    assert_problem(upstream, 502, "could not be reached").await;
}

#[tokio::test]
async fn an_upstream_that_hangs_up_is_a_502() {
    let upstream = serve_raw(|mut stream| async move {
        read_head(&mut stream).await;
    })
    .await;
    assert_problem(upstream, 502, "closed the connection").await;
}

#[tokio::test]
async fn an_upstream_that_speaks_nonsense_is_a_502() {
    let nonsense = [
        "SSH-2.0-OpenSSH_9.9\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nokk",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: two\r\n\r\nok",
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
    ];
    for answer in nonsense {
        assert_problem(canned(answer).await, 502, "invalid response").await;
    }
}

#[tokio::test]
async fn an_upstream_with_too_large_a_head_is_a_502() {
    let head = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(100_000));
    assert_problem(canned(head.leak()).await, 502, "invalid response").await;
}

#[tokio::test]
async fn an_upstream_that_does_not_answer_is_a_504() {
    let upstream = serve_raw(|mut stream| async move {
        read_head(&mut stream).await;
        std::future::pending::<()>().await;
    })
    .await;
    let mut settings = settings(upstream);
    settings.timeouts.response_head = Duration::from_millis(50);
    let proxy = Proxy::with(settings).await;
    assert_problem_of(&proxy, upstream, 504, "did not respond in time").await;
}

#[tokio::test]
async fn the_response_timer_starts_at_the_end_of_the_body() {
    let upstream = Recorder::start().await;
    let mut settings = settings(upstream.address);
    settings.timeouts.response_head = Duration::from_secs(2);
    let proxy = Proxy::with(settings).await;
    let mut client = Client::connect(proxy.address).await;
    client
        .send("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 10\r\n\r\n12345")
        .await;
    // Longer than the time limit for the response head.
    tokio::time::sleep(Duration::from_secs(3)).await;
    client.send("67890").await;
    assert_eq!(statuses(&client.read_to_end().await), [200]);
    assert_eq!(upstream.take_one().body, "1234567890");
}

#[tokio::test]
async fn an_upstream_that_does_not_take_the_body_is_a_504() {
    let upstream = serve_raw(|mut stream| async move {
        read_head(&mut stream).await;
        std::future::pending::<()>().await;
    })
    .await;
    let mut settings = settings(upstream);
    settings.timeouts.response_head = Duration::from_millis(50);
    settings.limits.request_body_bytes = 64 << 20;
    let proxy = Proxy::with(settings).await;
    let stream = tokio::net::TcpStream::connect(proxy.address).await.expect("the proxy accepts");
    let (mut reader, mut writer) = stream.into_split();
    let sending = tokio::spawn(async move {
        use tokio::io::AsyncWriteExt;
        let head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 67108864\r\n\r\n";
        let mut sent = writer.write_all(head).await;
        while sent.is_ok() {
            sent = writer.write_all(&[b'y'; 65_536]).await;
        }
    });
    let mut answer = [0; 12];
    use tokio::io::AsyncReadExt;
    crate::setup::within(reader.read_exact(&mut answer)).await.expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 504");
    sending.abort();
}

#[tokio::test]
async fn an_upstream_that_cannot_be_connected_to_in_time_is_a_504() {
    // A full backlog of one: the kernel accepts no more connections.
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a free port");
    let listener = socket.listen(0).expect("a listener");
    let upstream = listener.local_addr().expect("an address");
    let mut waiting = Vec::new();
    while let Ok(Ok(stream)) =
        tokio::time::timeout(Duration::from_millis(200), tokio::net::TcpStream::connect(upstream))
            .await
    {
        waiting.push(stream);
    }
    let mut settings = settings(upstream);
    settings.timeouts.connect = Duration::from_millis(50);
    let proxy = Proxy::with(settings).await;
    assert_problem_of(&proxy, upstream, 504, "could not be reached in time").await;
}

#[tokio::test]
async fn a_response_that_stalls_breaks_off() {
    use tokio::io::AsyncWriteExt;
    let upstream = serve_raw(|mut stream| async move {
        read_head(&mut stream).await;
        let start = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n";
        stream.write_all(start).await.expect("the proxy reads");
        std::future::pending::<()>().await;
    })
    .await;
    let mut settings = settings(upstream);
    settings.timeouts.response_body_idle = Duration::from_millis(50);
    let proxy = Proxy::with(settings).await;
    let mut client = Client::connect(proxy.address).await;
    client.send(REQUEST).await;
    let answer = client.read_to_end().await;
    assert!(answer.contains("half"), "{answer}");
    assert!(!answer.contains("\r\n0\r\n"), "a broken body must not look whole: {answer}");
}

#[tokio::test]
async fn the_proxy_serves_again_once_the_upstream_does() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let upstream = listener.local_addr().expect("an address");
    drop(listener);
    let proxy = Proxy::start(upstream).await;
    assert_eq!(statuses(&exchange(proxy.address, REQUEST).await), [502]);

    let listener = TcpListener::bind(upstream).await.expect("the port again");
    tokio::spawn(async move {
        use tokio::io::AsyncWriteExt;
        let (mut stream, _) = listener.accept().await.expect("the proxy connects");
        read_head(&mut stream).await;
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(answer).await.expect("the proxy reads");
    });
    assert_eq!(statuses(&exchange(proxy.address, REQUEST).await), [200]);
}
