//! Tests of the store that a policy file selects, over real servers of Redis and memcached.
//!
//! Plain `cargo test` leaves this binary out; `./test` runs it, and so does `cargo test -p
//! tollgate-backend --test slow`.

#[path = "../../../tollgate-redis/tests/kit/mod.rs"]
mod kit;
mod memcached;
#[path = "../../../tollgate-memcached/tests/kit/mod.rs"]
mod memcached_kit;
mod migration;
mod redis;
mod tenants;
