use std::{
    fmt,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use http::{Request, Response};
use hyper::{
    body::Incoming,
    client::conn::{
        TrySendError,
        http1::{Connection, SendRequest},
    },
};
use hyper_util::rt::TokioIo;
use tollgate_http::Stream;

use crate::{body::RequestBody, counted_reads::CountedReads};

/// A connection to the upstream that serves one request after another.
///
/// The connection has no task of its own. The task that waits for the upstream's response also
/// drives the connection, which saves two task switches and two channel wake-ups for each request.
pub(crate) struct UpstreamLink {
    sender: SendRequest<RequestBody>,
    /// The connection to the upstream, or `None` after it is closed.
    connection: Option<UpstreamConnection>,
    /// The number of bytes that the upstream has sent on the connection. `reads_before` is this
    /// number at the start of the last request.
    reads: Arc<AtomicU64>,
    reads_before: u64,
}

/// The byte stream of a connection to the upstream.
pub(crate) type UpstreamIo = CountedReads<Stream>;

pub(crate) type UpstreamConnection = Connection<TokioIo<UpstreamIo>, RequestBody>;

/// The error of a request that received no response. It contains the request, if no byte of the
/// request was sent.
pub(crate) type SendError = TrySendError<Request<RequestBody>>;

impl UpstreamLink {
    /// Creates a link over an open connection. `reads` counts the bytes that arrive on the
    /// connection.
    pub(crate) fn new(
        sender: SendRequest<RequestBody>,
        connection: UpstreamConnection,
        reads: Arc<AtomicU64>,
    ) -> Self {
        Self { sender, connection: Some(connection), reads, reads_before: 0 }
    }

    /// Returns whether the upstream has sent no byte since the start of the last request.
    pub(crate) fn is_silent(&self) -> bool {
        self.reads.load(Ordering::Relaxed) == self.reads_before
    }

    /// Sends `request`. The future returns the head of the response. If the future is dropped
    /// before it ends, the link can no longer be used.
    ///
    /// The function is not `async`, because the future of an `async` function would contain the
    /// whole request, and the request would be copied with each future that awaits it.
    pub(crate) fn send<'l>(
        &'l mut self,
        request: Request<RequestBody>,
    ) -> impl Future<Output = Result<Response<Incoming>, SendError>> + use<'l> {
        self.reads_before = self.reads.load(Ordering::Relaxed);
        let response = self.sender.try_send_request(request);
        async move {
            let mut response = pin!(response);
            poll_fn(|cx| {
                self.drive(cx);
                response.as_mut().poll(cx)
            })
            .await
        }
    }

    /// Reads and writes on the connection as much as is possible without waiting.
    pub(crate) fn drive(&mut self, cx: &mut Context<'_>) {
        if let Some(connection) = &mut self.connection
            && Pin::new(connection).poll(cx).is_ready()
        {
            // Dropping the connection fails the waiting requests, and returns a request that was
            // not started.
            self.connection = None;
        }
    }

    /// Returns whether the link can accept the next request.
    pub(crate) fn is_ready(&self) -> bool {
        !self.is_closed() && self.sender.is_ready()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.connection.is_none()
    }

    /// Reads and writes on the connection until it can accept the next request or is closed.
    pub(crate) fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.drive(cx);
        match self.is_closed() {
            true => Poll::Ready(()),
            // An error means that the connection is closed.
            false => self.sender.poll_ready(cx).map(|_| ()),
        }
    }
}

impl fmt::Debug for UpstreamLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("is_closed", &self.is_closed()).finish_non_exhaustive()
    }
}
