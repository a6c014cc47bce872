//! The Redis shards of a policy file, and the tasks of a node on its shards: heartbeats, replays
//! and checks of their status.

mod heartbeats;
mod inspect;
mod map;
mod missing_nodes;
mod plan;
mod redis_servers;
mod shard_store;
mod status_diff;
mod watch;

pub use heartbeats::HEARTBEAT_PERIOD;
pub(crate) use heartbeats::Heartbeats;
pub use inspect::{Inspected, Role, inspect};
pub(crate) use map::{Shard, ShardMap, routing};
pub use plan::{Flow, PlanError, SAMPLE, ShardPlan, locate};
pub use redis_servers::RedisServers;
pub(crate) use shard_store::ShardStore;
pub(crate) use watch::{Deciding, Watch, skew_max};
pub use watch::{START_WAIT, WATCH_PERIOD};
