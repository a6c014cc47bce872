//! Links: one verified connection to one server of a shard, and further connections beside it.

mod additional_connections;
mod connector;
mod epoch_tracker;
mod replica_check;
mod shard_link;
mod verify;

pub(crate) use additional_connections::{ClaimedConnection, ConnectionPool, MAX_CONNECTIONS};
pub(crate) use shard_link::{Link, Phase};
pub(crate) use verify::RequiredRole;
