//! Links: one verified connection to one server, with its supervisor and further connections.

mod additional_connections;
mod epoch_tracker;
mod replica_check;
mod supervisor;
mod verify;

pub(crate) use additional_connections::{ClaimedConnection, ConnectionPool, MAX_CONNECTIONS};
pub(crate) use supervisor::{Fault, Link, Phase};
pub(crate) use verify::RequiredRole;
