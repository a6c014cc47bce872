//! Redis Cluster: nodes that share the slots of all keys.

mod address;
mod discovery;
mod error;
mod group;
mod importing_slots;
mod layout;
mod node_codec;
mod redirect;
mod redis_cluster;
mod settings;
mod slot;
mod slot_map;
mod status;
mod topology_probe;

pub use address::NodeAddress;
pub use error::ClusterError;
pub use layout::{LayoutError, MAX_NODES};
pub use redirect::Redirect;
pub use redis_cluster::RedisCluster;
pub use settings::{AfterFailover, ClusterSettings, DEFAULT_REFRESH};
pub(crate) use slot::Slot;
pub use status::{ClusterStatus, GroupStatus, Redirects};
