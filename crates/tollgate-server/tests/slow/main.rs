//! The listeners with external programs: schemathesis, redis-cli, redis-py, ioredis.
//!
//! Plain `cargo test` skips this binary. `./test` and `cargo test -p tollgate-server --test slow`
//! run it.

mod http;
mod resp;
