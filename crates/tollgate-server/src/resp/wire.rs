//! The byte stream of a connection and its time limits.

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, Sleep, sleep_until, timeout};
use tollgate_http::{Phase, PollOnWake, Stream};

use crate::connection::{Connection, ConnectionLimits};
use crate::connection_slots::ConnectionSlot;
use crate::http_connection::LAST_REQUEST;
use crate::listener_counters::CloseReason;

/// The most bytes of one read.
pub(super) const MAX_READ: usize = 8 * 1024;

/// The largest input buffer that an idle connection keeps, in bytes.
pub(super) const MAX_IDLE_BUFFER: usize = 2 * MAX_READ;

/// The most reads after the process started to drain. These reads receive the commands that a
/// client sent before it was informed of the shutdown.
const MAX_LINGER_READS: u32 = 64;

/// The longest time that a client has to read the last reply when the listener closes the
/// connection.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The most bytes that are read and discarded while the listener closes a connection.
const MAX_LINGER_BYTES: u64 = 1 << 20;

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// More bytes have arrived.
    Bytes,
    /// The client has disconnected, or the connection has to close.
    End,
}

/// A boxed future, for events that are rare.
type BoxedTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The byte stream of one connection.
pub(super) struct Wire {
    stream: Stream,
    peer: Option<SocketAddr>,
    limits: ConnectionLimits,
    slot: ConnectionSlot,
    draining: PollOnWake<BoxedTask>,
    /// A future that resolves when another client needs the slot.
    eviction: PollOnWake<BoxedTask>,
    last_reads: Option<u32>,
    has_spoken: bool,
    /// A timer for `ends_at`. The timer is not reset for every command, so the timer can fire
    /// before `ends_at`. When the timer fires, `ends_at` is checked.
    alarm: Pin<Box<Sleep>>,
    ends_at: Instant,
}

impl Wire {
    pub(super) fn new(connection: Connection, limits: ConnectionLimits) -> Self {
        let Connection { stream, peer, mut shutdown, slot } = connection;
        let ends_at = Instant::now() + limits.first_byte.min(limits.idle);
        let draining: BoxedTask = Box::pin(async move { shutdown.reached(Phase::Draining).await });
        let eviction: BoxedTask = Box::pin(slot.eviction());
        Self {
            stream,
            peer,
            limits,
            slot,
            draining: PollOnWake::new(draining),
            eviction: PollOnWake::new(eviction),
            last_reads: None,
            has_spoken: false,
            alarm: Box::pin(sleep_until(ends_at)),
            ends_at,
        }
    }

    /// Counts this connection among those that the listener closed for `reason`.
    pub(super) fn count_closed(&self, reason: CloseReason) {
        self.slot.counters().count_closed(reason, self.peer);
    }

    /// Counts `tokens` that the client sent and the listener does not have.
    pub(super) fn count_wrong_tokens(&self, tokens: u32) {
        (0..tokens).for_each(|_| self.slot.counters().count_wrong_token(self.peer));
    }

    /// Waits for more bytes and appends them to `input`, which has room for them. `begun` reports
    /// whether `input` contains an incomplete command. The rest of such a command has to arrive in
    /// time. Returns [`Received::End`] if the connection has to close.
    pub(super) async fn receive(&mut self, input: &mut Vec<u8>, begun: PartialCommand) -> Received {
        let received = self.receive_next(input, begun).await;
        self.slot.mark_busy();
        self.has_spoken |= received == Received::Bytes;
        received
    }

    async fn receive_next(&mut self, input: &mut Vec<u8>, begun: PartialCommand) -> Received {
        self.set_alarm(begun);
        if self.last_reads.is_none() {
            let Self { stream, draining, eviction, alarm, ends_at, .. } = self;
            tokio::select! {
                biased;
                () = draining => self.last_reads = Some(MAX_LINGER_READS),
                read = stream.read_buf(input) => return received(&read),
                () = eviction => return Received::End,
                () = alarm_fires(alarm, ends_at) => {
                    match begun {
                        PartialCommand::Nothing if self.has_spoken => {}
                        PartialCommand::Nothing => self.count_closed(CloseReason::NoRequest),
                        PartialCommand::Now | PartialCommand::Before => {
                            self.count_closed(CloseReason::SlowRequest);
                        }
                    }
                    return Received::End;
                }
            }
        }
        self.receive_last(input).await
    }

