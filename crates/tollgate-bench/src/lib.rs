//! Benchmarks of Tollgate beside its peers.
