//! A connection to a server. Commands are sent in order, and replies arrive in the same order.
//!
//! Tollgate contains this client because the existing clients that support the meta commands have
//! limitations. `async-memcached` 0.7 sends one command at a time on a connection, and the
//! experimental client of `memcache` 0.20 closes a connection when a command times out. With this
//! client, up to 1,024 commands of all callers are in flight on one connection, and a reply that
//! arrives after its deadline is skipped.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};
use tollgate_link::{Health, Progress};

use crate::wire::{Command, Expected, MAX_REPLY, Parsed, Reply, parse};

/// The most commands that wait to be written to a connection. Further commands are rejected at
/// once.
const WAITING: usize = 1_024;

/// The most commands that were written and have no reply yet.
const IN_FLIGHT: usize = 1_024;

/// The size of the buffered commands, in bytes, at which no more commands are added to the buffer
/// before it is written.
const OUTBOX: usize = 64 << 10;

/// The free buffer space in bytes before each read.
const INBOX: usize = 8 << 10;

/// The reason why a command has no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallError {
    /// Too many commands are waiting. The command was not sent.
    Overloaded,
    /// The connection is closed. The command was not sent.
    Closed,
    /// The connection was closed before the reply. The command may have been executed.
    Lost,
    /// The deadline passed. The command may have been executed, or may be executed later.
    TimedOut,
}

/// A connection to a server. Dropping this value closes the connection.
#[derive(Debug)]
pub(crate) struct Connection {
    requests: mpsc::Sender<Request>,
    next: AtomicU32,
    /// The health of the server, to which missed deadlines are reported.
    health: Arc<Health>,
    task: AbortHandle,
}

/// A command that is queued or was sent, without a received reply.
pub(crate) struct Pending<'c> {
    connection: &'c Connection,
    reply: oneshot::Receiver<Reply>,
    /// The progress of the server when the command was queued.
    submitted: Progress,
}

struct Request {
    bytes: Vec<u8>,
    expected: Expected,
    reply: oneshot::Sender<Reply>,
}

impl Connection {
    /// Creates a connection over `stream`. Reports replies and missed deadlines to `health`.
    pub(super) fn start(
        stream: impl AsyncRead + AsyncWrite + Send + 'static,
        health: Arc<Health>,
    ) -> Self {
        let (requests, queue) = mpsc::channel(WAITING);
        let task = tokio::spawn(run_io(stream, queue)).abort_handle();
        Self { requests, next: AtomicU32::new(0), health, task }
    }

    /// Queues `command` after the commands that were queued before. Returns a value that waits for
    /// the reply, or an error if the queue is full or the connection is closed.
    pub(crate) fn put(&self, command: &Command<'_>) -> Result<Pending<'_>, CallError> {
        let opaque = self.next.fetch_add(1, Ordering::Relaxed);
        let mut bytes = Vec::with_capacity(128);
        command.encode(opaque, &mut bytes);
        let expected = match command {
            Command::Stats => Expected::Stats,
            _ => Expected::Meta { opaque },
        };
        let submitted = self.health.circuit().progress();
        let (answer, reply) = oneshot::channel();
        let request = Request { bytes, expected, reply: answer };
        self.requests.try_send(request).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => CallError::Overloaded,
            mpsc::error::TrySendError::Closed(_) => CallError::Closed,
        })?;
        Ok(Pending { connection: self, reply, submitted })
    }

    /// Sends `command` and waits for its reply until `deadline`.
    ///
    /// If the item has no usable token, this function gives the item a new token and returns a
    /// conflict instead of sending `command`. After a conflict, the caller reads the item again,
    /// with the new token.
    pub(crate) async fn call(
        &self,
        command: &Command<'_>,
        deadline: Instant,
    ) -> Result<Reply, CallError> {
        let Some(key) = command.unnumbered() else {
            return self.put(command)?.reply(deadline).await;
        };
        let numbered = self.put(&Command::Renumber { key })?.reply(deadline).await?;
        Ok(if numbered == Reply::Done { Reply::Conflict } else { numbered })
    }

    /// Returns whether the connection is open.
    pub(super) fn is_open(&self) -> bool {
        !self.requests.is_closed()
    }

    /// Waits until the connection is closed.
    pub(super) async fn ended(&self) {
        self.requests.closed().await;
    }

    /// Closes the connection, even if other parts of the program still use it.
    pub(super) fn cut(&self) {
        self.task.abort();
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.cut();
    }
}

impl Pending<'_> {
    /// Waits for the reply until `deadline`.
    ///
    /// If the caller stops waiting before the command is written, the command is not sent.
    pub(crate) async fn reply(self, deadline: Instant) -> Result<Reply, CallError> {
        match timeout_at(deadline, self.reply).await {
            Ok(Ok(reply)) => {
                self.connection.health.circuit().answered();
                Ok(reply)
            }
            Ok(Err(_)) => Err(CallError::Lost),
            Err(_) => {
                self.connection.health.record_miss(self.submitted);
                Err(CallError::TimedOut)
            }
        }
    }
}

