//! Queries one sentinel.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use redis::{FromRedisValue, Value};
use tokio::sync::Notify;
use tokio::time::timeout;
use tollgate_link::LinkLimits;

use crate::connection::{Connection, Endpoint, LinkError, Protocol, Pushes, open};
use crate::members::Confidence;

/// The most servers that are read from one sentinel's report. The same limit applies to the other
/// sentinels in the report.
const MAX_NAMED: usize = 16;

/// The channels with events that cause a query: the stages of a failover, and added or lost
/// servers.
const CHANNELS: [&str; 7] = [
    "+switch-master",
    "+promoted-slave",
    "+failover-end",
    "+slave",
    "+sentinel",
    "+odown",
    "-odown",
];

/// The commands that query a sentinel, as error messages name them.
const COMMAND: &str = "SENTINEL";

/// The location of a server or a sentinel in a sentinel's report: a host name or IP address, and a
/// port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServerLocation {
    pub(super) host: String,
    pub(super) port: u16,
}

/// A sentinel's report about a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) primary: ServerLocation,
    /// The epoch of the sentinel's configuration, which grows with every failover.
    pub(super) epoch: u64,
    pub(super) certainty: Confidence,
    pub(super) replicas: Vec<ServerLocation>,
    pub(super) sentinels: Vec<ServerLocation>,
}

/// A connection to a sentinel on which the sentinel reports events.
pub(super) struct Sentinel {
    connection: Connection,
    changed: Arc<Notify>,
}

impl Sentinel {
    /// Connects to the sentinel at `endpoint`, and subscribes to its events.
    pub(super) async fn connect(
        endpoint: &Endpoint,
        limits: LinkLimits,
    ) -> Result<Self, LinkError> {
        // Events and replies arrive on one connection, which only RESP3 supports.
        let endpoint = Endpoint { protocol: Protocol::Resp3, ..endpoint.clone() };
        let changed = Arc::<Notify>::default();
        let opened = async {
            let connection = open(&endpoint, 0, Pushes::Wake(Arc::clone(&changed))).await?;
            let subscribed = connection.handle().subscribe(&CHANNELS).await;
            subscribed
                .map_err(|error| LinkError::answered(&endpoint.to_string(), "SUBSCRIBE", &error))?;
            Ok::<_, LinkError>(connection)
        };
        let slow = |_| LinkError::Slow { address: endpoint.to_string(), within: limits.connect };
        let connection = timeout(limits.connect, opened).await.map_err(slow)??;
        Ok(Self { connection, changed })
    }

    /// Queries the sentinel's report about `service`, within the time `within`.
    pub(super) async fn query(&self, service: &str, within: Duration) -> Result<Report, LinkError> {
        let address = self.connection.address();
        let mut questions = redis::pipe();
        for question in ["GET-MASTER-ADDR-BY-NAME", "MASTER", "REPLICAS", "SENTINELS"] {
            questions.cmd("SENTINEL").arg(question).arg(service);
        }
        let mut handle = self.connection.handle();
        let replies = timeout(within, handle.send_packed_commands(&questions, 0, 4))
            .await
            .map_err(|_| LinkError::Slow { address: address.to_owned(), within })?
            .map_err(|error| LinkError::answered(address, COMMAND, &error))?;
        let refused = |code: &str| LinkError::Refused {
            address: address.to_owned(),
            command: COMMAND,
            code: code.to_owned(),
        };
        let refusal = replies.iter().find_map(|reply| match reply {
            Value::ServerError(error) => Some(error.code()),
            _ => None,
        });
        match (replies.first(), refusal) {
            (Some(Value::Nil), _) => Err(LinkError::UnknownService {
                address: address.to_owned(),
                service: service.to_owned(),
            }),
            (_, Some(code)) => Err(refused(code)),
            _ => Report::from_replies(&replies).ok_or_else(|| refused("an unknown reply")),
        }
    }

    /// Waits until the sentinel reports an event or the connection is closed.
    pub(super) async fn changed(&self) -> Result<(), LinkError> {
        tokio::select! {
            biased;
            () = self.changed.notified() => Ok(()),
            () = self.connection.ended() => {
                Err(LinkError::Closed { address: self.connection.address().to_owned() })
            }
        }
    }
}

