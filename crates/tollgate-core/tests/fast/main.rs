//! Tests of the core's public API: laws of every algorithm, matching, paths, addresses, and
//! regressions.

mod addresses;
mod attributes;
mod claims;
mod descriptors;
mod edges;
mod evaluations;
mod laws;
mod limits;
mod matching;
mod named;
mod paths;
mod plain_plans;
mod plan_edges;
mod plans;
mod policies;
mod refusals;
mod regressions;
mod reservations;
mod sources;
