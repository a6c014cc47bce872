//! Limits in Redis and Valkey: one server-side step decides, in one round trip.
//!
//! [`Redis`] is a [`Store`](tollgate_core::Store) on one server. The step is written in Lua, in
//! `src/step`, and gives the integers of [`tollgate_core::decide()`]. It runs as a function of the
//! server where there are functions, else as a script ([`Runs`]).
//!
//! [`RedisShard`] is the store for service: calls that wait for the same server travel together,
//! each is answered by its deadline whatever the server does, and lost servers are found again.

mod answer;
mod circuit;
mod cluster;
mod codec;
mod command;
mod document;
mod error;
#[cfg(test)]
mod faults;
mod info;
mod inspect;
mod job;
mod key;
mod lane;
mod link;
mod listing;
mod offset;
mod presence;
mod redis_shard;
mod reply;
mod script;
mod shard;
mod step_codec;
mod store;
mod topology;

pub use circuit::Gate;
pub use cluster::{
    AfterFailover, ClusterError, ClusterSettings, ClusterStatus, DEFAULT_REFRESH, GroupStatus,
    LayoutError, MAX_NODES, NodeAddress, Redirect, Redirects, RedisCluster,
};
pub use error::StepError;
pub use info::{Info, part};
pub use inspect::{Excess, Inspection, Judged, inspect};
pub use key::{Keys, Tag};
pub use lane::{DEFAULT_DEADLINE, LaneCounts, LaneError, LaneLimits, LaneStatus};
pub use link::{
    Address, Credentials, Endpoint, EndpointError, LAG_MAX, LOOKUP_MAX, Lag, LinkError, LinkLimits,
    Looked, Lookup, MAX_ADDRESSES, Names, Protocol, Secret, SecretSource, Tls, TlsError,
};
pub use listing::{LISTED_AT_ONCE, ListError, Listed, Sought};
pub use offset::ClockOffset;
pub use presence::Presence;
pub use redis_shard::{DecidingClock, RedisShard};
pub use script::{Choice, Runs};
pub use shard::{Reads, ShardSettings};
pub use store::Redis;
pub use topology::{Access, Loss, Sentinels, Topology};
