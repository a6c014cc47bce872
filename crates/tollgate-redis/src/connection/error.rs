//! The errors of connections.

use std::fmt;
use std::io;
use std::time::Duration;

use redis::RedisError;

use super::replication_progress::Lag;
use super::tls::TlsError;

/// The reason why a server could not be used. Contains no secret.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum LinkError {
    /// The password could not be read.
    Secret {
        /// The source of the password.
        source: String,
        /// The reason why the password could not be read.
        problem: String,
    },
    /// The certificates could not be used.
    Tls(TlsError),
    /// The connection could not be opened.
    Open {
        /// The server's address.
        address: String,
        /// The operating system's error message.
        problem: String,
        /// The error category of the operating system's error.
        kind: io::ErrorKind,
    },
    /// The server did not answer in time.
    Slow {
        /// The server's address.
        address: String,
        /// The time limit that the server exceeded.
        within: Duration,
    },
    /// The server answered with an error while the connection was opened.
    Refused {
        /// The server's address.
        address: String,
        /// The command that the server rejected.
        command: &'static str,
        /// The code of the server's answer, such as `LOADING` or `NOPERM`.
        code: String,
    },
    /// The server does not have the required role.
    Role {
        /// The server's address.
        address: String,
        /// The role that the server reports.
        found: &'static str,
        /// The required role.
        wanted: &'static str,
    },
    /// The server is no longer the shard's primary, although it may still report the role of a
    /// primary.
    Deposed {
        /// The address of the server that is no longer the primary.
        address: String,
        /// The server that replaced this server. `None` if this server does not belong to the
        /// shard.
        by: Option<String>,
    },
    /// The server reports the role of a primary, but another server reports this role too, and all
    /// nodes choose the other server.
    Outranked {
        /// The address of the server that is not chosen.
        address: String,
        /// The server that the nodes choose as the primary.
        by: String,
    },
    /// The sentinel does not monitor the service.
    UnknownService {
        /// The sentinel's address.
        address: String,
        /// The name under which sentinels monitor the shard.
        service: String,
    },
    /// No primary is known, because no sentinel has named a primary yet.
    NoPrimaryKnown,
    /// The replica does not keep up with its primary.
    Lags {
        /// The server's address.
        address: String,
        /// The reason why the replica does not keep up.
        lag: Lag,
    },
    /// A replica does not have the Tollgate module. Its primary replicates commands of this module.
    ReplicaWithoutModule {
        /// The primary's address.
        address: String,
        /// The replica's address, as the primary knows it.
        replica: String,
    },
    /// The server or the network closed the connection.
    Closed {
        /// The server's address.
        address: String,
    },
}

impl LinkError {
    /// Converts `error`, which the server at `address` returned to the command `command`.
    ///
    /// If `error` is an answer of the server, keeps only its code, because its text may repeat the
    /// command's arguments.
    pub(crate) fn answered(address: &str, command: &'static str, error: &RedisError) -> Self {
        if error.is_io_error() || error.is_connection_dropped() {
            return Self::Closed { address: address.to_owned() };
        }
        let code = error.code().unwrap_or_else(|| error.category()).to_owned();
        Self::Refused { address: address.to_owned(), command, code }
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
                    "{address} cannot be reached: {problem}; check that a Redis server listens \
                     there"
                )
            }
            Self::Slow { address, within } => write!(
                f,
                "{address} did not answer within {} ms; check whether it is frozen, overloaded or \
                 disconnected",
                within.as_millis()
            ),
            Self::Refused { address, command, code } => write!(
                f,
                "{address} returned {code} to {command}; check the user's permissions and the \
                 server's state"
            ),
            Self::Role { address, found, wanted } => {
                write!(f, "{address} is {found}, but {wanted} is needed")
            }
            Self::Deposed { address, by: Some(by) } => write!(
                f,
                "{address} is not charged, although it may report itself as primary: {by} \
                 replaced it; make it a replica of {by}"
            ),
            Self::Deposed { address, by: None } => {
                write!(f, "{address} is not charged: it no longer belongs to the shard")
            }
            Self::Outranked { address, by } => write!(
                f,
                "{address} is not charged although it is a primary: {by} is a primary too, and \
                 all nodes choose it by the shard's mark and the configuration; make {address} a \
                 replica of {by}"
            ),
            Self::UnknownService { address, service } => write!(
                f,
                "the sentinel {address} monitors no service named {service:?}; compare the name \
                 with its `sentinel monitor`"
            ),
            Self::NoPrimaryKnown => f.write_str(
                "no sentinel has announced a primary yet; check that the sentinels answer",
            ),
            Self::Lags { address, lag } => write!(f, "{address} is not used for reads: {lag}"),
            Self::ReplicaWithoutModule { address, replica } => write!(
                f,
                "{address} is not charged: its replica {replica} does not have the module, and \
                 would lose the contents of tables; load the module there, or use `scripting: auto`"
            ),
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
