//! A client's connection, and the trait of the handlers that serve connections.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use crate::connection_slots::ConnectionSlot;
use tollgate_http::{Shutdown, Stream};

/// A handler that serves the connections of a listener, in the protocol of the listener.
pub trait ConnectionHandler: Clone + Send + Sync + 'static {
    /// Serves one client until the client disconnects. In
    /// [`Phase::Draining`](crate::Phase::Draining), the handler sends the responses to all requests
    /// that have arrived, and then returns. In [`Phase::Cut`](crate::Phase::Cut), the listener
    /// drops the future, which closes the connection.
    fn serve(self, connection: Connection) -> impl Future<Output = ()> + Send;
}

/// A client's connection. It occupies a slot of its listener until it is dropped.
#[derive(Debug)]
pub struct Connection {
    /// The byte stream of the connection.
    pub stream: Stream,
    /// The address of the client. `None` on a unix domain socket.
    pub peer: Option<SocketAddr>,
    /// The phase of the process's shutdown. The handler can wait for a later phase.
    pub shutdown: Shutdown,
    pub(crate) slot: ConnectionSlot,
}

/// The limits of a listener's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// The most connections at once. Further clients wait in the system's backlog.
    pub at_once: u32,
    /// The longest time that a TLS handshake may take.
    pub handshake: Duration,
    /// The longest time until a client sends its first byte. Over HTTP/2, the longest time until
    /// the client sends its first request.
    pub first_byte: Duration,
    /// The longest time from the first to the last byte of a command or of the head of a request.
    pub request: Duration,
    /// The longest time that a connection may be idle between requests. If no slot is free, the
    /// connections that have been idle for the longest time are closed earlier, but not before
    /// [`LEAST_IDLE`](crate::LEAST_IDLE).
    pub idle: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            at_once: 10_000,
            handshake: Duration::from_secs(5),
            first_byte: Duration::from_secs(10),
            request: Duration::from_secs(5),
            idle: Duration::from_secs(300),
        }
    }
}
