//! Why a cluster is not known.

use std::fmt;

use super::layout::LayoutError;
use crate::link::LinkError;

/// Why nobody told who keeps which slots of a cluster. It shows no secret.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ClusterError {
    /// No server was named to ask.
    NoSeeds,
    /// A node could not be asked.
    Link(LinkError),
    /// A server is no node of a cluster.
    Disabled {
        /// The server.
        address: String,
    },
    /// A node's answer is of no use.
    Layout {
        /// The node.
        address: String,
        /// What is wrong with it.
        problem: LayoutError,
    },
    /// A node tells of a cluster as it was before another told of it.
    Stale {
        /// The node.
        address: String,
    },
    /// No primary of some slots answers.
    Unserved {
        /// How many slots nobody keeps, or nobody answers for.
        slots: u16,
    },
}

impl fmt::Display for ClusterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSeeds => f.write_str("a cluster without nodes: name some of them"),
            Self::Link(error) => error.fmt(f),
            Self::Disabled { address } => write!(
                f,
                "{address} is no node of a cluster: start it with cluster-enabled yes, or name it \
                 as a shard"
            ),
            Self::Layout { address, problem } => {
                write!(f, "{address} tells of no usable cluster: {problem}")
            }
            Self::Stale { address } => {
                write!(f, "{address} tells of the cluster as it was earlier; is it cut off?")
            }
            Self::Unserved { slots } => write!(f, "nobody answers for {slots} slots"),
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
