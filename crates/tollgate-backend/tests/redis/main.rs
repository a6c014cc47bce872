//! The store that a policy file names, over real servers.

mod access;
mod carried;
mod cluster;
mod cluster_repair;
mod conformance;
mod fleet;
mod history;
#[path = "../../../tollgate-redis/tests/kit/mod.rs"]
mod kit;
mod leased;
mod outage;
mod overrides;
mod pairs;
mod repair;
mod replicas;
mod settings;
mod status;
mod subjects;
