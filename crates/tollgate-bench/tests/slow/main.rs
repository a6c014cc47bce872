//! Tests of the benchmark that starts Redis servers.
//!
//! Plain `cargo test` skips this binary. `./test` and `cargo test -p tollgate-bench --test slow`
//! run it.

mod redis_vs_two_keys;
