//! Why there is no connection.

use std::time::Duration;
use std::{fmt, io};

use crate::address::Address;

/// Why a connection could not be made, or was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkError {
    /// It could not be opened.
    Connect {
        /// Where.
        address: Address,
        /// What the system says.
        reason: String,
    },
    /// The server did not answer in time.
    Slow {
        /// Where.
        address: Address,
        /// Within what.
        within: Duration,
    },
    /// The server closed it, or the network did.
    Closed {
        /// Where.
        address: Address,
    },
    /// What listens there does not answer as memcached does.
    Foreign {
        /// Where.
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
