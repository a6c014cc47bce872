//! Benchmarks of Tollgate beside its peers: always in the same run, in turns.
//!
//! `memory_vs_governor` prints the comparison that `docs/benchmarks.md` shows; the divan benches
//! time single cases while one works on them.

pub mod contender;
pub mod draw;
pub mod report;
pub mod rounds;
