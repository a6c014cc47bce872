//! Links: one verified connection to one server, with its address, its settings and its supervisor.

mod additional_connections;
mod connect;
mod credentials;
mod endpoint;
mod epoch_tracker;
mod error;
mod load;
mod replica_check;
mod replication;
mod replication_progress;
mod resolver;
mod role;
mod stream;
mod supervisor;
mod tls;

pub(crate) use additional_connections::{ClaimedConnection, ConnectionPool, MAX_CONNECTIONS};
pub(crate) use connect::{Connection, Pushes, RequiredRole, ServerReport, micros, open};
pub use credentials::{Credentials, Secret, SecretSource};
pub use endpoint::{Address, Endpoint, EndpointError, Protocol};
pub use error::LinkError;
pub(crate) use replication::Replication;
pub(crate) use replication_progress::ReplicationProgress;
pub use replication_progress::{LAG_MAX, Lag};
pub use resolver::{LOOKUP_MAX, Lookup, LookupResult, MAX_ADDRESSES, NameResolver};
pub(crate) use role::Role;
pub use supervisor::LinkLimits;
pub(crate) use supervisor::{Fault, Link, Phase};
pub use tls::{Tls, TlsError};
