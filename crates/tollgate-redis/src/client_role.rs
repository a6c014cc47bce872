//! The roles in which a shard is opened.

/// The role in which a shard is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientRole {
    /// A node that makes decisions. The node writes to the servers: the step, and a key that shows
    /// whether counters were lost.
    #[default]
    ReadWrite,
    /// An observer. The observer loads nothing into the servers, writes nothing, and must not make
    /// decisions.
    ReadOnly,
}
