//! A client's connection, and the trait of listeners that serve it.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use crate::connection_slots::ConnectionSlot;
use tollgate_http::{Shutdown, Stream};

/// The protocol of a listener: what serves its connections.
pub trait ConnectionHandler: Clone + Send + Sync + 'static {
    /// Serves one client until it disconnects, or until its last response is sent in
    /// [`Phase::Draining`](crate::Phase::Draining). In [`Phase::Cut`](crate::Phase::Cut) the future
    /// is dropped.
    fn serve(self, connection: Connection) -> impl Future<Output = ()> + Send;
}

/// A client's connection. It occupies a slot of its listener until it is dropped.
#[derive(Debug)]
pub struct Connection {
    /// The byte stream.
    pub stream: Stream,
    /// The address of the client. `None` on a unix domain socket.
    pub peer: Option<SocketAddr>,
    /// The phase of the shutdown.
    pub shutdown: Shutdown,
    pub(crate) slot: ConnectionSlot,
}

/// The limits of a listener's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// The most connections at once. Further ones wait in the system's backlog.
    pub at_once: u32,
    /// How long a TLS handshake may take.
    pub handshake: Duration,
    /// How long a client may take to send its first byte, and over HTTP/2 its first request.
    pub first_byte: Duration,
    /// How long a request's head, or a command, may take from its first byte to its last.
    pub request: Duration,
    /// How long a connection may be idle between requests. If no slot is free, the connections that
    /// have been idle for the longest time are closed earlier, but not before
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
