//! Tests of the store that a policy file selects, on real Redis and Valkey servers.

mod access;
mod clocks;
mod cluster;
mod cluster_failover_replay;
mod conformance;
mod failover_replay;
pub(crate) mod fleet;
mod history;
mod library;
mod local_charges;
mod outage;
pub(crate) mod overrides;
mod pairs;
mod quota_lease;
mod replicas;
mod settings;
mod split;
mod status;
mod subjects;
mod transferred;
