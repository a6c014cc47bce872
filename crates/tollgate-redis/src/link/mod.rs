//! One proven connection to one server: where it is, how it is reached, and who looks after it.

mod connect;
mod credentials;
mod endpoint;
mod error;
mod history_numbers;
mod names;
mod progress;
mod replication;
mod role;
mod stream;
mod supervisor;
mod tls;

pub(crate) use connect::{Connection, Duty, Pushes, Told, micros, open};
pub use credentials::{Credentials, Secret, SecretSource};
pub use endpoint::{Address, Endpoint, EndpointError, Protocol};
pub use error::LinkError;
pub use names::{LOOKUP_MAX, Looked, Lookup, MAX_ADDRESSES, Names};
pub(crate) use progress::Progress;
pub use progress::{LAG_MAX, Lag};
pub(crate) use replication::Replication;
pub(crate) use role::Role;
pub use supervisor::LinkLimits;
pub(crate) use supervisor::{Fault, Link, Phase};
pub use tls::{Tls, TlsError};
