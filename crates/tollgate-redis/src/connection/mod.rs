//! Connections to servers: addresses, credentials, certificates, and the reports of servers about
//! themselves.

mod credentials;
mod endpoint;
mod epoch_mark;
mod error;
mod load;
mod open;
mod replication;
mod replication_progress;
mod resolver;
mod role;
mod stream;
mod tls;

pub use credentials::{Credentials, Secret, SecretSource};
pub use endpoint::{Address, Endpoint, EndpointError, Protocol};
pub(crate) use epoch_mark::{EPOCH, EpochMark, GENERATION};
pub use error::LinkError;
pub(crate) use open::{CALLS_IN_FLIGHT, Connection, Pushes, ServerReport, micros, open};
pub(crate) use replication::{ReplicaAddress, Replication};
pub(crate) use replication_progress::ReplicationProgress;
pub use replication_progress::{LAG_MAX, Lag};
pub use resolver::{LOOKUP_MAX, Lookup, LookupResult, MAX_ADDRESSES, NameResolver};
pub(crate) use role::Role;
pub use tls::{Tls, TlsError};
