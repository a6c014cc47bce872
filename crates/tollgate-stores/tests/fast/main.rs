//! Tests of the wrappers around stores: the guarantees of each wrapper, and the bounds of its
//! limitations.

mod atomic;
mod call_timer;
mod cancel;
mod chaos;
mod conformance;
mod deadline;
mod deny_cache;
mod failover_replay;
mod failover_replay_of_other_nodes;
mod failover_replay_of_plans;
mod failover_replay_partitions;
mod fallback;
#[path = "../../../tollgate/tests/fast/faulty.rs"]
mod faulty;
mod give_back;
mod heartbeat;
mod history;
mod leased_limits;
mod local_charges;
mod local_charges_after_errors;
mod local_charges_of_plans;
mod looks;
mod on_failure;
mod promoted;
mod quota_lease;
mod quota_lease_errors;
mod quota_lease_history;
mod quota_lease_nodes;
mod rebalance;
mod rebalance_back;
mod rebalance_limitations;
mod rebalance_of_plans;
mod replaced;
mod rollout;
mod rollout_back;
mod setup;
mod shadow;
mod sharded;
mod share;
#[path = "../../../tollgate/tests/fast/user.rs"]
mod user;
#[path = "../../../tollgate/tests/fast/tower/world.rs"]
#[expect(dead_code, reason = "the tests of `tollgate` use all of it")]
mod world;
