//! The replies by which cluster nodes redirect a job.

use std::fmt;

use redis::{ErrorKind, RedisError, ServerErrorKind};

use crate::connection::Endpoint;
use crate::node_address::NodeAddress;

/// The reason why a cluster node did not execute a job. No part of the job was executed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Redirect {
    /// Another node owns the slot.
    Moved {
        /// The owner of the slot.
        to: NodeAddress,
        /// The URL of the node that redirected the job.
        from: String,
    },
    /// The slot is being moved to another node, and the job's keys are not on the node that
    /// redirected the job.
    Ask {
        /// The node that receives the slot.
        to: NodeAddress,
    },
    /// The slot is being moved, and the node that redirected the job has only some of the job's
    /// keys.
    TryAgain,
    /// The cluster does not serve the slot now.
    Down,
}

impl Redirect {
    /// Parses `error`, which the server at the URL `from` returned. Returns `None` if `error` is
    /// not a valid redirect.
    pub(crate) fn of(error: &RedisError, from: &str) -> Option<Self> {
        let ErrorKind::Server(kind) = error.kind() else { return None };
        match kind {
            ServerErrorKind::Moved => {
                Some(Self::Moved { to: target(error, from)?, from: from.to_owned() })
            }
            ServerErrorKind::Ask => Some(Self::Ask { to: target(error, from)? }),
            ServerErrorKind::TryAgain => Some(Self::TryAgain),
            ServerErrorKind::ClusterDown => Some(Self::Down),
            _ => None,
        }
    }
}

fn target(error: &RedisError, from: &str) -> Option<NodeAddress> {
    let (address, _slot) = error.redirect_node()?;
    let source_host = from.parse::<Endpoint>().ok().as_ref().and_then(NodeAddress::of);
    NodeAddress::read(address, source_host.as_ref().map_or("", NodeAddress::host))
}

impl fmt::Display for Redirect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Moved { to, from } => write!(f, "the slot moved from {from} to {to}"),
            Self::Ask { to } => write!(f, "the slot is moving to {to}"),
            Self::TryAgain => {
                f.write_str("the slot is moving, and only a part of its keys has arrived")
            }
            Self::Down => f.write_str(
                "the cluster does not serve the slot; check its state with CLUSTER INFO",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use redis::parse_redis_value;

    use super::*;

    fn redirect(reply: &str) -> Option<Redirect> {
        let reply = parse_redis_value(format!("-{reply}\r\n").as_bytes()).unwrap();
        Redirect::of(&reply.extract_error().unwrap_err(), "redis://10.0.0.9:7000")
    }

    #[test]
    fn a_reply_reports_where_else_to_go() {
        let to = |host, port| NodeAddress::new(host, port).unwrap();
        let from = "redis://10.0.0.9:7000".to_owned();
        let moved = |to| Some(Redirect::Moved { to, from: from.clone() });
        assert_eq!(redirect("MOVED 3999 127.0.0.1:6381"), moved(to("127.0.0.1", 6381)));
        assert_eq!(redirect("MOVED 3999 :6381"), moved(to("10.0.0.9", 6381)));
        assert_eq!(redirect("ASK 7 node:1"), Some(Redirect::Ask { to: to("node", 1) }));
        assert_eq!(redirect("TRYAGAIN Multiple keys"), Some(Redirect::TryAgain));
        assert_eq!(redirect("CLUSTERDOWN Hash slot not served"), Some(Redirect::Down));
    }

    #[test]
    fn nonsense_leads_nowhere() {
        for reply in ["MOVED", "MOVED x y", "MOVED 1 host", "ASK 1 a\tb:1", "MOVED 70000 a:1"] {
            assert_eq!(redirect(reply), None, "{reply:?}");
        }
        assert_eq!(redirect("ERR no such thing"), None);
        assert_eq!(redirect("LOADING"), None);
    }
}
