//! The wrappers around stores: the guarantees of each, and how much it weakens them.

mod atomic;
mod call_timer;
mod cancel;
mod chaos;
mod conformance;
mod deadline;
mod deny_cache;
mod failover_replay;
mod failover_replay_partitions;
mod fallback;
pub(crate) mod faulty;
mod give_back;
mod heartbeat;
mod history;
mod looks;
mod promoted;
mod quota_lease;
mod quota_lease_history;
mod quota_lease_nodes;
mod rebalance;
mod rebalance_back;
mod rollout;
mod rollout_back;
mod setup;
mod shadow;
mod sharded;
mod share;
