//! Tests of the store on real servers: four versions of Redis and Valkey, replicas, sentinels and
//! clusters.
//!
//! Plain `cargo test` does not run this program. Both `./test` and `cargo test -p tollgate-redis
//! --test slow` run the program.

mod cluster;
mod conformance;
mod differential;
mod killed;
#[path = "../kit/mod.rs"]
mod kit;
mod replicas;
mod runs;
mod sentinel;
mod shard;
mod step_server;
mod step_state;
mod tls;
mod transfer;
mod vectors;
