//! Requests that are answered without the HTTP library.
//!
//! Nearly all requests of a listener have one form: one path, a few known header fields and a short
//! body. A connection begins with a reader that reads only requests of this form. If any other
//! bytes arrive, the reader passes the connection on to hyper, together with the bytes that it has
//! not used, and hyper serves the connection from then on.
//!
//! The reader is written by hand, because hyper takes 8,000 instructions for a request, twice as
//! many as the decision on the request, and sends each of several pipelined responses with a
//! separate write.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::activity::Activity;

/// The size of the input buffer, in bytes. A longer request is passed on.
const MAX_INPUT: usize = 8 * 1024;

/// The largest output buffer that a connection keeps, in bytes.
const MAX_KEPT_OUTPUT: usize = 16 * 1024;

/// The longest time until the rest of a request arrives. After that, the connection is passed on to
/// hyper.
const REST_TIMEOUT: Duration = Duration::from_millis(50);

/// A service that answers requests of one form without hyper.
pub(crate) trait DirectService: Send + 'static {
    /// The parts of a request that the service needs for the response.
    type Request: Send;

    /// Reads the request at the start of `bytes`, which may be incomplete or of another kind.
    fn read(&mut self, bytes: &[u8]) -> DirectRead<Self::Request>;

    /// Appends the response to `request` to `out`. The request was read from the start of `bytes`.
    /// `is_first` is true for the first of several requests that arrived together.
    fn answer(
        &mut self,
        request: Self::Request,
        bytes: &[u8],
        is_first: bool,
        out: &mut Vec<u8>,
    ) -> impl Future<Output = ()> + Send;
}

/// The result of reading the start of the input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DirectRead<R> {
    /// A complete request, and its length in bytes.
    Request(R, usize),
    /// The bytes are an incomplete request, which this service may be able to read once it is
    /// complete.
    Partial,
    /// The bytes are another kind of request, which hyper has to read.
    Other,
}

/// A service that answers no requests, so hyper serves the whole connection.
#[derive(Debug)]
pub(crate) struct NoDirectService;

impl DirectService for NoDirectService {
    type Request = ();

    fn read(&mut self, _: &[u8]) -> DirectRead<()> {
        DirectRead::Other
    }

    async fn answer(&mut self, (): (), _: &[u8], _: bool, _: &mut Vec<u8>) {}
}

/// A connection of which a [`DirectService`] answers the requests, until the connection is passed
/// on to hyper.
pub(super) struct DirectConnection<D> {
    service: D,
    input: Vec<u8>,
    output: Vec<u8>,
    state: Arc<DirectState>,
}

/// The state that a [`DirectConnection`] shares with the code that ends the connection. Both run in
/// one task, so relaxed ordering is enough.
#[derive(Debug, Default)]
pub(super) struct DirectState {
    is_busy: AtomicBool,
    is_leaving: AtomicBool,
}

impl DirectState {
    /// Returns whether requests are being answered.
    pub(super) fn is_busy(&self) -> bool {
        self.is_busy.load(Ordering::Relaxed)
    }

    /// Asks the reader to pass the connection on to hyper after the current requests.
    pub(super) fn leave(&self) {
        self.is_leaving.store(true, Ordering::Relaxed);
    }
}

/// The way in which [`DirectConnection::serve`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DirectEnd {
    /// The client has disconnected.
    Closed,
    /// hyper serves the rest of the connection.
    Handoff,
}

impl<D: DirectService> DirectConnection<D> {
    pub(super) fn new(service: D) -> Self {
        Self { service, input: Vec::new(), output: Vec::new(), state: Arc::default() }
    }

    /// Returns the state that is shared with the code that ends the connection.
    pub(super) fn state(&self) -> Arc<DirectState> {
        Arc::clone(&self.state)
    }

    /// Returns the bytes that were read from the stream and not used for a request.
    pub(super) fn into_input(self) -> Vec<u8> {
        self.input
    }

