//! A benchmark that starts Redis.
//!
//! Plain `cargo test` leaves this binary out; `./test` runs it, and so does `cargo test -p tollgate-bench --test slow`.

mod redis_vs_two_keys;
