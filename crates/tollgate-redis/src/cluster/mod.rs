//! Redis Cluster: nodes that share the slots of all keys.

mod discovery;
mod error;
mod group;
mod importing_slots;
mod layout;
mod node_codec;
mod redis_cluster;
mod settings;
mod slot_map;
mod status;
mod topology_probe;

pub use error::ClusterError;
pub use layout::{LayoutError, MAX_NODES};
pub use redis_cluster::RedisCluster;
pub use settings::{AfterFailover, ClusterSettings, DEFAULT_REFRESH};
pub use status::{ClusterStatus, GroupStatus, Redirects};