impl ServerLocation {
    fn new(host: &str, port: &str) -> Option<Self> {
        let port = port.parse().ok().filter(|port| *port != 0)?;
        // This check rejects texts that cannot be a host name or an address.
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte);
        let is_named = (1..=255).contains(&host.len()) && host.bytes().all(is_host);
        is_named.then(|| Self { host: host.to_owned(), port })
    }
}

impl Report {
    /// Parses the replies to the commands of a query. Returns `None` if a reply is invalid.
    fn from_replies(replies: &[Value]) -> Option<Self> {
        let [primary, service, replicas, sentinels] = replies else { return None };
        let [host, port] = <[String; 2]>::from_redis_value_ref(primary).ok()?;
        let service = fields(service)?;
        let flags = service.get("flags")?;
        let is_in_doubt = |flag: &str| matches!(flag, "s_down" | "o_down" | "failover_in_progress");
        Some(Self {
            primary: ServerLocation::new(&host, &port)?,
            epoch: service.get("config-epoch")?.parse().ok()?,
            certainty: match flags.split(',').any(is_in_doubt) {
                true => Confidence::Suspect,
                false => Confidence::Confirmed,
            },
            replicas: locations(replicas),
            sentinels: locations(sentinels),
        })
    }
}

/// Returns the locations in a list. Entries that cannot be parsed are skipped.
fn locations(list: &Value) -> Vec<ServerLocation> {
    let Value::Array(entries) = list else { return Vec::new() };
    let location = |entry| {
        let fields = fields(entry)?;
        ServerLocation::new(fields.get("ip")?, fields.get("port")?)
    };
    entries.iter().filter_map(location).take(MAX_NAMED).collect()
}

/// Parses pairs of names and values. RESP2 encodes the pairs as a list, and RESP3 as a map. Returns
/// `None` for any other reply.
fn fields(reply: &Value) -> Option<HashMap<String, String>> {
    HashMap::from_redis_value_ref(reply).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    fn map(fields: &[(&str, &str)]) -> Value {
        Value::Map(fields.iter().map(|(name, value)| (text(name), text(value))).collect())
    }

    fn replies(flags: &str, host: &str, port: &str) -> [Value; 4] {
        [
            Value::Array(vec![text(host), text(port)]),
            map(&[("name", "limits"), ("flags", flags), ("config-epoch", "7")]),
            Value::Array(vec![map(&[("ip", "10.0.0.2"), ("port", "6380")]), map(&[])]),
            Value::Array(vec![map(&[("ip", "::1"), ("port", "26379"), ("runid", "x")])]),
        ]
    }

    fn location(host: &str, port: u16) -> ServerLocation {
        ServerLocation { host: host.to_owned(), port }
    }

    #[test]
    fn replies_report_of_a_service() {
        let report = Report::from_replies(&replies("master", "db.example", "6379")).unwrap();
        assert_eq!(report.primary, location("db.example", 6379));
        assert_eq!((report.epoch, report.certainty), (7, Confidence::Confirmed));
        assert_eq!(report.replicas, [location("10.0.0.2", 6380)]);
        assert_eq!(report.sentinels, [location("::1", 26379)]);
        for flags in ["s_down,master", "master,o_down", "master,failover_in_progress"] {
            let report = Report::from_replies(&replies(flags, "h", "1")).unwrap();
            assert_eq!(report.certainty, Confidence::Suspect, "{flags}");
        }
    }

    #[test]
    fn what_is_no_address_is_nobodys() {
        for (host, port) in [("", "1"), ("h", "0"), ("h", "70000"), ("h/1", "1"), ("a@h", "1")] {
            assert_eq!(Report::from_replies(&replies("master", host, port)), None, "{host}:{port}");
        }
        assert_eq!(Report::from_replies(&[]), None);
        assert_eq!(Report::from_replies(&[Value::Nil, Value::Nil, Value::Nil, Value::Nil]), None);
    }
}