/// Writes commands and delivers replies. Ends when this program or the server closes the
/// connection, or when the server sends an unexpected reply. Callers that still wait then receive
/// [`CallError::Lost`].
async fn run_io(stream: impl AsyncRead + AsyncWrite, mut queue: mpsc::Receiver<Request>) {
    let (mut reader, mut writer) = split(stream);
    let mut inbox = BytesMut::new();
    let mut outbox = BytesMut::new();
    let mut in_flight = VecDeque::new();
    loop {
        inbox.reserve(INBOX);
        let has_room = outbox.len() < OUTBOX && in_flight.len() < IN_FLIGHT;
        tokio::select! {
            request = queue.recv(), if has_room => {
                let Some(request) = request else { return };
                accept(request, &mut outbox, &mut in_flight);
                while outbox.len() < OUTBOX && in_flight.len() < IN_FLIGHT {
                    let Ok(request) = queue.try_recv() else { break };
                    accept(request, &mut outbox, &mut in_flight);
                }
            }
            written = writer.write(&outbox), if !outbox.is_empty() => match written {
                Ok(count @ 1..) => outbox.advance(count),
                _ => return,
            },
            read = reader.read_buf(&mut inbox) => {
                if !matches!(read, Ok(1..)) || deliver(&mut inbox, &mut in_flight).is_none() {
                    return;
                }
            }
        }
    }
}

type InFlight = VecDeque<(Expected, oneshot::Sender<Reply>)>;

fn accept(request: Request, outbox: &mut BytesMut, in_flight: &mut InFlight) {
    if !request.reply.is_closed() {
        outbox.extend_from_slice(&request.bytes);
        in_flight.push_back((request.expected, request.reply));
    }
}

/// Delivers every complete reply in `inbox` to its caller. Returns `None` if the connection can no
/// longer be used.
fn deliver(inbox: &mut BytesMut, in_flight: &mut InFlight) -> Option<()> {
    while !inbox.is_empty() {
        let (expected, _) = in_flight.front()?;
        match parse(inbox, *expected) {
            Ok(Parsed::Complete(reply, length)) => {
                inbox.advance(length);
                let (_, answer) = in_flight.pop_front()?;
                // After a rejected command, the server may read the bytes that follow the command
                // as other commands.
                let is_of_use = reply != Reply::Refused;
                // The caller may have stopped waiting.
                let _ = answer.send(reply);
                if !is_of_use {
                    return None;
                }
            }
            Ok(Parsed::Partial) if inbox.len() <= MAX_REPLY => return Some(()),
            Ok(Parsed::Partial) | Err(_) => return None,
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::duplex;
    use tollgate_link::CircuitState;

    use super::*;

    const GET: Command<'_> = Command::Get { key: b"k" };

    /// Acts as the server: waits for this number of commands, and then writes `bytes`.
    async fn answer(theirs: &mut tokio::io::DuplexStream, commands: usize, bytes: &[u8]) {
        let mut received = vec![0; commands * b"mg k v f c O0\r\n".len()];
        theirs.read_exact(&mut received).await.unwrap();
        theirs.write_all(bytes).await.unwrap();
    }

    /// Returns the health of a server with a verified connection. The circuit breaker opens after
    /// `misses` missed deadlines.
    fn health(misses: u32) -> Arc<Health> {
        let health = Arc::new(Health::new(misses));
        health.circuit().close(1);
        health
    }

    fn patience() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[tokio::test]
    async fn replies_reach_who_asked_in_order() {
        let (ours, mut theirs) = duplex(1 << 16);
        let connection = Connection::start(ours, health(5));
        let pending: Vec<_> = (0..3).map(|_| connection.put(&GET).unwrap()).collect();
        answer(&mut theirs, 3, b"EN O0\r\nHD O1\r\nNS O2\r\n").await;
        let mut replies = Vec::new();
        for pending in pending {
            replies.push(pending.reply(patience()).await);
        }
        assert_eq!(replies, [Ok(Reply::Missing), Ok(Reply::Done), Ok(Reply::Conflict)]);
    }

    #[tokio::test]
    async fn an_answer_that_nobody_asked_for_ends_it() {
        for bytes in [&b"EN O9\r\n"[..], b"STORED\r\n", b"\0\r\n"] {
            let (ours, mut theirs) = duplex(1 << 16);
            let connection = Connection::start(ours, health(5));
            let pending = connection.put(&GET).unwrap();
            answer(&mut theirs, 1, bytes).await;
            assert_eq!(pending.reply(patience()).await, Err(CallError::Lost));
            connection.ended().await;
            assert_eq!(connection.call(&GET, patience()).await, Err(CallError::Closed));
        }
        let (ours, mut theirs) = duplex(1 << 16);
        let connection = Connection::start(ours, health(5));
        theirs.write_all(b"HD O0\r\n").await.unwrap();
        connection.ended().await;
    }

    #[tokio::test]
    async fn what_waits_for_a_silent_server_has_a_bound() {
        let (ours, _theirs) = duplex(64);
        let connection = Connection::start(ours, health(5));
        let mut pending = Vec::new();
        let refused = loop {
            match connection.put(&GET) {
                Ok(put) => pending.push(put),
                Err(refused) => break refused,
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(refused, CallError::Overloaded);
        assert!(pending.len() <= WAITING + IN_FLIGHT, "{}", pending.len());
    }

    #[tokio::test(start_paused = true)]
    async fn missed_deadlines_in_a_row_open_the_circuit() {
        let (ours, _theirs) = duplex(1 << 16);
        let health = health(2);
        let connection = Connection::start(ours, Arc::clone(&health));
        for _ in 0..2 {
            let soon = Instant::now() + Duration::from_millis(15);
            assert_eq!(connection.call(&GET, soon).await, Err(CallError::TimedOut));
        }
        assert_eq!(health.circuit().circuit_state(), CircuitState::Open);
    }
}
