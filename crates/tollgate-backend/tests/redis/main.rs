//! The store that a policy file names, over real servers.

mod conformance;
mod fleet;
#[path = "../../../tollgate-redis/tests/kit/mod.rs"]
mod kit;
mod outage;
mod settings;
mod status;
