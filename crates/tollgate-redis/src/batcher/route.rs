//! The rules for which jobs may share a command.

/// The way in which a job is sent to its server. The route determines which other jobs may share a
/// command with the job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Route {
    /// The server stores every key. The job may share a command with any other job that has the
    /// route `Any`.
    #[default]
    Any,
    /// A cluster node owns the slot with this number. The job may share a command only with jobs of
    /// the same slot, because a cluster node rejects commands with keys of several slots.
    Slot(u16),
    /// The job is sent in a command of its own, because its slot is being moved to another node. In
    /// a shared command, the keys of one job could be moved and the keys of another job not, and
    /// then both the old and the new node of the slot would reject the command.
    Separate,
    /// The job is sent in a command of its own, after `ASKING`, because its slot is being moved to
    /// this node.
    Asking,
}

impl Route {
    /// Returns whether the job goes to a cluster node, which may redirect the job to another node.
    pub(crate) fn is_of_a_cluster(self) -> bool {
        self != Self::Any
    }

    /// Returns whether a job with this route and a job with the route `other` may share a command.
    pub(super) fn joins(self, other: Self) -> bool {
        match (self, other) {
            (Self::Any, Self::Any) => true,
            (Self::Slot(one), Self::Slot(another)) => one == another,
            _ => false,
        }
    }
}

/// Whether a job may be sent before the replication epoch of the server's data is
/// [released](super::Batcher::release).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Priority {
    /// The job is rejected while the batcher holds back charges.
    #[default]
    Normal,
    /// The job is never held back, because it decides nothing or replays missing charges.
    Replay,
}
