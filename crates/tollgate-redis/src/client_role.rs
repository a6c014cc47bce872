//! Who opens a shard.

/// As what a shard is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientRole {
    /// As a node, which decides, and gives the servers what that needs: the step, and a key by whose
    /// loss it sees that counters were lost.
    #[default]
    ReadWrite,
    /// As somebody who looks: nothing is given to the servers and nothing written. It must not decide.
    ReadOnly,
}
