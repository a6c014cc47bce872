//! The replication state that a server reports.

use std::time::Duration;

use redis::Value;

use super::role::Role;
use crate::info::{Info, part};

/// The replication state of a server, parsed from `INFO replication`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Replication {
    /// The server's role in replication.
    pub(crate) role: Role,
    /// The replication id of the server's data. A replica has the id of its primary.
    pub(crate) id: Box<str>,
    /// The replication offset: how many bytes of the replication stream with this id the
    /// server has received or written.
    pub(crate) offset: u64,
    /// The time since a replica last received data from its primary. `Duration::MAX` if the replica
    /// is not connected to its primary, and zero if the server is not a replica.
    pub(crate) silence: Duration,
    /// The earlier stream that this server's stream continues, if such a stream is known.
    pub(crate) origin: Option<Origin>,
    /// The replicas of the server, at most [`MAX_REPLICAS`].
    pub(crate) replicas: Box<[ReplicaAddress]>,
}

/// The most replicas that are read from the report of one server.
const MAX_REPLICAS: usize = 16;

/// The address of a replica, as its primary knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReplicaAddress {
    /// The host name or IP address of the replica.
    pub(crate) host: Box<str>,
    /// The TCP port of the replica.
    pub(crate) port: u16,
}

impl ReplicaAddress {
    /// Parses a line such as `slave0:ip=10.0.0.2,port=6379,state=online,offset=10,lag=0`, split at
    /// the first colon. Returns `None` for any other line.
    fn from_line((name, value): (&str, &str)) -> Option<Self> {
        name.strip_prefix("slave")?.parse::<u32>().ok()?;
        Some(Self { host: part(value, "ip")?.into(), port: part(value, "port")?.parse().ok()? })
    }
}

/// The point at which a promoted server's replication stream continues an earlier stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The replication id of the earlier stream.
    pub(crate) id: Box<str>,
    /// The number of bytes of the earlier stream that the later stream contains.
    pub(crate) until: u64,
}

impl Replication {
    /// Parses the reply to `INFO replication`. Returns `None` if the reply is invalid.
    pub(crate) fn from_reply(reply: &Value) -> Option<Self> {
        let info = Info::from_reply(reply)?;
        let field = |name: &str| info.field(name);
        // A replica reports the offset that it has applied in `slave_repl_offset`. A primary
        // reports only `master_repl_offset`.
        let offset = field("slave_repl_offset").or_else(|| field("master_repl_offset"))?;
        let silence = field("master_last_io_seconds_ago").map_or(Some(0), |secs| secs.parse().ok());
        Some(Self {
            role: match (field("role"), field("master_link_status")) {
                (Some("master"), _) => Role::Primary,
                (Some("slave"), Some("up")) => Role::Replica,
                (Some("slave"), _) => Role::DisconnectedReplica,
                _ => Role::Unknown,
            },
            id: field("master_replid")?.into(),
            offset: offset.parse().ok()?,
            silence: silence.map_or(Duration::MAX, Duration::from_secs),
            origin: origin(field("master_replid2"), field("second_repl_offset")),
            replicas: info
                .fields("slave")
                .filter_map(ReplicaAddress::from_line)
                .take(MAX_REPLICAS)
                .collect(),
        })
    }

    /// Returns whether the server's data continues an earlier stream with the id `id`.
    pub(crate) fn descends_from(&self, id: &str) -> bool {
        self.id.as_ref() != id && self.origin.as_ref().is_some_and(|origin| &*origin.id == id)
    }
}

/// Returns the earlier stream that the server reports. `id` is the value of the field
/// `master_replid2`, and `first` the value of `second_repl_offset`. Returns `None` if there is no
/// earlier stream: the server then reports the offset -1 and an id that consists of zeros.
fn origin(id: Option<&str>, first: Option<&str>) -> Option<Origin> {
    let first: u64 = first?.parse().ok()?;
    // The server reports the offset of the first byte that does not belong to the earlier stream.
    Some(Origin { id: id?.into(), until: first.saturating_sub(1) })
}

#[cfg(test)]
impl Replication {
    /// Returns the state of a replica with this offset in this stream.
    pub(crate) fn following(id: &str, offset: u64) -> Self {
        Self {
            role: Role::Replica,
            id: id.into(),
            offset,
            silence: Duration::ZERO,
            origin: None,
            replicas: Box::default(),
        }
    }

    /// Returns the state of a primary with this offset in this stream, which continues `origin`.
    pub(crate) fn leading(id: &str, offset: u64, origin: Option<(&str, u64)>) -> Self {
        let origin = origin.map(|(id, until)| Origin { id: id.into(), until });
        Self { role: Role::Primary, origin, ..Self::following(id, offset) }
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
    fn a_reply_reports_the_id_and_the_offset() {
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
    fn a_primary_reports_its_replicas() {
        let lines = "slave0:ip=10.0.0.2,port=6379,state=online,offset=70,lag=0\r\n\
                     slave1:ip=replica,port=6380,state=wait_bgsave,offset=0,lag=0\r\n\
                     slave2:port=1\r\nslave3:ip=a,port=70000\r\nslave_priority:100\r\n";
        let found = read(&format!("{PRIMARY}{lines}")).unwrap();
        let address = |host: &str, port| ReplicaAddress { host: host.into(), port };
        assert_eq!(*found.replicas, [address("10.0.0.2", 6379), address("replica", 6380)]);
        let many: String = (0..99).map(|n| format!("slave{n}:ip=h,port={}\r\n", n + 1)).collect();
        assert_eq!(read(&format!("{PRIMARY}{many}")).unwrap().replicas.len(), MAX_REPLICAS);
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
