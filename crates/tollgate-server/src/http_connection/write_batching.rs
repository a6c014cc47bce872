//! Sends all responses that an HTTP/2 connection produces in one poll with one write.
//!
//! After one read, hyper handles the requests in that read one after the other, and would write
//! after each request. h2 also writes whenever its buffer of 16 KiB is full. This module collects
//! the bytes until the connection has no more requests to handle.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use parking_lot::{Mutex, MutexGuard};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tollgate_http::ResponsePoller;

use super::HttpVersions;
use super::activity::Activity;

/// The size of the collected responses of an HTTP/2 connection, in bytes, at which they are sent
/// before the connection produces more responses.
pub(super) const MAX_UNSENT: usize = 64 * 1024;

/// The largest buffer for collected bytes that a connection keeps, in bytes.
const MAX_KEPT_UNSENT: usize = 32 * 1024;

/// Polls a connection and its pending responses. At the end of each poll, sends the output of the
/// poll on the stream of the connection.
pub(super) struct WriteBatching<T> {
    versions: HttpVersions,
    activity: Arc<Activity>,
    stream: BatchedStream<T>,
    responses: ResponsePoller,
}

/// A stream whose writes are collected until the end of the current poll. Clones share the stream.
pub(super) struct BatchedStream<T>(Arc<Mutex<Batched<T>>>);

struct Batched<T> {
    stream: T,
    /// Whether written bytes are collected, instead of being written to the stream at once.
    collects: bool,
    /// The collected bytes, of which the first `sent` are sent.
    unsent: Vec<u8>,
    sent: usize,
    /// The error of the last write. The connection receives it from its next read or write.
    failure: Option<io::ErrorKind>,
    /// Bytes that were read from the stream earlier, and the number of these bytes that were
    /// returned.
    earlier: Vec<u8>,
    returned: usize,
}

impl<T: AsyncRead + AsyncWrite + Unpin> WriteBatching<T> {
    /// Creates the batching of the writes of a connection that accepts `versions`. `activity`
    /// reports the version that the client uses. `responses` polls the connection's responses.
    pub(super) const fn new(
        versions: HttpVersions,
        activity: Arc<Activity>,
        stream: BatchedStream<T>,
        responses: ResponsePoller,
    ) -> Self {
        Self { versions, activity, stream, responses }
    }

    /// Polls `connection` until it is ready. Sends the output of each poll at the end of the poll.
    pub(super) async fn poll_batched<F: Future>(
        &mut self,
        mut connection: Pin<&mut F>,
    ) -> F::Output {
        poll_fn(|cx| {
            let collects = self.is_http_2();
            self.stream.lock().collects = collects;
            let mut polled = connection.as_mut().poll(cx);
            // Each poll of the connection can read further requests. Their responses have no waker
            // yet, so they must be polled before this turn of the task ends.
            while polled.is_pending() && self.responses.poll(cx) {
                polled = connection.as_mut().poll(cx);
            }
            if collects && self.stream.lock().send_collected(cx).is_err() && polled.is_pending() {
                // The connection receives the error and ends.
                polled = connection.as_mut().poll(cx);
            }
            polled
        })
        .await
    }

    fn is_http_2(&self) -> bool {
        self.versions == HttpVersions::Http2 || self.activity.uses_http_2()
    }
}

impl<T> BatchedStream<T> {
    /// Creates a stream. Reads first return `earlier`, which was read from `stream` before.
    pub(super) fn new(stream: T, earlier: Vec<u8>) -> Self {
        Self(Arc::new(Mutex::new(Batched {
            stream,
            collects: false,
            unsent: Vec::new(),
            sent: 0,
            failure: None,
            earlier,
            returned: 0,
        })))
    }

    // Only the task of the connection uses the stream, so the lock is always free.
    fn lock(&self) -> MutexGuard<'_, Batched<T>> {
        self.0.lock()
    }
}