    /// Answers the requests of `stream` until the connection has to be passed on to hyper.
    ///
    /// While the state is not [busy](DirectState::is_busy), the future can be dropped without
    /// losing bytes.
    pub(super) async fn serve<T>(&mut self, stream: &mut T, activity: &Arc<Activity>) -> DirectEnd
    where
        T: AsyncRead + AsyncWrite + Unpin + Send,
    {
        loop {
            if self.state.is_leaving.load(Ordering::Relaxed) {
                return DirectEnd::Handoff;
            }
            match self.receive(stream).await {
                Ok(0) => return DirectEnd::Closed,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    return DirectEnd::Handoff;
                }
                Err(_) => return DirectEnd::Closed,
            }
            // The shutdown may have begun while the request arrived. hyper announces it in the
            // response.
            if activity.is_shutting_down() {
                return DirectEnd::Handoff;
            }
            let is_other = self.answer_all(activity).await;
            if !self.output.is_empty() && send(stream, &self.output).await.is_err() {
                return DirectEnd::Closed;
            }
            self.output.clear();
            self.output.shrink_to(MAX_KEPT_OUTPUT);
            self.state.is_busy.store(false, Ordering::Relaxed);
            if is_other || self.input.len() >= MAX_INPUT {
                return DirectEnd::Handoff;
            }
        }
    }

    /// Waits for more bytes. If the input contains the start of a request, the rest has to arrive
    /// within [`REST_TIMEOUT`].
    async fn receive<T: AsyncRead + Unpin>(&mut self, stream: &mut T) -> io::Result<usize> {
        let is_partial = !self.input.is_empty();
        if self.input.capacity() < MAX_INPUT {
            self.input.reserve_exact(MAX_INPUT - self.input.len());
        }
        let read = stream.read_buf(&mut self.input);
        if is_partial { timeout(REST_TIMEOUT, read).await? } else { read.await }
    }

    /// Answers the complete requests at the start of the input and removes them. Returns whether
    /// the input then starts with a request that hyper has to read.
    async fn answer_all(&mut self, activity: &Arc<Activity>) -> bool {
        let (mut used, mut active) = (0, None);
        let is_other = loop {
            let rest = &self.input[used..];
            if rest.is_empty() {
                break false;
            }
            match self.service.read(rest) {
                DirectRead::Request(request, length) => {
                    let is_first = active.is_none();
                    active.get_or_insert_with(|| activity.begin());
                    self.state.is_busy.store(true, Ordering::Relaxed);
                    self.service.answer(request, rest, is_first, &mut self.output).await;
                    used += length;
                }
                DirectRead::Partial => break false,
                DirectRead::Other => break true,
            }
        };
        self.input.drain(..used);
        is_other
    }
}

async fn send<T: AsyncWrite + Unpin>(stream: &mut T, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes).await?;
    stream.flush().await
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt;
    use tollgate_http::{Phase, Shutdown};

    use super::*;
    use crate::connection_slots::ConnectionSlots;

    /// Answers requests of two bytes.
    struct TwoBytes;

    impl DirectService for TwoBytes {
        type Request = ();

        fn read(&mut self, bytes: &[u8]) -> DirectRead<()> {
            if bytes.len() < 2 { DirectRead::Partial } else { DirectRead::Request((), 2) }
        }

        async fn answer(&mut self, (): (), _: &[u8], _: bool, out: &mut Vec<u8>) {
            out.extend_from_slice(b"answer");
        }
    }

    /// Before, the response was sent without `connection: close` if the rest of the request and
    /// the shutdown were noticed in the same poll.
    #[tokio::test]
    async fn a_request_that_ends_after_the_shutdown_is_passed_on() {
        let (phase, shutdown) = Shutdown::new();
        let slot = ConnectionSlots::new("test", 1).try_slot().expect("a free slot");
        let activity = Arc::new(Activity::new(slot, None, shutdown));
        let (mut client, mut stream) = tokio::io::duplex(64);
        let mut direct = DirectConnection::new(TwoBytes);
        {
            let mut served = pin!(direct.serve(&mut stream, &activity));
            client.write_all(b"a").await.expect("room");
            assert_eq!(served.as_mut().now_or_never(), None);
            phase.send(Phase::Draining).expect("a receiver");
            client.write_all(b"b").await.expect("room");
            assert_eq!(served.await, DirectEnd::Handoff);
        }
        assert_eq!(direct.into_input(), b"ab");
    }
}
