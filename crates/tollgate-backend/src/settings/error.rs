//! The errors of opening a store.

use std::path::PathBuf;
use std::time::Duration;
use std::{fmt, io};

use tollgate::model::LimitError;
use tollgate_memcached::AddressError;
use tollgate_policy::MIN_REDIS_DEADLINE;
use tollgate_redis::EndpointError;
use tollgate_stores::sharded::ShardsError;

use super::secret_error::SecretError;

/// The reason why the store of a policy file cannot be opened. Contains no secret.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// A secret cannot be read.
    Secret {
        /// The key of the policy file that configures the setting.
        key: &'static str,
        /// The reason why the secret cannot be read.
        error: SecretError,
    },
    /// A text is not the URL of a server.
    Endpoint {
        /// The key of the policy file that contains the URL, such as
        /// `store.redis.shards.a.primary`.
        key: String,
        /// The reason why the text is not a URL of a server.
        error: EndpointError,
    },
    /// A certificate file cannot be read.
    Certificates {
        /// The key of the policy file that names the file.
        key: &'static str,
        /// The path of the certificate file.
        path: PathBuf,
        /// The operating system's error.
        error: io::Error,
    },
    /// A text in `store.memcached.servers` is not the address of a server.
    Address(AddressError),
    /// The shards are not a valid shard map.
    Shards(ShardsError),
    /// The heartbeat that counts nodes cannot be created.
    Heartbeat(LimitError),
    /// The deadline is shorter than [`MIN_REDIS_DEADLINE`].
    Deadline(Duration),
    /// There is no tokio runtime for connections.
    NoRuntime,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Secret { key, error } => write!(f, "{key}: {error}"),
            Self::Endpoint { key, error } => write!(f, "{key}: {error}"),
            Self::Certificates { key, path, error } => write!(
                f,
                "{key}: cannot read {}: {error}; name a PEM file that this process may read",
                path.display()
            ),
            Self::Address(error) => write!(f, "store.memcached.servers: {error}"),
            Self::Shards(error) => write!(f, "the servers of the store: {error}"),
            Self::Heartbeat(error) => {
                write!(f, "store.redis: cannot create the heartbeat of the nodes: {error}")
            }
            Self::Deadline(deadline) => write!(
                f,
                "deadline {deadline:?}: set at least {MIN_REDIS_DEADLINE:?}; within a shorter time \
                 no decision reaches the servers"
            ),
            Self::NoRuntime => f.write_str("no tokio runtime: open the store inside of one"),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Secret { error, .. } => Some(error),
            Self::Endpoint { error, .. } => Some(error),
            Self::Certificates { error, .. } => Some(error),
            Self::Address(error) => Some(error),
            Self::Shards(error) => Some(error),
            Self::Heartbeat(error) => Some(error),
            Self::Deadline(_) | Self::NoRuntime => None,
        }
    }
}
