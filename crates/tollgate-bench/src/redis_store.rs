//! Compares the Redis store with a script that uses two keys. Both use one server, alternately.

pub mod cases;
pub mod cell;
pub mod closed_loop;
pub mod contender;
pub mod report;
pub mod server;
pub mod shard;
pub mod two_keys;
