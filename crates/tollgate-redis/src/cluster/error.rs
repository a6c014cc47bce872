//! The reasons why the slot layout of a cluster could not be read.

use std::fmt;

use super::layout::LayoutError;
use crate::connection::LinkError;

/// The reason why the slot layout of a cluster could not be read. Contains no secret.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ClusterError {
    /// The settings name no node.
    NoSeeds,
    /// A node could not be queried.
    Link(LinkError),
    /// The server is not in cluster mode.
    Disabled {
        /// The server's address.
        address: String,
    },
    /// The layout in a node's answer is not usable.
    Layout {
        /// The node's address.
        address: String,
        /// The reason why the layout is not usable.
        problem: LayoutError,
    },
    /// A node's answer is older than an answer that was received before.
    Stale {
        /// The node's address.
        address: String,
    },
    /// No primary answers for some slots.
    Unserved {
        /// The number of slots without a primary that answers.
        slots: u16,
    },
}

impl fmt::Display for ClusterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSeeds => f.write_str("the cluster has no configured nodes: name at least one"),
            Self::Link(error) => error.fmt(f),
            Self::Disabled { address } => write!(
                f,
                "{address} is no node of a cluster: start it with cluster-enabled yes, or name it \
                 as a shard"
            ),
            Self::Layout { address, problem } => {
                write!(f, "{address} does not report a usable cluster: {problem}")
            }
            Self::Stale { address } => {
                write!(
                    f,
                    "{address} reports an outdated cluster; check its connection to the other nodes"
                )
            }
            Self::Unserved { slots } => write!(f, "no node answers for {slots} slots"),
        }
    }
}

impl std::error::Error for ClusterError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Link(error) => Some(error),
            Self::Layout { problem, .. } => Some(problem),
            _ => None,
        }
    }
}

impl From<LinkError> for ClusterError {
    fn from(error: LinkError) -> Self {
        Self::Link(error)
    }
}
