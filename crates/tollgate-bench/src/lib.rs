//! Benchmarks of Tollgate and its peers. Tollgate and a peer are always measured in the same run,
//! in turns.
//!
//! `memory_vs_governor`, `redis_vs_two_keys`, `listeners` and `leases` print the comparisons in
//! `docs/benchmarks.md`, and `shedding` the results for critical requests under overload. The divan
//! benches measure single cases, for use while their code is changed.

pub mod contender;
pub mod draw;
pub mod leases;
pub mod listeners;
pub mod processor_time;
pub mod redis_store;
pub mod report;
pub mod rounds;
pub mod server;
pub mod shedding;
pub mod spread;
pub mod table;
