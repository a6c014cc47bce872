//! The meta commands of memcached's text protocol, as bytes: nothing here knows a socket.

mod command;
mod reply;
mod stats;

pub(crate) use command::{Command, Item, MAX_KEY, MAX_VALUE};
pub(crate) use reply::{Expected, MAX_REPLY, Parsed, Reply, Stored, parse};
pub(crate) use stats::Stats;
