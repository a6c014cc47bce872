//! The bytes of a connection, and how long they may take.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, Sleep, sleep_until, timeout};

use crate::listen::Stream;
use crate::on_wake::OnWake;
use crate::places::Place;
use crate::{Connection, ConnectionLimits, LAST_REQUEST, Phase};

/// Bytes that one read takes, at most.
const READ: usize = 8 * 1024;

/// Bytes that an idle connection's buffer may hold.
const KEPT: usize = 2 * READ;

/// Reads after the process was told to end: what a client sent before it knew is answered.
const MAX_LINGER_READS: u32 = 64;

/// How long a client that is told goodbye has to hear it.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Bytes of a client that is told goodbye that are read and forgotten, at most.
const MAX_LINGER_BYTES: u64 = 1 << 20;

/// What has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// More bytes.
    Bytes,
    /// Nothing, and nothing will.
    End,
}

/// What hardly ever comes.
type BoxedTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The bytes of one connection.
pub(super) struct Wire {
    stream: Stream,
    limits: ConnectionLimits,
    place: Place,
    draining: OnWake<BoxedTask>,
    /// Resolves when others need the place more.
    wanted: OnWake<BoxedTask>,
    last_reads: Option<u32>,
    has_spoken: bool,
    /// Rings no earlier than `ends_at`, and often later than it was set to: it is not wound up
    /// anew for every command.
    alarm: Pin<Box<Sleep>>,
    ends_at: Instant,
}

impl Wire {
    pub(super) fn new(connection: Connection, limits: ConnectionLimits) -> Self {
        let Connection { stream, mut shutdown, place, .. } = connection;
        let ends_at = Instant::now() + limits.first_byte.min(limits.idle);
        let draining: BoxedTask = Box::pin(async move { shutdown.reached(Phase::Draining).await });
        let wanted: BoxedTask = Box::pin(place.wanted());
        Self {
            stream,
            limits,
            place,
            draining: OnWake::new(draining),
            wanted: OnWake::new(wanted),
            last_reads: None,
            has_spoken: false,
            alarm: Box::pin(sleep_until(ends_at)),
            ends_at,
        }
    }

    /// Waits for more bytes behind `input`. Where it holds the beginning of a command, the whole of
    /// it has to come in time.
    pub(super) async fn receive(&mut self, input: &mut Vec<u8>, begun: PartialCommand) -> Received {
        let received = self.receive_next(input, begun).await;
        self.place.work();
        self.has_spoken |= received == Received::Bytes;
        received
    }

    async fn receive_next(&mut self, input: &mut Vec<u8>, begun: PartialCommand) -> Received {
        self.set_alarm(begun);
        input.reserve(READ);
        if self.last_reads.is_none() {
            let Self { stream, draining, wanted, alarm, ends_at, .. } = self;
            tokio::select! {
                biased;
                () = draining => self.last_reads = Some(MAX_LINGER_READS),
                read = stream.read_buf(input) => return received(&read),
                () = wanted => return Received::End,
                () = alarm_fires(alarm, ends_at) => return Received::End,
            }
        }
        self.receive_last(input).await
    }

    /// What is there already, and no more; of a client that has said nothing yet, its first words.
    async fn receive_last(&mut self, input: &mut Vec<u8>) -> Received {
        let left = self.last_reads.unwrap_or_default();
        if left == 0 {
            return Received::End;
        }
        self.last_reads = Some(left - 1);
        if !self.has_spoken {
            // It came just now, and its first command is on the way.
            let first = timeout(LAST_REQUEST, self.stream.read_buf(input)).await;
            return first.map_or(Received::End, |read| received(&read));
        }
        let mut read = std::pin::pin!(self.stream.read_buf(input));
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
            self.place.rest(now);
        }
        self.ends_at = now + patience;
        if self.ends_at < self.alarm.deadline() {
            self.alarm.as_mut().reset(self.ends_at);
        }
    }

    /// Sends `bytes`, which a client has to take in time.
    ///
    /// # Errors
    /// The client is gone, or takes too long.
    pub(super) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let send = async {
            self.stream.write_all(bytes).await?;
            self.stream.flush().await
        };
        timeout(self.limits.request, send).await?
    }

    /// Ends the connection so that the client hears the last reply: closing while its bytes are
    /// unread would take it back.
    pub(super) async fn close(mut self) {
        let goodbye = async {
            self.stream.shutdown().await?;
            let unheard = (&mut self.stream).take(MAX_LINGER_BYTES);
            tokio::io::copy(&mut { unheard }, &mut tokio::io::sink()).await
        };
        // Nobody is told: the connection ends either way.
        let _ = timeout(CLOSE_TIMEOUT, goodbye).await;
    }
}

/// Whether the bytes that wait are the beginning of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartialCommand {
    /// There are none.
    Nothing,
    /// They are, and they came last.
    Now,
    /// They are, and some were there before.
    Before,
}

/// Gives the memory of a buffer back that was needed for one long command.
pub(super) fn shrink_buffer(input: &mut Vec<u8>) {
    if input.capacity() > KEPT {
        input.shrink_to(KEPT);
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
