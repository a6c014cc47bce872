//! Tests of the core's public API: laws of every algorithm, matching, paths, addresses, and
//! regressions.

mod addresses;
mod claims;
mod descriptors;
mod laws;
mod matching;
mod named;
mod paths;
mod plain_plans;
mod regressions;
