//! Links: one verified connection to a server of a shard, and additional connections to the same
//! server.

mod additional_connections;
mod connector;
mod epoch_tracker;
mod replica_check;
mod shard_link;
mod verify;

pub(crate) use additional_connections::{ClaimedConnection, ConnectionPool, MAX_CONNECTIONS};
pub(crate) use shard_link::{Link, Phase};
pub(crate) use verify::RequiredRole;
