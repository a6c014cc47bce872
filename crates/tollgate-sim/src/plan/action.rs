//! The faults and changes that a plan can contain.

use super::OverrideEffect;

/// A fault or a change of a node, a server, a sentinel or a link. Servers and sentinels are
/// numbered together: the indices of the sentinels follow those of all servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Packets from a node to a server or a sentinel are held back, or delivered again.
    BlockRequests {
        /// The index of the node.
        node: usize,
        /// The index of the server or the sentinel.
        server: usize,
        /// Whether the packets are held back. If not, they are delivered.
        on: bool,
    },
    /// Packets from a server or a sentinel to a node are held back, or delivered again.
    BlockReplies {
        /// The index of the node.
        node: usize,
        /// The index of the server or the sentinel.
        server: usize,
        /// Whether the packets are held back. If not, they are delivered.
        on: bool,
    },
    /// All packets from and to a server take longer.
    Slow {
        /// The index of the server.
        server: usize,
        /// The additional delay in ms.
        millis: u64,
    },
    /// All connections of a server or a sentinel break. The value is its index.
    Disconnect(usize),
    /// A server or a sentinel stops answering and keeps its connections. The value is its index.
    Freeze(usize),
    /// A frozen server or sentinel answers again. The value is its index.
    Thaw(usize),
    /// The process of a server ends.
    Crash {
        /// The index of the server.
        server: usize,
        /// Whether the server's machine is lost too. In that case the connections are not closed.
        silent: bool,
    },
    /// A server starts again, in the role that it had before it ended.
    Start {
        /// The index of the server.
        server: usize,
        /// Whether the server still has its data.
        has_data: bool,
    },
    /// A server becomes a primary. The value is the index of the server.
    Promote(usize),
    /// A server becomes a replica of another server.
    Follow {
        /// The index of the server that becomes a replica.
        server: usize,
        /// The index of the server that the replica follows.
        primary: usize,
    },
    /// A server runs out of memory, or has free memory again.
    Full {
        /// The index of the server.
        server: usize,
        /// Whether the server is out of memory.
        on: bool,
    },
    /// A server loses its scripts and functions. The value is the index of the server.
    ForgetStep(usize),
    /// A server becomes busy with a script, or the script ends.
    Busy {
        /// The index of the server.
        server: usize,
        /// Whether the server is busy.
        on: bool,
    },
    /// All keys of a server are deleted. The value is the index of the server.
    Flush(usize),
    /// A server removes half of its keys to free memory. The value is the index of the server.
    Evict(usize),
    /// A replica stops receiving writes from its primary, or receives all of them again.
    Detach {
        /// The index of the replica.
        server: usize,
        /// Whether the replica receives no writes.
        on: bool,
    },
    /// A node ends. The value is the index of the node.
    StopNode(usize),
    /// A node starts. The value is the index of the node.
    StartNode(usize),
    /// A node pauses, as during a long garbage collection or while its virtual machine is stopped, or
    /// it goes on. Its packets are held back, and its callers wait.
    PauseNode {
        /// The index of the node.
        node: usize,
        /// Whether the node pauses.
        on: bool,
    },
    /// Many callers send one request each to a node, all at the same moment.
    Burst {
        /// The index of the node.
        node: usize,
        /// The number of requests.
        calls: usize,
        /// The number of subjects of these requests.
        subjects: u64,
    },
    /// A node reloads its policy from another version.
    Reload {
        /// The index of the node.
        node: usize,
        /// The index of the version of the policy.
        version: usize,
    },
    /// A node uses another version of the policy from its next start on.
    Adopt {
        /// The index of the node.
        node: usize,
        /// The index of the version of the policy.
        version: usize,
    },
    /// The clock of a node is set to another time.
    StepNode {
        /// The index of the node.
        node: usize,
        /// The change of the clock in ms. A negative number sets the clock back.
        millis: i64,
    },
    /// The clock of a server is set to another time.
    StepServer {
        /// The index of the server.
        server: usize,
        /// The change of the clock in ms. A negative number sets the clock back.
        millis: i64,
    },
    /// A sentinel reports another server as the primary of its shard, with a new configuration
    /// epoch.
    Name {
        /// The index of the sentinel in the list of all sentinels.
        sentinel: usize,
        /// The index of the server that the sentinel reports as the primary.
        primary: usize,
    },
    /// A sentinel begins or stops to report that the primary of a shard may be down.
    Doubt {
        /// The index of the sentinel in the list of all sentinels.
        sentinel: usize,
        /// The index of the shard.
        shard: usize,
        /// Whether the primary may be down.
        on: bool,
    },
    /// A server of a Redis Cluster receives the newest owners of the slots. The value is the index
    /// of the server.
    Gossip(usize),
    /// A server of a Redis Cluster begins or stops to refuse commands, because a part of the
    /// cluster is down.
    ClusterDown {
        /// The index of the server.
        server: usize,
        /// Whether the server refuses commands.
        on: bool,
    },
    /// Half of the slots of a primary begin to move to another primary.
    BeginMove {
        /// The index of the primary that owns the slots.
        from: usize,
        /// The index of the primary that receives the slots.
        to: usize,
        /// Whether the upper half of the slots moves, and not the lower half.
        upper: bool,
    },
    /// Half of the remaining keys of moving slots are moved. The value is the index of the primary
    /// that owns the slots.
    MoveKeys(usize),
    /// The last keys of moving slots are moved, and the slots get their new owner. The value is the
    /// index of the primary that owned the slots.
    EndMove(usize),
    /// A server serves its moving slots as before, although another server may own them by now. The
    /// value is the index of the server. No Redis server does this, and no plan contains it: tests
    /// add it, to show that the judge detects it.
    KeepSlots(usize),
    /// A node changes an override of the second limit.
    Override {
        /// The node.
        node: usize,
        /// The number of the subject to which the override applies, or `None` for all subjects.
        subject: Option<u64>,
        /// The effect of the override, or `None` to remove the override.
        effect: Option<OverrideEffect>,
        /// How long the override is in force, in ms, or `None` for an override without an end.
        lasts: Option<u64>,
    },
}

