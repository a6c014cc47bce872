//! A connection to an upstream without a task of its own.
//!
//! The connection is driven by hand, because a connection of `hyper` in a task of its own costs two
//! task switches and two wake-ups through channels for each request.

use std::{
    fmt,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
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
use tollgate_http::{DetachableWaker, Stream};

use crate::{body::RequestBody, counted_reads::CountedReads};

/// A connection to the upstream that serves one request after another.
///
/// The connection has no task of its own. The task that waits for the upstream's response also
/// drives the connection, which saves two task switches and two channel wake-ups for each request.
pub(crate) struct UpstreamLink {
    sender: SendRequest<RequestBody>,
    /// The connection to the upstream, or `None` after it is closed.
    connection: Option<UpstreamConnection>,
    /// The waker of the connection, to which the task that waits for the connection is attached.
    waker: DetachableWaker,
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
        let waker = DetachableWaker::new();
        Self { sender, connection: Some(connection), waker, reads, reads_before: 0 }
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
        // The request wakes the connection, which the future below drives in any case.
        self.detach();
        let response = self.sender.try_send_request(request);
        async move {
            let mut response = pin!(response);
            poll_fn(|cx| self.poll_driven(cx, |cx| response.as_mut().poll(cx))).await
        }
    }

    /// Returns the result of `poll`, which waits for something that arrives on the connection. If
    /// nothing has arrived yet, drives the connection and polls again.
    pub(crate) fn poll_driven<T>(
        &mut self,
        cx: &mut Context<'_>,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        // The first poll can wake the connection, and the drive wakes whoever waits for the
        // connection. Both would make the task run once more. The task is therefore attached only
        // from the drive on, and the first poll replaces the waker that an earlier call registered.
        // No wake-up is lost: if this function returns `Pending`, the task is attached, and the
        // second poll has registered its waker.
        self.detach();
        let ready = poll(&mut Context::from_waker(Waker::noop()));
        if ready.is_ready() {
            return ready;
        }
        self.drive(cx);
        poll(cx)
    }

    /// Reads and writes on the connection as much as is possible without waiting. Later events on
    /// the connection wake the task of `cx`.
    pub(crate) fn drive(&mut self, cx: &mut Context<'_>) {
        let waker = self.waker.attach(cx.waker());
        if let Some(connection) = &mut self.connection
            && Pin::new(connection).poll(&mut Context::from_waker(waker)).is_ready()
        {
            // Dropping the connection fails the waiting requests, and returns a request that was
            // not started.
            self.connection = None;
        }
    }

    /// Ends the wake-ups by the connection until the next [`drive`](Self::drive).
    pub(crate) fn detach(&self) {
        self.waker.detach();
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

#[cfg(test)]
mod tests {
    use std::{sync::atomic::AtomicUsize, task::Wake, time::Duration};

    use http::header;
    use http_body::Body;
    use hyper::client::conn::http1;
    use tokio::{
        io::AsyncWriteExt,
        net::{TcpListener, TcpStream},
        task::yield_now,
        time::timeout,
    };

    use super::*;

    /// The number of times that a task was woken.
    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Polls whenever the task is woken, until `poll` is ready. Checks that each poll wakes the task
    /// at most `allowed` times. The sockets wake the task only between the polls, because they are
    /// polled by the same thread.
    async fn ready<T>(allowed: usize, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
        let wakes = Arc::<Wakes>::default();
        let waker = Waker::from(Arc::clone(&wakes));
        let woken = || wakes.0.load(Ordering::Relaxed);
        let polling = async {
            loop {
                let before = woken();
                let polled = poll(&mut Context::from_waker(&waker));
                assert!(woken() <= before + allowed, "a poll wakes its own task");
                if let Poll::Ready(value) = polled {
                    return value;
                }
                while woken() == before {
                    yield_now().await;
                }
            }
        };
        timeout(Duration::from_secs(30), polling).await.expect("nothing wakes the task")
    }

    #[tokio::test]
    async fn a_request_and_its_response_wake_a_task_only_when_bytes_arrive() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut upstream, _) = listener.accept().await.unwrap();
        let io = CountedReads::new(Stream::Tcp(stream));
        let reads = io.bytes();
        let (sender, connection) = http1::handshake(TokioIo::new(io)).await.unwrap();
        let mut link = UpstreamLink::new(sender, connection, reads);
        for round in 0..4 {
            let mut request = Request::new(RequestBody::empty());
            request.headers_mut().insert(header::HOST, "upstream".parse().unwrap());
            let mut sent = Box::pin(link.send(request));
            let first = sent.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(first.is_pending());
            // In every second round, the body arrives together with the head.
            let is_together = round % 2 == 0;
            let head = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n";
            let first = if is_together { [head, "body"].concat() } else { head.to_owned() };
            upstream.write_all(first.as_bytes()).await.unwrap();
            let mut body = ready(0, |cx| sent.as_mut().poll(cx)).await.unwrap().into_body();
            drop(sent);
            if !is_together {
                upstream.write_all(b"body").await.unwrap();
            }
            let mut frame = |cx: &mut Context<'_>| {
                link.poll_driven(cx, |cx| Pin::new(&mut body).poll_frame(cx))
            };
            // A part that this call reads and takes wakes the connection, and so the task.
            let data = ready(usize::from(!is_together), &mut frame).await;
            assert_eq!(*data.unwrap().unwrap().into_data().unwrap(), *b"body");
            assert!(ready(0, &mut frame).await.is_none());
            assert!(link.is_ready());
            link.detach();
        }
    }
}
