//! Tests of the module in real servers: four versions of Redis and Valkey.
//!
//! Plain `cargo test` leaves this binary out; `./test` runs it, and so does `cargo test -p
//! tollgate-module --test slow`.

mod conformance;
mod hostile;
#[path = "../../../tollgate-redis/tests/kit/mod.rs"]
mod kit;
mod layouts;
mod loaded;
mod memory;
mod page;
mod persistence;
mod replicas;
mod throttle;
