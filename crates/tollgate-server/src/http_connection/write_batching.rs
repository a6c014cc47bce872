//! Sends all responses that an HTTP/2 connection produces in one poll with one write.
//!
//! After one read, hyper handles the requests in that read one after the other, and would write
//! after each request. This module delays the writes until the connection has no more requests to
//! handle.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::HttpVersions;
use super::activity::Activity;

/// A state of [`WriteBatching`]: writes are passed on to the stream.
const OPEN: u8 = 0;
/// A state of [`WriteBatching`]: writes are delayed, but no write has been delayed yet.
const HOLDING: u8 = 1;
/// A state of [`WriteBatching`]: at least one write is delayed.
const HELD: u8 = 2;

/// Delays the writes of a connection until the end of the current poll.
#[derive(Debug)]
pub(super) struct WriteBatching {
    versions: HttpVersions,
    activity: Arc<Activity>,
    // Only one task reads and writes this value, and the value synchronizes no other memory, so
    // relaxed ordering is enough.
    writes: AtomicU8,
}

impl WriteBatching {
    /// Creates the batching of the writes of a connection that accepts `versions`. `activity`
    /// reports the version that the client uses.
    pub(super) const fn new(versions: HttpVersions, activity: Arc<Activity>) -> Self {
        Self { versions, activity, writes: AtomicU8::new(OPEN) }
    }

    /// Polls `connection` until it is ready. Sends the output of each poll at the end of the poll.
    pub(super) async fn poll_batched<F: Future>(&self, mut connection: Pin<&mut F>) -> F::Output {
        poll_fn(|cx| {
            if self.is_http_2() {
                self.writes.store(HOLDING, Ordering::Relaxed);
            }
            let polled = connection.as_mut().poll(cx);
            let is_held = self.writes.swap(OPEN, Ordering::Relaxed) == HELD;
            // A delayed write registered no waker, so this second poll executes the write.
            if is_held && polled.is_pending() { connection.as_mut().poll(cx) } else { polled }
        })
        .await
    }

    fn is_http_2(&self) -> bool {
        self.versions == HttpVersions::Http2 || self.activity.uses_http_2()
    }

    /// Returns whether a write has to wait.
    fn holds(&self) -> bool {
        let is_open = self.writes.load(Ordering::Relaxed) == OPEN;
        if !is_open {
            self.writes.store(HELD, Ordering::Relaxed);
        }
        !is_open
    }
}

pin_project! {
    /// A stream whose writes are delayed until the end of the current poll.
    pub(super) struct BatchedStream<T> {
        #[pin]
        stream: T,
        writes: Arc<WriteBatching>,
        // Bytes that were read from the stream earlier, and the number of those bytes that were
        // returned.
        earlier: Vec<u8>,
        returned: usize,
    }
}

impl<T> BatchedStream<T> {
    pub(super) const fn new(stream: T, writes: Arc<WriteBatching>) -> Self {
        Self { stream, writes, earlier: Vec::new(), returned: 0 }
    }

    /// Returns `earlier` to the following reads, before the bytes that the stream still has.
    /// `earlier` was read from the stream before.
    pub(super) fn put_back(&mut self, earlier: Vec<u8>) {
        (self.earlier, self.returned) = (earlier, 0);
    }
}

impl<T: AsyncRead> AsyncRead for BatchedStream<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.project();
        if this.earlier.is_empty() {
            return this.stream.poll_read(cx, buffer);
        }
        let rest = &this.earlier[*this.returned..];
        let taken = rest.len().min(buffer.remaining());
        buffer.put_slice(&rest[..taken]);
        *this.returned += taken;
        if *this.returned == this.earlier.len() {
            *this.earlier = Vec::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite> AsyncWrite for BatchedStream<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.project();
        if this.writes.holds() { Poll::Pending } else { this.stream.poll_write(cx, bytes) }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.project();
        if this.writes.holds() {
            Poll::Pending
        } else {
            this.stream.poll_write_vectored(cx, slices)
        }
    }

    /// Returns `false` for HTTP/2: with vectored writes, h2 flushes after each message of more than
    /// 256 bytes before it adds another frame. Without vectored writes, h2 copies up to 1 KiB and
    /// continues.
    fn is_write_vectored(&self) -> bool {
        !self.writes.is_http_2() && self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().stream.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().stream.poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection_slots::ConnectionSlots;
    use tollgate_http::Shutdown;

    /// A stream that records each write.
    #[derive(Default)]
    struct Writes(Vec<Vec<u8>>);

    impl AsyncWrite for Writes {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.0.push(bytes.to_vec());
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    /// Queues each of `answers`, and tries to write after each of them, as a connection does.
    /// Returns the writes.
    async fn answered(versions: HttpVersions, answers: &[&str]) -> Vec<Vec<u8>> {
        let (_phase, shutdown) = Shutdown::new();
        let activity = Activity::new(
            ConnectionSlots::new("test", 1).try_slot().expect("a free slot"),
            None,
            shutdown,
        );
        let writes = Arc::new(WriteBatching::new(versions, Arc::new(activity)));
        let mut stream = BatchedStream::new(Writes::default(), Arc::clone(&writes));
        let (mut made, mut unwritten) = (0, Vec::new());
        let connection = poll_fn(|cx| {
            loop {
                if !unwritten.is_empty()
                    && Pin::new(&mut stream).poll_write(cx, &unwritten).is_ready()
                {
                    unwritten.clear();
                }
                let Some(answer) = answers.get(made) else { break };
                unwritten.extend_from_slice(answer.as_bytes());
                made += 1;
            }
            if unwritten.is_empty() { Poll::Ready(()) } else { Poll::Pending }
        });
        writes.poll_batched(std::pin::pin!(connection)).await;
        stream.stream.0
    }

    #[tokio::test]
    async fn what_a_turn_answers_over_http_2_is_written_at_its_end() {
        assert_eq!(answered(HttpVersions::Http2, &["a", "b", "c"]).await, [b"abc"]);
    }

    #[tokio::test]
    async fn what_speaks_something_else_is_not_held() {
        assert_eq!(answered(HttpVersions::Any, &["a", "b"]).await, [b"a", b"b"]);
    }
}
