//! One client's connection, and what doors do with it.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use crate::listen::Stream;
use crate::places::Place;
use crate::shutdown::Shutdown;

/// What listens behind a door.
pub trait Door: Clone + Send + Sync + 'static {
    /// Serves one client until it leaves, or until its last answer has gone out in
    /// [`Phase::Draining`](crate::Phase::Draining). In [`Phase::Cut`](crate::Phase::Cut) the
    /// future is dropped.
    fn serve(self, connection: Connection) -> impl Future<Output = ()> + Send;
}

/// One client's connection. It holds a place among all until it is dropped.
#[derive(Debug)]
pub struct Connection {
    /// Its bytes.
    pub stream: Stream,
    /// Who is at its other end; nobody knows of a unix domain socket.
    pub peer: Option<SocketAddr>,
    /// When to end.
    pub shutdown: Shutdown,
    pub(crate) place: Place,
}

/// The bounds of what the connections of one door hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// How many there are at once; one more waits in the system's backlog.
    pub at_once: u32,
    /// How long a TLS handshake may take.
    pub handshake: Duration,
    /// How long a client may take to say its first byte.
    pub first_byte: Duration,
    /// How long a request's head, or a command, may take from its first byte to its last.
    pub request: Duration,
    /// How long a connection may be silent between requests: where places are short those leave
    /// sooner that have been silent for longest, but not before [`LEAST_IDLE`](crate::LEAST_IDLE).
    pub idle: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            at_once: 10_000,
            handshake: Duration::from_secs(5),
            first_byte: Duration::from_secs(20),
            request: Duration::from_secs(5),
            idle: Duration::from_secs(300),
        }
    }
}
