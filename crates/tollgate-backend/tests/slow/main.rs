//! Tests of the store that a policy file selects, on real servers of Redis and memcached.
//!
//! Plain `cargo test` does not run this program. Both `./test` and `cargo test -p tollgate-backend
//! --test slow` run the program.

#[path = "../../../tollgate-redis/tests/kit/mod.rs"]
mod kit;
mod memcached;
#[path = "../../../tollgate-memcached/tests/kit/mod.rs"]
mod memcached_kit;
mod migration;
mod moving_documents;
mod redis;
mod tenants;
