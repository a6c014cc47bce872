//! From a policy file to a limiter over the store that the file names.
//!
//! [`limiter()`] is all that a service needs to be limited by a policy file:
//!
//! ```no_run
//! # use tollgate_backend::Refunds;
//! # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
//! let loaded = tollgate_policy::load("policies/github-redis.yaml".as_ref())?;
//! let limiter = tollgate_backend::limiter(loaded, Refunds::ByAnswers)?;
//! limiter.store().started().await;
//! let layer = tollgate::tower::Layer::new(limiter);
//! # let _ = layer;
//! # Ok(())
//! # }
//! ```
//!
//! [`Backend`] is the store: limits in this process, or in shards of Redis or Valkey with
//! everything around them that an outage asks for. What happens to the shards it tells by
//! [`tracing`].

mod backend;
mod compared;
mod error;
mod fleet_cells;
mod fleet_shard;
mod inspect;
mod leaf;
mod limiter;
mod map_missed;
mod map_status;
mod map_watch;
mod memcached_fleet;
mod memory_bounds;
mod moving;
mod overrides;
mod policy_file;
mod recall;
mod redis_cluster;
mod redis_fleet;
mod secret;
mod secret_error;
mod servers;
mod shard_map;
mod shard_plan;
mod side;
mod status;
mod store_clock;
mod subjects;
mod watch;

pub use backend::Backend;
pub use compared::Compared;
pub use error::OpenError;
pub use inspect::{Inspected, Role, inspect};
pub use leaf::Leaf;
pub use limiter::limiter;
pub use map_status::{MapStatus, MoveStatus, Nodes, phase_word};
pub use map_watch::ATTEND_PERIOD;
pub use memcached_fleet::MemcachedFleet;
pub use memory_bounds::memory_bounds;
pub use moving::Moving;
pub use overrides::{KeptOverrides, OVERRIDES_PERIOD};
pub use policy_file::{
    Doors, LOOK_PERIOD, PolicyFile, Refusal, ReloadError, ReloadStatus, Reloaded,
};
pub use recall::Refunds;
pub use redis_cluster::{ClusterStore, Slots};
pub use redis_fleet::RedisFleet;
pub use secret::hash_key;
pub use secret_error::{SHORTEST_SECRET, SecretError};
pub use shard_plan::{Flow, PlanError, SAMPLE, ShardPlan, home};
pub use side::Side;
pub use status::{Counts, MemcachedStatus, ShardStatus};
pub use store_clock::StoreClock;
pub use subjects::{
    LIST_DEADLINE, LIST_STEPS, LISTED_SUBJECTS, ListCursor, ListCursorError, ListedPage,
};
pub use tollgate_memcached::ServerStatus;
pub use tollgate_redis::{
    Excess, Info, Inspection, Judged, LaneCounts, LaneStatus, ListError, Presence, Sought, part,
};
pub use watch::{START_WAIT, WATCH_PERIOD};
