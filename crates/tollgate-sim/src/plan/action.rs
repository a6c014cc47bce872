//! The faults and changes of nodes, servers and links.

/// A fault or a change of a node, a server or a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Packets from a node to a server are held back, or are delivered again.
    BlockRequests {
        /// The node.
        node: usize,
        /// The server.
        server: usize,
        /// Whether the packets are held back.
        on: bool,
    },
    /// Packets from a server to a node are held back, or are delivered again.
    BlockReplies {
        /// The node.
        node: usize,
        /// The server.
        server: usize,
        /// Whether the packets are held back.
        on: bool,
    },
    /// Packets from and to a server take `millis` longer.
    Slow {
        /// The server.
        server: usize,
        /// The additional delay in ms.
        millis: u64,
    },
    /// All connections of a server break.
    Disconnect(usize),
    /// A server stops answering, and keeps its connections.
    Freeze(usize),
    /// A server that stopped answering answers again.
    Thaw(usize),
    /// A server ends. If `silent`, its connections are not closed.
    Crash {
        /// The server.
        server: usize,
        /// Whether the server's machine is lost too.
        silent: bool,
    },
    /// A server starts again, in the role that it had.
    Start {
        /// The server.
        server: usize,
        /// Whether the server has its data.
        has_data: bool,
    },
    /// A server becomes a primary.
    Promote(usize),
    /// A server follows another one.
    Follow {
        /// The replica.
        server: usize,
        /// The primary of the replica.
        primary: usize,
    },
    /// A server is out of memory, or has memory again.
    Full {
        /// The server.
        server: usize,
        /// Whether the server is out of memory.
        on: bool,
    },
    /// A server forgets scripts and functions.
    ForgetStep(usize),
    /// A server is busy with a script, or the script has ended.
    Busy {
        /// The server.
        server: usize,
        /// Whether the server is busy.
        on: bool,
    },
    /// All keys of a server are deleted.
    Flush(usize),
    /// A server removes half of its keys to free memory.
    Evict(usize),
    /// A replica receives no writes from its primary, or receives all of them again.
    Detach {
        /// The replica.
        server: usize,
        /// Whether the replica is detached.
        on: bool,
    },
    /// A node ends.
    StopNode(usize),
    /// A node starts.
    StartNode(usize),
    /// A node reloads its policy.
    Reload {
        /// The node.
        node: usize,
        /// The index of the version.
        version: usize,
    },
    /// A node uses another version of the policy from its next start on.
    Adopt {
        /// The node.
        node: usize,
        /// The index of the version.
        version: usize,
    },
    /// A node's clock is set.
    StepNode {
        /// The node.
        node: usize,
        /// The change of the clock in ms.
        millis: i64,
    },
    /// A server's clock is set.
    StepServer {
        /// The server.
        server: usize,
        /// The change of the clock in ms.
        millis: i64,
    },
    /// A sentinel reports a server as the primary of its shard, in a new epoch.
    Name {
        /// The index of the sentinel.
        sentinel: usize,
        /// The server.
        primary: usize,
    },
    /// A sentinel reports that the primary of a shard may be down, or that it is no longer in
    /// doubt.
    Doubt {
        /// The index of the sentinel.
        sentinel: usize,
        /// The shard.
        shard: usize,
        /// Whether the primary may be down.
        on: bool,
    },
}

impl Action {
    /// Returns the node that the action concerns, or `None` if it concerns no node.
    pub(super) const fn node_mut(&mut self) -> Option<&mut usize> {
        match self {
            Self::BlockRequests { node, .. }
            | Self::BlockReplies { node, .. }
            | Self::StopNode(node)
            | Self::StartNode(node)
            | Self::Reload { node, .. }
            | Self::Adopt { node, .. }
            | Self::StepNode { node, .. } => Some(node),
            Self::Slow { .. }
            | Self::Disconnect(_)
            | Self::Freeze(_)
            | Self::Thaw(_)
            | Self::Crash { .. }
            | Self::Start { .. }
            | Self::Promote(_)
            | Self::Follow { .. }
            | Self::Full { .. }
            | Self::ForgetStep(_)
            | Self::Busy { .. }
            | Self::Flush(_)
            | Self::Evict(_)
            | Self::Detach { .. }
            | Self::StepServer { .. }
            | Self::Name { .. }
            | Self::Doubt { .. } => None,
        }
    }
}
