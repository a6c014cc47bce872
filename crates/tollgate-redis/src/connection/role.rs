//! The replication role that a server reports.

use redis::Value;

/// A server's role, parsed from `ROLE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The server accepts writes.
    Primary,
    /// The server follows a primary and is connected to it. The server's data is current except for
    /// the replication delay.
    Replica,
    /// The server is configured to follow a primary, but is not connected to it. The server's data
    /// may be of any age.
    DisconnectedReplica,
    /// The server monitors other servers and has no data.
    Sentinel,
    /// The server does not report its role.
    Unknown,
}

impl Role {
    /// Parses the reply to `ROLE`. An invalid reply gives [`Role::Unknown`].
    pub(crate) fn from_reply(reply: &Value) -> Self {
        let Value::Array(parts) = reply else { return Self::Unknown };
        match (parts.first().and_then(text), parts.get(3).and_then(text)) {
            (Some(b"master"), _) => Self::Primary,
            (Some(b"slave"), Some(b"connected")) => Self::Replica,
            (Some(b"slave"), _) => Self::DisconnectedReplica,
            (Some(b"sentinel"), _) => Self::Sentinel,
            _ => Self::Unknown,
        }
    }

    /// Returns the role's name for errors.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Primary => "a primary",
            Self::Replica => "a replica",
            Self::DisconnectedReplica => "a replica without its primary",
            Self::Sentinel => "a sentinel",
            Self::Unknown => "of an unknown role",
        }
    }
}

fn text(value: &Value) -> Option<&[u8]> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        Value::SimpleString(text) => Some(text.as_bytes()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(parts: &[&str]) -> Value {
        Value::Array(parts.iter().map(|part| Value::BulkString(part.as_bytes().into())).collect())
    }

    #[test]
    fn a_reply_reports_the_role() {
        for (parts, role) in [
            (&["master", "0", ""][..], Role::Primary),
            (&["slave", "127.0.0.1", "6379", "connected", "7"], Role::Replica),
            (&["slave", "127.0.0.1", "6379", "sync", "7"], Role::DisconnectedReplica),
            (&["slave"], Role::DisconnectedReplica),
            (&["sentinel"], Role::Sentinel),
            (&["king"], Role::Unknown),
            (&[], Role::Unknown),
        ] {
            assert_eq!(Role::from_reply(&reply(parts)), role, "{parts:?}");
        }
        assert_eq!(Role::from_reply(&Value::Nil), Role::Unknown);
    }
}
