//! Listeners asked by programs from outside: schemathesis, redis-cli, redis-py, ioredis.
//!
//! Plain `cargo test` leaves this binary out; `./test` runs it, and so does `cargo test -p tollgate-server --test slow`.

mod http;
mod resp;
