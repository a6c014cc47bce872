//! Benchmarks of Tollgate and of peers, which are comparable programs. Tollgate and a peer are
//! always measured alternately in the same run.
//!
//! The programs `memory_vs_governor`, `redis_vs_two_keys`, `listeners` and `leases` print the
//! comparisons in `docs/benchmarks.md`. The program `shedding` prints the results for critical
//! requests under overload. The divan benches measure single cases, for use while the code of these
//! cases is changed.

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
