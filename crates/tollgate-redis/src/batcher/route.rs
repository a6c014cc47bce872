//! The rules for which jobs may share a command.

/// The route of a job to its server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Route {
    /// With any other job: the server has every key.
    #[default]
    Any,
    /// In a command with jobs of the same slot only: a cluster node rejects commands with keys of
    /// several slots.
    Slot(u16),
    /// In a command of its own: the slot is being moved to another node, and both nodes reject a
    /// command with some moved and some unmoved keys.
    Alone,
    /// In a command of its own, after `ASKING`: the slot is being moved to this node.
    Asking,
}

impl Route {
    /// Returns whether the server is a cluster node, which may redirect to another one.
    pub(crate) fn is_of_a_cluster(self) -> bool {
        self != Self::Any
    }

    /// Returns whether two jobs may share a command.
    pub(super) fn joins(self, other: Self) -> bool {
        match (self, other) {
            (Self::Any, Self::Any) => true,
            (Self::Slot(one), Self::Slot(another)) => one == another,
            _ => false,
        }
    }
}

/// Whether a job waits until the epoch of the server's data is [released](super::Batcher::release).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Priority {
    /// The job waits while the batcher holds jobs back.
    #[default]
    Normal,
    /// The job never waits: it decides nothing, or repairs the data.
    Replay,
}
