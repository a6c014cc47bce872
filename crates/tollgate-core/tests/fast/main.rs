//! Tests of the core's public API: laws of every algorithm, matching, paths, addresses, and
//! regressions.

mod addresses;
mod descriptors;
mod laws;
mod matching;
mod named;
mod paths;
mod regressions;