impl Action {
    /// Returns the index of the server that the action concerns. Returns `None` if the action
    /// concerns a node, several servers, or what a sentinel reports.
    pub(crate) const fn server(&self) -> Option<usize> {
        match self {
            Self::Slow { server, .. }
            | Self::Disconnect(server)
            | Self::Freeze(server)
            | Self::Thaw(server)
            | Self::Crash { server, .. }
            | Self::Start { server, .. }
            | Self::Promote(server)
            | Self::Follow { server, .. }
            | Self::Full { server, .. }
            | Self::ForgetStep(server)
            | Self::Busy { server, .. }
            | Self::Flush(server)
            | Self::Evict(server)
            | Self::Detach { server, .. }
            | Self::StepServer { server, .. }
            | Self::Gossip(server)
            | Self::ClusterDown { server, .. }
            | Self::MoveKeys(server)
            | Self::EndMove(server)
            | Self::KeepSlots(server) => Some(*server),
            _ => None,
        }
    }

    /// Returns the index of the node that the action concerns, to change it. Returns `None` if the
    /// action concerns no node.
    pub(super) const fn node_mut(&mut self) -> Option<&mut usize> {
        match self {
            Self::BlockRequests { node, .. }
            | Self::BlockReplies { node, .. }
            | Self::StopNode(node)
            | Self::StartNode(node)
            | Self::PauseNode { node, .. }
            | Self::Burst { node, .. }
            | Self::Reload { node, .. }
            | Self::Adopt { node, .. }
            | Self::StepNode { node, .. }
            | Self::Override { node, .. } => Some(node),
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
            | Self::Doubt { .. }
            | Self::Gossip(_)
            | Self::ClusterDown { .. }
            | Self::BeginMove { .. }
            | Self::MoveKeys(_)
            | Self::EndMove(_)
            | Self::KeepSlots(_) => None,
        }
    }
}