impl<T> Clone for BatchedStream<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: AsyncWrite + Unpin> Batched<T> {
    /// Ends the collection and sends the collected bytes. If the stream accepts only a part of
    /// them, a later poll sends the rest.
    fn send_collected(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        self.collects = false;
        if self.unsent.is_empty() {
            return Ok(());
        }
        let sent = match self.poll_send(cx) {
            Poll::Ready(Ok(())) => Pin::new(&mut self.stream).poll_flush(cx),
            other => other,
        };
        match sent {
            Poll::Ready(Err(error)) => {
                self.failure = Some(error.kind());
                Err(error)
            }
            Poll::Ready(Ok(())) | Poll::Pending => Ok(()),
        }
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.unsent.len() {
            let written = Pin::new(&mut self.stream).poll_write(cx, &self.unsent[self.sent..]);
            match ready!(written)? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.sent += written,
            }
        }
        self.unsent.clear();
        self.unsent.shrink_to(MAX_KEPT_UNSENT);
        self.sent = 0;
        Poll::Ready(Ok(()))
    }

    fn check(&self) -> io::Result<()> {
        self.failure.map_or(Ok(()), |failure| Err(failure.into()))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.check()?;
        if self.collects && self.unsent.len() < MAX_UNSENT {
            self.unsent.extend_from_slice(bytes);
            return Poll::Ready(Ok(bytes.len()));
        }
        ready!(self.poll_send(cx))?;
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for BatchedStream<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut batched = self.lock();
        let batched = &mut *batched;
        if let Some(failure) = batched.failure {
            return Poll::Ready(Err(failure.into()));
        }
        if batched.earlier.is_empty() {
            return Pin::new(&mut batched.stream).poll_read(cx, buffer);
        }
        let rest = &batched.earlier[batched.returned..];
        let taken = rest.len().min(buffer.remaining());
        buffer.put_slice(&rest[..taken]);
        batched.returned += taken;
        if batched.returned == batched.earlier.len() {
            batched.earlier = Vec::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for BatchedStream<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.lock().poll_write(cx, bytes)
    }

    /// Returns without a flush while bytes are collected, because they are flushed when they are
    /// sent.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut batched = self.lock();
        let batched = &mut *batched;
        batched.check()?;
        if batched.collects {
            return Poll::Ready(Ok(()));
        }
        ready!(batched.poll_send(cx))?;
        Pin::new(&mut batched.stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut batched = self.lock();
        let batched = &mut *batched;
        batched.check()?;
        ready!(batched.poll_send(cx))?;
        Pin::new(&mut batched.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;
    use std::time::Duration;

    use hyper::rt::Executor;
    use tollgate_http::{PendingResponses, RateTerms, ResponseExecutor, ResponseTasks, Shutdown};

    use crate::connection_slots::ConnectionSlots;

    /// A stream that records each write. If `first` is set, it accepts only this many bytes of the
    /// first write, and no bytes of the second write. After `refuses` writes, it refuses all writes.
    struct Writes {
        writes: Vec<Vec<u8>>,
        first: Option<usize>,
        refuses: usize,
    }

    impl AsyncRead for Writes {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            _: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    impl AsyncWrite for Writes {
        fn poll_write(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            if self.refuses == 0 {
                return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
            }
            self.refuses -= 1;
            let written = match self.first.take() {
                Some(0) => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Some(most) => {
                    self.first = Some(0);
                    most
                }
                None => bytes.len(),
            };
            self.writes.push(bytes[..written].to_vec());
            Poll::Ready(Ok(written))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    const ALL: Writes = Writes { writes: Vec::new(), first: None, refuses: usize::MAX };

    /// Writes each of `answers`, as a connection does, and flushes them in several polls. Returns the
    /// writes, and the result of the connection.
    async fn answered(
        versions: HttpVersions,
        answers: &[&str],
        stream: Writes,
    ) -> (Vec<Vec<u8>>, io::Result<()>) {
        let (_phase, shutdown) = Shutdown::new();
        let activity = Activity::new(
            ConnectionSlots::new("test", 1).try_slot().expect("a free slot"),
            None,
            shutdown,
        );
        let mut stream = BatchedStream::new(stream, Vec::new());
        let shared = stream.clone();
        let responses = PendingResponses::default().poller();
        let mut writes =
            WriteBatching::new(versions, Arc::new(activity), shared.clone(), responses);
        let (mut replied, mut polls) = (0, 0);
        let connection = poll_fn(|cx| {
            while let Some(answer) = answers.get(replied) {
                let written = Pin::new(&mut stream).poll_write(cx, answer.as_bytes());
                assert_eq!(ready!(written)?, answer.len());
                replied += 1;
            }
            ready!(Pin::new(&mut stream).poll_flush(cx))?;
            polls += 1;
            cx.waker().wake_by_ref();
            if polls == 5 { Poll::Ready(Ok(())) } else { Poll::Pending }
        });
        let ended = writes.poll_batched(std::pin::pin!(connection)).await;
        (std::mem::take(&mut shared.lock().stream.writes), ended)
    }

    /// Returns a response that is ready when it is polled again, and that wakes no task.
    fn ready_at_second_poll() -> impl Future<Output = ()> + Send + 'static {
        let mut polls = 0;
        poll_fn(move |_| {
            polls += 1;
            if polls == 1 { Poll::Pending } else { Poll::Ready(()) }
        })
    }

    #[tokio::test]
    async fn a_request_that_is_read_while_a_response_is_sent_is_answered() {
        let (_phase, shutdown) = Shutdown::new();
        let slot = ConnectionSlots::new("test", 1).try_slot().expect("a free slot");
        let activity = Arc::new(Activity::new(slot, None, shutdown));
        let responses = PendingResponses::default();
        let (stream, poller) = (BatchedStream::new(ALL, Vec::new()), responses.poller());
        let mut writes = WriteBatching::new(HttpVersions::Http2, activity, stream, poller);
        let tasks = ResponseTasks::Connection(responses);
        let executor = ResponseExecutor::new(tasks, Duration::from_secs(1), RateTerms::NONE, || {});
        let mut polls = 0;
        let connection = std::pin::pin!(poll_fn(|_| {
            polls += 1;
            if polls == 3 {
                return Poll::Ready(());
            }
            executor.execute(ready_at_second_poll());
            Poll::Pending
        }));
        let mut ended = std::pin::pin!(writes.poll_batched(connection));
        let polled = ended.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_ready(), "the second response was not polled");
    }

    #[tokio::test]
    async fn responses_of_one_poll_are_sent_with_one_write_over_http_2() {
        let (writes, ended) = answered(HttpVersions::Http2, &["a", "b", "c"], ALL).await;
        assert_eq!(writes, [b"abc"]);
        ended.unwrap();
    }

    #[tokio::test]
    async fn other_versions_write_at_once() {
        let (writes, ended) = answered(HttpVersions::Any, &["a", "b"], ALL).await;
        assert_eq!(writes, [b"a", b"b"]);
        ended.unwrap();
    }

    #[tokio::test]
    async fn a_partial_write_is_completed_by_a_later_poll() {
        let (writes, ended) =
            answered(HttpVersions::Http2, &["abc", "def"], Writes { first: Some(4), ..ALL }).await;
        assert_eq!(writes.concat(), b"abcdef");
        assert_eq!(writes[0], b"abcd");
        ended.unwrap();
    }

    #[tokio::test]
    async fn the_connection_receives_the_error_of_a_write() {
        let (writes, ended) =
            answered(HttpVersions::Http2, &["a"], Writes { refuses: 0, ..ALL }).await;
        assert!(writes.is_empty());
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[tokio::test]
    async fn the_size_of_the_collected_responses_is_bounded() {
        let answer = "a".repeat(MAX_UNSENT);
        let (writes, ended) = answered(HttpVersions::Http2, &[&answer, "b", "c"], ALL).await;
        assert_eq!(writes, [answer.as_bytes(), b"b", b"c"]);
        ended.unwrap();
    }
}
