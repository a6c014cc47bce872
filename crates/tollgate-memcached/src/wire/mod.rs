//! The meta commands of memcached's text protocol: encoding and decoding without I/O.

mod command;
mod reply;
mod stats;

pub(crate) use command::{Command, Item, MAX_KEY, MAX_VALUE};
pub(crate) use reply::{Expected, MAX_REPLY, Parsed, Reply, Stored, parse};
pub(crate) use stats::Stats;
