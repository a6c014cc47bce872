//! The role of this process towards the servers of a shard or a cluster.

/// The role of this process towards the servers of a shard or a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientRole {
    /// A node that makes decisions. The node writes to the servers: the step, and a key that shows
    /// whether counters were lost.
    #[default]
    ReadWrite,
    /// An observer, such as the command `tollgate shards`. The observer loads nothing into the
    /// servers, writes nothing, and must not make decisions.
    ReadOnly,
}
