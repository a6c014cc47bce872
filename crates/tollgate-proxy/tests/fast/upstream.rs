//! Upstreams: one that records and echoes, and others with behavior that a test defines.

use std::{convert::Infallible, future::Future, net::SocketAddr, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};

/// A complete request that reached the upstream.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) line: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
    pub(crate) trailers: Option<HeaderMap>,
}

/// An upstream that answers each request with the method, the target and the body of the request,
/// and records the request.
pub(crate) struct Recorder {
    pub(crate) address: SocketAddr,
    observed: Arc<Mutex<Vec<Seen>>>,
}

impl Recorder {
    pub(crate) async fn start() -> Self {
        let observed = Arc::new(Mutex::new(Vec::new()));
        let memory = Arc::clone(&observed);
        let address = serve(move |request| {
            let memory = Arc::clone(&memory);
            async move {
                let (parts, body) = request.into_parts();
                let line = format!("{} {}", parts.method, parts.uri);
                // A request with an incomplete body is neither answered nor recorded.
                let Ok(body) = body.collect().await else { return std::future::pending().await };
                let trailers = body.trailers().cloned();
                let body = String::from_utf8_lossy(&body.to_bytes()).into_owned();
                let answer = Response::new(Full::from(format!("{line} [{body}]")));
                memory.lock().push(Seen { line, headers: parts.headers, body, trailers });
                answer
            }
        })
        .await;
        Self { address, observed }
    }

    /// Returns the requests since the last call.
    pub(crate) fn take(&self) -> Vec<Seen> {
        std::mem::take(&mut self.observed.lock())
    }

    /// Returns the only request since the last call.
    pub(crate) fn take_one(&self) -> Seen {
        let mut observed = self.take();
        assert_eq!(observed.len(), 1, "{observed:?}");
        observed.remove(0)
    }
}

/// Starts an HTTP/1.1 upstream that answers with `answer`.
pub(crate) async fn serve<F, A, B>(answer: F) -> SocketAddr
where
    F: Fn(Request<Incoming>) -> A + Clone + Send + 'static,
    A: Future<Output = Response<B>> + Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    serve_raw(move |stream| {
        let answer = answer.clone();
        async move {
            let service = service_fn(move |request| {
                let answer = answer(request);
                async move { Ok::<_, Infallible>(answer.await) }
            });
            // The test checks the end of the connection from the other side.
            let _ = http1::Builder::new()
                .max_headers(200)
                .serve_connection(TokioIo::new(stream), service)
                .with_upgrades()
                .await;
        }
    })
    .await
}

/// Starts an upstream that handles each connection with `treat`.
pub(crate) async fn serve_raw<F, T>(treat: F) -> SocketAddr
where
    F: Fn(TcpStream) -> T + Send + 'static,
    T: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(treat(stream));
        }
    });
    address
}

/// Starts an upstream that reads one head on each connection, sends `answer` and closes.
pub(crate) async fn canned(answer: &'static str) -> SocketAddr {
    use tokio::io::AsyncWriteExt;
    serve_raw(move |mut stream| async move {
        read_head(&mut stream).await;
        let _ = stream.write_all(answer.as_bytes()).await;
        let _ = stream.shutdown().await;
    })
    .await
}

/// Reads to the end of a head. Returns the head and the bytes that were read after it.
pub(crate) async fn read_head(stream: &mut TcpStream) -> String {
    use tokio::io::AsyncReadExt;
    let mut read = Vec::new();
    while !read.windows(4).any(|window| window == b"\r\n\r\n") {
        if stream.read_buf(&mut read).await.unwrap_or(0) == 0 {
            break;
        }
    }
    String::from_utf8_lossy(&read).into_owned()
}