    /// Reads the bytes that have arrived already, and does not wait for further bytes. The only
    /// exception is a client that has not sent anything yet, which gets time for its first command.
    async fn receive_last(&mut self, input: &mut Vec<u8>) -> Received {
        let left = self.last_reads.unwrap_or_default();
        if left == 0 {
            return Received::End;
        }
        self.last_reads = Some(left - 1);
        if !self.has_spoken {
            // The client has just connected, and its first command may be in transit.
            let first = timeout(LAST_REQUEST, self.stream.read_buf(input)).await;
            return first.map_or(Received::End, |read| received(&read));
        }
        let mut read = pin!(self.stream.read_buf(input));
        let there = poll_fn(|cx| match read.as_mut().poll(cx) {
            Poll::Ready(read) => Poll::Ready(Some(read)),
            Poll::Pending => Poll::Ready(None),
        });
        there.await.map_or(Received::End, |read| received(&read))
    }

    fn set_alarm(&mut self, begun: PartialCommand) {
        let patience = match begun {
            PartialCommand::Nothing if !self.has_spoken => {
                self.limits.first_byte.min(self.limits.idle)
            }
            PartialCommand::Nothing => self.limits.idle,
            PartialCommand::Now => self.limits.request,
            PartialCommand::Before => return,
        };
        let now = Instant::now();
        if begun == PartialCommand::Nothing {
            self.slot.mark_idle(now);
        }
        self.ends_at = now + patience;
        if self.ends_at < self.alarm.deadline() {
            self.alarm.as_mut().reset(self.ends_at);
        }
    }

    /// Sends `bytes`. The client has to read the bytes in time.
    ///
    /// # Errors
    /// The client has disconnected, or did not read in time.
    pub(super) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut send = pin!(async {
            self.stream.write_all(bytes).await?;
            self.stream.flush().await
        });
        // Most replies are sent without waiting, and need no timer.
        if let Some(sent) = send.as_mut().now_or_never() {
            return sent;
        }
        timeout(self.limits.request, send).await?
    }

    /// Closes the connection after the client has had time to read the last reply. If the listener
    /// closed the connection while input was unread, the system would send a reset, which discards
    /// the reply.
    pub(super) async fn close(mut self) {
        let linger = async {
            self.stream.shutdown().await?;
            let unread = (&mut self.stream).take(MAX_LINGER_BYTES);
            tokio::io::copy(&mut { unread }, &mut tokio::io::sink()).await
        };
        // The result is ignored, because the connection ends in any case.
        let _ = timeout(CLOSE_TIMEOUT, linger).await;
    }
}

/// Whether the input buffer contains an incomplete command, and when its first bytes arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartialCommand {
    /// The input buffer is empty.
    Nothing,
    /// The input contains the start of a command, which arrived with the last read.
    Now,
    /// The input contains the start of a command, which arrived with an earlier read.
    Before,
}

/// Frees the memory of a buffer that was needed for one long command.
pub(super) fn shrink_buffer(input: &mut Vec<u8>) {
    if input.capacity() > MAX_IDLE_BUFFER {
        input.shrink_to(MAX_IDLE_BUFFER);
    }
}

fn received(read: &io::Result<usize>) -> Received {
    match read {
        Ok(0) | Err(_) => Received::End,
        Ok(_) => Received::Bytes,
    }
}

async fn alarm_fires(alarm: &mut Pin<Box<Sleep>>, ends_at: &Instant) {
    loop {
        alarm.as_mut().await;
        if Instant::now() >= *ends_at {
            return;
        }
        alarm.as_mut().reset(*ends_at);
    }
}
