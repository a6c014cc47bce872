//! Which jobs of a call may share a command.

/// How a job goes to its server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Route {
    /// With any other: the server keeps every key.
    #[default]
    Any,
    /// With those of the same slot: a node of a cluster refuses commands with keys of several.
    Slot(u16),
    /// Alone: its slot is on its way to another node, and a command whose keys are partly here
    /// and partly there is refused by both.
    Alone,
    /// Alone, and announced by `ASKING`: its slot is on its way to this node.
    Asking,
}

impl Route {
    /// Whether the server is a node of a cluster, which may point to another one.
    pub(crate) fn is_of_a_cluster(self) -> bool {
        self != Self::Any
    }

    /// Whether two jobs may share a command.
    pub(super) fn joins(self, other: Self) -> bool {
        match (self, other) {
            (Self::Any, Self::Any) => true,
            (Self::Slot(one), Self::Slot(another)) => one == another,
            _ => false,
        }
    }
}

/// Whether a job waits for the history of the server's data to be [released](super::Batcher::release).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Priority {
    /// It does, where the batcher holds jobs back.
    #[default]
    Normal,
    /// It decides nothing, or makes the data whole.
    Replay,
}
