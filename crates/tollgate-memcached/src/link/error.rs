//! The errors of connections.

use std::time::Duration;
use std::{fmt, io};

use crate::address::Address;

/// The reason why a connection could not be made, or was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkError {
    /// The connection could not be opened.
    Connect {
        /// The server's address.
        address: Address,
        /// The operating system's error message.
        reason: String,
    },
    /// The server did not answer in time.
    Slow {
        /// The server's address.
        address: Address,
        /// The time within which an answer was expected.
        within: Duration,
    },
    /// The server or the network closed the connection.
    Closed {
        /// The server's address.
        address: Address,
    },
    /// The peer does not answer like a memcached server.
    Foreign {
        /// The server's address.
        address: Address,
    },
}

impl LinkError {
    pub(super) fn connect(address: &Address, error: &io::Error) -> Self {
        Self::Connect { address: address.clone(), reason: error.to_string() }
    }
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect { address, reason } => {
                write!(f, "cannot connect to memcached at {address}: {reason}")
            }
            Self::Slow { address, within } => {
                write!(f, "memcached at {address} did not answer within {}ms", within.as_millis())
            }
            Self::Closed { address } => write!(f, "memcached at {address} closed the connection"),
            Self::Foreign { address } => write!(
                f,
                "what listens at {address} does not answer as memcached 1.6 does without \
                 authentication: check the address, and the server's version and options"
            ),
        }
    }
}

impl std::error::Error for LinkError {}
