//! Creates a limiter over the store that a policy file selects.
//!
//! [`limiter()`] creates the limiter of a policy file for a service:
//!
//! ```no_run
//! # use tollgate_backend::Refunds;
//! # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
//! let loaded = tollgate_policy::load("policies/github-redis.yaml".as_ref())?;
//! let limiter = tollgate_backend::limiter(loaded, Refunds::ByResponses)?;
//! limiter.store().started().await;
//! let layer = tollgate::RateLimitLayer::new(limiter);
//! # let _ = layer;
//! # Ok(())
//! # }
//! ```
//!
//! [`Backend`] is the store: counters in this process, in memcached, or in shards of Redis or
//! Valkey, with the wrappers that handle outages. The store reports changes of the shards by
//! [`tracing`] events.

mod backend;
mod blob_store;
mod compose;
mod limiter;
mod overrides;
mod policy_file;
mod redis;
mod settings;
mod shards;
mod status;
mod subjects;
mod tenants;

pub use backend::{
    Backend, MemcachedBackend, RedisBackend, RolloutBackend, ShadowBackend, StoreClock,
};
pub use limiter::{FromFileError, from_file, limiter};
pub use overrides::{MAX_LOCAL_OVERRIDES, OVERRIDES_PERIOD, OverrideSync};
pub use policy_file::{
    CHECK_PERIOD, ListenerState, PolicyFile, Refusal, ReloadError, ReloadStatus, Reloaded,
};
pub use redis::{REDIS_DEADLINE, Redis};
pub use settings::{OpenError, Refunds, SHORTEST_SECRET, SecretError, hash_key, memory_bounds};
pub use shards::{
    Flow, HEARTBEAT_PERIOD, Inspected, PlanError, RedisServers, Role, SAMPLE, START_WAIT,
    ShardPlan, WATCH_PERIOD, inspect, locate,
};
pub use status::{Counts, MapStatus, MemcachedStatus, MoveStatus, Nodes, ShardStatus, phase_word};
pub use subjects::{
    LIST_DEADLINE, LIST_STEPS, LISTED_SUBJECTS, ListCursor, ListCursorError, ListedPage,
};
pub use tenants::{TENANTS_PERIOD, TENANTS_RENEWAL, TenantSync};
pub use tollgate_memcached::ServerStatus;
pub use tollgate_redis::{
    BatcherCounts, BatcherStatus, ClientRole, ExcessPermissions, Info, Inspection, ListError,
    ListFilter, PermissionCheck, part,
};

/// The Rust examples of this crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[derive(Debug)]
pub struct Readme;
