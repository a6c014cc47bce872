//! What a server says of its replication.

use std::time::Duration;

use redis::Value;

use super::role::Role;
use crate::info::Info;

/// What a server says of its replication, as `INFO replication` tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Replication {
    /// Its place in replication.
    pub(crate) role: Role,
    /// The name of the history that its data is of: a replica's is its primary's.
    pub(crate) history: Box<str>,
    /// How much of that history it has, in bytes.
    pub(crate) offset: u64,
    /// How long ago a replica heard from its primary.
    pub(crate) silence: Duration,
    /// The history that this one goes on from, if it is known.
    pub(crate) origin: Option<Origin>,
}

/// Where one history began to go on from another: a promotion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The name of the earlier history.
    pub(crate) history: Box<str>,
    /// How much of it was taken over, in bytes.
    pub(crate) until: u64,
}

impl Replication {
    /// Reads the reply to `INFO replication`; nothing if it is not one.
    pub(crate) fn from_reply(reply: &Value) -> Option<Self> {
        let info = Info::from_reply(reply)?;
        let field = |name: &str| info.field(name);
        // A replica's own count of what it has applied; a primary has only the other one.
        let offset = field("slave_repl_offset").or_else(|| field("master_repl_offset"))?;
        let silence = field("master_last_io_seconds_ago").map_or(Some(0), |secs| secs.parse().ok());
        Some(Self {
            role: match (field("role"), field("master_link_status")) {
                (Some("master"), _) => Role::Primary,
                (Some("slave"), Some("up")) => Role::Replica,
                (Some("slave"), _) => Role::DisconnectedReplica,
                _ => Role::Unknown,
            },
            history: field("master_replid")?.into(),
            offset: offset.parse().ok()?,
            silence: silence.map_or(Duration::MAX, Duration::from_secs),
            origin: origin(field("master_replid2"), field("second_repl_offset")),
        })
    }

    /// Whether its data went on from where the history called `history` was left.
    pub(crate) fn descends_from(&self, history: &str) -> bool {
        self.history.as_ref() != history
            && self.origin.as_ref().is_some_and(|origin| &*origin.history == history)
    }
}

/// Where there was no earlier history, the offset is -1 and the name is of zeros.
fn origin(history: Option<&str>, first: Option<&str>) -> Option<Origin> {
    let first: u64 = first?.parse().ok()?;
    // The offset told is that of the first byte that is not of the earlier history.
    Some(Origin { history: history?.into(), until: first.saturating_sub(1) })
}

#[cfg(test)]
impl Replication {
    /// A replica that has so much of this history.
    pub(crate) fn following(history: &str, offset: u64) -> Self {
        Self {
            role: Role::Replica,
            history: history.into(),
            offset,
            silence: Duration::ZERO,
            origin: None,
        }
    }

    /// A primary that has so much of this history, and began it where another one was left.
    pub(crate) fn leading(history: &str, offset: u64, origin: Option<(&str, u64)>) -> Self {
        let origin = origin.map(|(history, until)| Origin { history: history.into(), until });
        Self { role: Role::Primary, origin, ..Self::following(history, offset) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRIMARY: &str = "# Replication\r\nrole:master\r\nmaster_replid:abc\r\n\
                           master_replid2:0000\r\nmaster_repl_offset:70\r\nsecond_repl_offset:-1\r\n";
    const REPLICA: &str = "role:slave\r\nmaster_link_status:up\r\nmaster_last_io_seconds_ago:4\r\n\
                           slave_repl_offset:60\r\nmaster_replid:abc\r\nmaster_repl_offset:50\r\n";

    fn read(text: &str) -> Option<Replication> {
        Replication::from_reply(&Value::BulkString(text.into()))
    }

    #[test]
    fn a_reply_reports_the_history_and_the_offset() {
        assert_eq!(read(PRIMARY), Some(Replication::leading("abc", 70, None)));
        let silence = Duration::from_secs(4);
        let expected = Replication { silence, ..Replication::following("abc", 60) };
        assert_eq!(read(REPLICA), Some(expected));
        let adrift = REPLICA.replace("ago:4", "ago:-1").replace("status:up", "status:down");
        let found = read(&adrift).unwrap();
        assert_eq!((found.silence, found.role), (Duration::MAX, Role::DisconnectedReplica));
        for junk in ["", "master_replid:abc", "master_replid:abc\r\nmaster_repl_offset:x"] {
            assert_eq!(read(junk), None, "{junk:?}");
        }
        assert_eq!(Replication::from_reply(&Value::Nil), None);
    }

    #[test]
    fn a_promotion_reports_what_it_went_on_from() {
        let promoted =
            PRIMARY.replace("replid2:0000", "replid2:old").replace("offset:-1", "offset:41");
        let promoted = read(&promoted).unwrap();
        assert_eq!(promoted, Replication::leading("abc", 70, Some(("old", 40))));
        assert!(promoted.descends_from("old"));
        assert!(!promoted.descends_from("abc") && !promoted.descends_from("0000"));
        assert!(!read(PRIMARY).unwrap().descends_from("0000"));
    }
}
