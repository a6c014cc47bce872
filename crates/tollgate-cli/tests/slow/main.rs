//! Tests of the binary with real programs: Redis, memcached, Envoy, nginx, HAProxy, Chromium,
//! Prometheus, third-party clients; and tests that take long.
//!
//! Plain `cargo test` leaves this binary out. `./test` runs it, and so does `cargo test -p
//! tollgate-cli --test slow`.

mod clients;
mod commands;
mod envoy;
#[path = "../../../tollgate-redis/tests/kit/mod.rs"]
mod kit;
#[path = "../../../tollgate-memcached/tests/kit/mod.rs"]
mod memcached;
mod migration;
mod packaging;
mod recording;
mod redis;
mod serve;
mod shards;
mod simulate;
mod sub_requests;
#[path = "../support/mod.rs"]
mod support;
