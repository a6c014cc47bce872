//! Tests of the store on a memcached server that each test starts.
//!
//! Plain `cargo test` does not run this program. Both `./test` and `cargo test -p
//! tollgate-memcached --test slow` run the program.

mod cells;
mod clock;
mod conformance;
mod exactness;
mod faults;
#[path = "../kit/mod.rs"]
mod kit;
mod pairs;
mod traps;
mod wrap;
