//! Creates a limiter over the store that a policy file selects.
//!
//! [`limiter()`] is all that a service needs to be limited by a policy file:
//!
//! ```no_run
//! # use tollgate_backend::Refunds;
//! # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
//! let loaded = tollgate_policy::load("policies/github-redis.yaml".as_ref())?;
//! let limiter = tollgate_backend::limiter(loaded, Refunds::ByResponses)?;
//! limiter.store().started().await;
//! let layer = tollgate::tower::Layer::new(limiter);
//! # let _ = layer;
//! # Ok(())
//! # }
//! ```
//!
//! [`Backend`] is the store: limits in this process, in memcached, or in shards of Redis or Valkey,
//! with the wrappers that handle outages. It reports changes of the shards by [`tracing`] events.

mod backend;
mod backend_cells;
mod backend_shard;
mod base_store;
mod blob_store;
mod deny_cache_ttl;
mod error;
mod inspect;
mod limiter;
mod map_missed;
mod map_status;
mod map_watch;
mod memcached_backend;
mod memory_bounds;
mod migration_store;
mod overrides;
mod policy_file;
mod redis;
mod redis_backend;
mod redis_cluster;
mod rollout_backend;
mod secret;
mod secret_error;
mod servers;
mod shadow_backend;
mod shard_map;
mod shard_plan;
mod status;
mod store_clock;
mod subjects;
mod tenants;
mod watch;

pub use backend::Backend;
pub use base_store::BaseStore;
pub use deny_cache_ttl::Refunds;
pub use error::OpenError;
pub use inspect::{Inspected, Role, inspect};
pub use limiter::limiter;
pub use map_status::{MapStatus, MoveStatus, Nodes, phase_word};
pub use map_watch::HEARTBEAT_PERIOD;
pub use memcached_backend::MemcachedBackend;
pub use memory_bounds::memory_bounds;
pub use migration_store::MigrationStore;
pub use overrides::{MAX_LOCAL_OVERRIDES, OVERRIDES_PERIOD, OverrideSync};
pub use policy_file::{
    LOOK_PERIOD, ListenerState, PolicyFile, Refusal, ReloadError, ReloadStatus, Reloaded,
};
pub use redis::{FromFileError, REDIS_DEADLINE, Redis, from_file};
pub use redis_backend::RedisBackend;
pub use redis_cluster::{ClusterStore, Slots};
pub use rollout_backend::RolloutBackend;
pub use secret::hash_key;
pub use secret_error::{SHORTEST_SECRET, SecretError};
pub use shadow_backend::ShadowBackend;
pub use shard_plan::{Flow, PlanError, SAMPLE, ShardPlan, locate};
pub use status::{Counts, MemcachedStatus, ShardStatus};
pub use store_clock::StoreClock;
pub use subjects::{
    LIST_DEADLINE, LIST_STEPS, LISTED_SUBJECTS, ListCursor, ListCursorError, ListedPage,
};
pub use tenants::{TENANTS_PERIOD, TENANTS_RENEWAL, TENANTS_TTL, TenantSync};
pub use tollgate_memcached::ServerStatus;
pub use tollgate_redis::{
    BatcherCounts, BatcherStatus, ClientRole, ExcessPermissions, Info, Inspection, ListError,
    ListFilter, PermissionCheck, part,
};
pub use watch::{START_WAIT, WATCH_PERIOD};
