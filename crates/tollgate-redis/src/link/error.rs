//! Why there is no connection.

use std::fmt;
use std::io;
use std::time::Duration;

use redis::RedisError;

use super::{Lag, TlsError};

/// Why a server could not be brought into service. It shows no secret.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum LinkError {
    /// The password could not be read.
    Secret {
        /// Where it was looked for.
        source: String,
        /// What went wrong.
        problem: String,
    },
    /// The certificates could not be used.
    Tls(TlsError),
    /// No stream could be opened.
    Open {
        /// The server.
        address: String,
        /// What the system said.
        problem: String,
        /// Its class.
        kind: io::ErrorKind,
    },
    /// The server did not get as far as an answer in time.
    Slow {
        /// The server.
        address: String,
        /// How long it was given.
        within: Duration,
    },
    /// The server answered, but not what opens a connection.
    Refused {
        /// The server.
        address: String,
        /// What it was asked.
        asked: &'static str,
        /// The code of its answer, such as `LOADING` or `NOPERM`.
        code: String,
    },
    /// The server is there, but does not have the role that is looked for.
    Role {
        /// The server.
        address: String,
        /// What it says of itself.
        found: &'static str,
        /// What is looked for.
        wanted: &'static str,
    },
    /// The server may call itself primary, and is not the shard's any more.
    Deposed {
        /// The server.
        address: String,
        /// The server that took over from it; nothing if it is none of the shard's.
        by: Option<String>,
    },
    /// The sentinel knows nothing of the service.
    UnknownService {
        /// The sentinel.
        address: String,
        /// What it was asked for.
        service: String,
    },
    /// No server is known: no sentinel has told of one yet.
    NoPrimaryKnown,
    /// The server does not keep up with its primary.
    Lags {
        /// The server.
        address: String,
        /// In what way.
        lag: Lag,
    },
    /// The server closed the connection, or it broke.
    Closed {
        /// The server.
        address: String,
    },
}

impl LinkError {
    /// What `error` means when `address` was asked for `asked`.
    ///
    /// Only the code of a server's answer is kept: its text may repeat what it was sent.
    pub(crate) fn answered(address: &str, asked: &'static str, error: &RedisError) -> Self {
        if error.is_io_error() || error.is_connection_dropped() {
            return Self::Closed { address: address.to_owned() };
        }
        let code = error.code().unwrap_or_else(|| error.category()).to_owned();
        Self::Refused { address: address.to_owned(), asked, code }
    }

    pub(crate) fn open(address: &str, error: &io::Error) -> Self {
        Self::Open { address: address.to_owned(), problem: error.to_string(), kind: error.kind() }
    }
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Secret { source, problem } => {
                write!(f, "no password for Redis from the {source}: {problem}")
            }
            Self::Tls(error) => error.fmt(f),
            Self::Open { address, problem, .. } => {
                write!(
                    f,
                    "{address} cannot be reached: {problem}; is a Redis server listening there?"
                )
            }
            Self::Slow { address, within } => write!(
                f,
                "{address} did not answer within {} ms; is it frozen, overloaded or cut off?",
                within.as_millis()
            ),
            Self::Refused { address, asked, code } => write!(
                f,
                "{address} answered {asked} with {code}; check the user's permissions and the server's state"
            ),
            Self::Role { address, found, wanted } => {
                write!(f, "{address} is {found}, and {wanted} is looked for")
            }
            Self::Deposed { address, by: Some(by) } => write!(
                f,
                "{address} is not charged, whatever it calls itself: {by} took over from it; have \
                 it follow {by}"
            ),
            Self::Deposed { address, by: None } => {
                write!(f, "{address} is not charged: it is none of the shard's servers any more")
            }
            Self::UnknownService { address, service } => write!(
                f,
                "the sentinel {address} watches nothing called {service:?}; compare the name with \
                 its `sentinel monitor`"
            ),
            Self::NoPrimaryKnown => {
                f.write_str("no sentinel has told of a primary yet; do they answer?")
            }
            Self::Lags { address, lag } => write!(f, "{address} is not read from: {lag}"),
            Self::Closed { address } => write!(f, "{address} closed the connection"),
        }
    }
}

impl std::error::Error for LinkError {}

impl From<TlsError> for LinkError {
    fn from(error: TlsError) -> Self {
        Self::Tls(error)
    }
}
