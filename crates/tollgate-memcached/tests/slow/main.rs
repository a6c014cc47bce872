//! Tests of the store on a memcached server that each test starts.
//!
//! Plain `cargo test` leaves this binary out; `./test` runs it, and so does `cargo test -p
//! tollgate-memcached --test slow`.

mod cells;
mod conformance;
mod exactness;
mod faults;
#[path = "../kit/mod.rs"]
mod kit;
mod pairs;
mod traps;
mod wrap;
