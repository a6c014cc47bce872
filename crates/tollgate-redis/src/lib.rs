//! Rate limits in Redis and Valkey. A step that runs in the server makes each decision in one round
//! trip.
//!
//! [`Redis`] is a [`Store`](tollgate_core::Store) on one server. The step is written in Lua, in
//! `src/step`, and computes the same integers as [`tollgate_core::decide()`]. The step runs as a
//! function on servers that support functions, and as a script on other servers ([`StepRuntime`]).
//!
//! [`RedisShard`] is the store for production. The store sends calls that wait for the same server
//! as a batch, answers each call by its deadline whatever the server does, and reconnects to lost
//! servers.

mod answer;
mod batcher;
mod client_role;
mod cluster;
mod codec;
mod command;
mod connection;
mod decision_time;
mod error;
#[cfg(all(test, feature = "server-tests"))]
mod faults;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
mod info;
mod inspect;
mod job;
mod key;
mod link;
mod listing;
mod members;
mod node_address;
mod offset;
mod random;
mod redirect;
mod redis_shard;
mod reply;
mod script;
mod shard;
mod shared_blob;
mod slot;
mod step_codec;
mod store;
mod topology;

pub use batcher::{BatcherCounts, BatcherError, BatcherLimits, BatcherStatus, DEFAULT_DEADLINE};
pub use client_role::ClientRole;
pub use cluster::{
    AfterFailover, ClusterError, ClusterSettings, ClusterStatus, DEFAULT_REFRESH, GroupStatus,
    LayoutError, MAX_NODES, Redirects, RedisCluster,
};
pub use connection::{
    Address, Credentials, Endpoint, EndpointError, LAG_MAX, LOOKUP_MAX, Lag, LinkError, Lookup,
    LookupResult, MAX_ADDRESSES, NameResolver, Protocol, Secret, SecretSource, Tls, TlsError,
};
pub use decision_time::DecisionClock;
pub use error::StepError;
pub use info::{Info, part};
pub use inspect::{ExcessPermissions, Inspection, PermissionCheck, inspect};
pub use key::{Keys, Tag};
pub use listing::{KEYS_PER_LIST_STEP, ListError, ListFilter, ListPage};
pub use members::DataLoss;
pub use node_address::NodeAddress;
pub use offset::ClockOffset;
pub use redirect::Redirect;
pub use redis_shard::RedisShard;
pub use script::{RuntimeChoice, StepRuntime, function_library};
pub use shard::{ReadFrom, ShardSettings};
pub use store::Redis;
pub use tollgate_link::{CircuitState, LinkLimits};
pub use topology::{Sentinels, ServerAccess, Topology};
