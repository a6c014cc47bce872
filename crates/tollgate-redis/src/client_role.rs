//! The roles in which a shard is opened.

/// The role in which a shard is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientRole {
    /// A node that decides. It writes to the servers: the step, and a key that shows whether
    /// counters were lost.
    #[default]
    ReadWrite,
    /// An observer. It loads nothing into the servers and writes nothing. It must not decide.
    ReadOnly,
}
