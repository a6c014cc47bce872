//! Starts proxies, and sends raw bytes to them.

use std::{convert::Infallible, future::Future, net::SocketAddr, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::{JoinError, JoinHandle},
    time::timeout,
};
use tollgate_proxy::{Error, Forward, RequestBody, Settings, run};
use tower_layer::{Identity, Layer};
use tower_service::Service;

/// The time limit of a test. Tests that pass need far less.
const PATIENCE: Duration = Duration::from_secs(30);

/// A proxy that serves until its test stops it.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<Result<(), Error>>,
}

impl Proxy {
    pub(crate) async fn start(upstream: SocketAddr) -> Self {
        Self::with(settings(upstream)).await
    }

    pub(crate) async fn with(settings: Settings) -> Self {
        Self::layered(settings, Identity::new()).await
    }

    /// Starts a proxy with a layer of the test around the forwarding.
    pub(crate) async fn layered<L, S, B>(settings: Settings, layer: L) -> Self
    where
        L: Layer<Forward, Service = S> + Send + 'static,
        S: Service<Request<RequestBody>, Response = Response<B>, Error = Infallible>
            + Clone
            + Send
            + 'static,
        S::Future: Send,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = oneshot::channel();
        let shutdown = async {
            // The end of a test stops its proxy, too.
            let _ = stopped.await;
        };
        let ended = tokio::spawn(run(listener, settings, layer, shutdown));
        Self { address, stop, ended }
    }

    pub(crate) fn stop(self) -> JoinHandle<Result<(), Error>> {
        self.stop.send(()).expect("the proxy runs");
        self.ended
    }

    /// Waits for the proxy to end by itself.
    pub(crate) async fn ended(self) -> Result<Result<(), Error>, JoinError> {
        self.ended.await
    }
}

pub(crate) fn settings(upstream: SocketAddr) -> Settings {
    Settings::new(format!("http://{upstream}").parse().expect("an upstream"))
}

/// Fails the test instead of letting it hang.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.expect("the test hangs")
}

/// A client that sends any bytes, valid or not.
pub(crate) struct Client {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("the proxy accepts");
        Self { stream, read: Vec::new() }
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        within(self.stream.write_all(bytes.as_ref())).await.expect("the proxy reads");
    }

    /// Sends bytes to a connection that may have been closed already.
    pub(crate) async fn send_anyway(&mut self, bytes: impl AsRef<[u8]>) {
        // The proxy may have answered and closed already. The test asserts the response when it
        // reads.
        let _ = within(self.stream.write_all(bytes.as_ref())).await;
    }

    /// Closes the sending side.
    pub(crate) async fn finish(&mut self) {
        // Fails if the proxy closed the connection first.
        let _ = within(self.stream.shutdown()).await;
    }

    /// Reads everything up to the end of the connection.
    pub(crate) async fn read_to_end(&mut self) -> String {
        // The connection may end with a reset.
        let _ = within(self.stream.read_to_end(&mut self.read)).await;
        self.take()
    }

    /// Reads everything up to and including `end`.
    pub(crate) async fn read_until(&mut self, end: &str) -> String {
        loop {
            if let Some(at) = find(&self.read, end.as_bytes()) {
                let rest = self.read.split_off(at + end.len());
                return String::from_utf8_lossy(&std::mem::replace(&mut self.read, rest))
                    .into_owned();
            }
            let read = within(self.stream.read_buf(&mut self.read)).await.expect("bytes");
            assert!(read > 0, "ended before {end:?}: {:?}", self.take());
        }
    }

    /// Reads one response with a `content-length`.
    pub(crate) async fn read_response(&mut self) -> String {
        let head = self.read_until("\r\n\r\n").await;
        let length = header(&head, "content-length").map_or(0, |n| n.parse().expect("a length"));
        while self.read.len() < length {
            let read = within(self.stream.read_buf(&mut self.read)).await.expect("bytes");
            assert!(read > 0, "ended within the body of {head:?}");
        }
        let rest = self.read.split_off(length);
        let body = std::mem::replace(&mut self.read, rest);
        head + &String::from_utf8_lossy(&body)
    }

    fn take(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.read)).into_owned()
    }
}

/// Sends `request` on a connection of its own and reads to the end.
pub(crate) async fn exchange(address: SocketAddr, request: impl AsRef<[u8]>) -> String {
    let mut client = Client::connect(address).await;
    client.send_anyway(request).await;
    client.read_to_end().await
}

/// Returns the statuses of the responses in `text`.
pub(crate) fn statuses(text: &str) -> Vec<u16> {
    text.match_indices("HTTP/1.")
        .filter_map(|(at, _)| text.get(at + 9..at + 12)?.parse().ok())
        .collect()
}

/// Returns the value of a header field of the first response in `text`.
pub(crate) fn header<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let head = text.split("\r\n\r\n").next()?;
    head.lines()
        .filter_map(|line| line.split_once(": "))
        .find_map(|(key, value)| key.eq_ignore_ascii_case(name).then_some(value))
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}
