//! One supervised connection to a server, for stores whose decisions have a deadline.
//!
//! A [`Link`] keeps one verified connection. Its supervisor publishes the state of the link as a
//! [`Phase`]. Callers wait, within their deadlines, only for the first attempt to connect after a
//! connection was lost. The [`CircuitBreaker`] detects a server that keeps its connections open and
//! does not answer. A store provides a [`Connector`], which opens, verifies and monitors
//! connections.

mod backoff;
mod circuit_breaker;
mod connect_any;
mod connector;
mod health;
mod last_error;
mod limits;
mod link;
mod phase;
#[cfg(feature = "simulation")]
#[doc(hidden)]
pub mod simulation;
mod supervisor;

pub use backoff::probe_delay;
pub use circuit_breaker::{CircuitBreaker, CircuitState, Progress};
pub use connect_any::{MAX_ADDRESSES, connect_any};
pub use connector::Connector;
pub use health::{Fault, Health};
pub use last_error::LastError;
pub use limits::LinkLimits;
pub use link::Link;
pub use phase::Phase;
