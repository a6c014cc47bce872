//! The mapping from keys of a JSON log line to fields of a request.

use std::fmt;

use super::entry::{HEADERS_MAX, Slot};

/// The field of a request that a JSON value contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Time,
    /// A whole request line, `GET / HTTP/1.1`.
    Request,
    Status,
    Bytes,
    /// The request's duration. The unit of the value is 10^-`power` seconds: seconds for 0,
    /// milliseconds for 3.
    Duration {
        power: u8,
    },
    Text(Slot),
}

/// The meaning of a JSON key: the field that its value contains, and the rank of the key. If a line
/// has several keys of one field, the key with the lowest rank is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Alias {
    pub(super) field: Field,
    pub(super) rank: u8,
}

/// The mapping from keys of a JSON log line to fields and request headers.
///
/// The default has the keys of nginx, Caddy, Traefik and Envoy. Keys of nested objects are joined
/// by dots (`request.remote_ip`). If a value is a list, its first element is used.
#[derive(Clone, Debug)]
pub(crate) struct FieldMap {
    headers: Vec<String>,
    /// The keys with their meanings, as one list for each length of a key.
    keys: Vec<Vec<(Box<[u8]>, Alias)>>,
}

/// The length in bytes of the longest key that can be mapped.
const KEY_MAX: usize = 255;

/// Every field with its name in settings and its known keys, the preferred one first.
const FIELDS: &[(&str, Field, &[&str])] = &[
    ("time", Field::Time, TIME),
    ("address", Field::Text(Slot::Client), ADDRESS),
    (
        "method",
        Field::Text(Slot::Method),
        &["request_method", "request.method", "RequestMethod", "method"],
    ),
    ("target", Field::Text(Slot::Target), TARGET),
    ("request", Field::Request, &["request"]),
    ("status", Field::Status, &["status", "DownstreamStatus", "response_code", "status_code"]),
    (
        "bytes",
        Field::Bytes,
        &["body_bytes_sent", "bytes_sent", "size", "DownstreamContentSize", "bytes"],
    ),
    (
        "host",
        Field::Text(Slot::Host),
        &["http_host", "request.host", "RequestHost", "authority", "host"],
    ),
    ("user", Field::Text(Slot::User), &["remote_user", "user_id", "ClientUsername", "user"]),
    ("referer", Field::Text(Slot::Referer), REFERER),
    ("user_agent", Field::Text(Slot::UserAgent), USER_AGENT),
    ("duration_s", Field::Duration { power: 0 }, &["request_time"]),
    ("duration_ms", Field::Duration { power: 3 }, &[]),
    ("duration_us", Field::Duration { power: 6 }, &[]),
    ("duration_ns", Field::Duration { power: 9 }, &["Duration"]),
];

const TIME: &[&str] = &[
    "StartUTC",
    "start_time",
    "time_iso8601",
    "msec",
    "ts",
    "@timestamp",
    "timestamp",
    "time_local",
    "time",
];
const ADDRESS: &[&str] = &[
    "remote_addr",
    "request.client_ip",
    "request.remote_ip",
    "ClientHost",
    "downstream_remote_address",
    "client_ip",
    "remote_ip",
    "ClientAddr",
    "ip",
];
const TARGET: &[&str] =
    &["request_uri", "request.uri", "RequestPath", "uri", "path", "target", "url"];
const REFERER: &[&str] = &["http_referer", "request.headers.Referer", "request_Referer", "referer"];
const USER_AGENT: &[&str] =
    &["http_user_agent", "request.headers.User-Agent", "request_User-Agent", "user_agent"];

impl Default for FieldMap {
    fn default() -> Self {
        let mut keys = vec![Vec::new(); KEY_MAX + 1];
        for &(_, field, known) in FIELDS {
            for (rank, key) in (1..).zip(known) {
                keys[key.len()].push((Box::from(key.as_bytes()), Alias { field, rank }));
            }
        }
        Self { headers: Vec::new(), keys }
    }
}

impl FieldMap {
    /// Returns the default map with changed keys. Each of `settings` has the form `name=key`: the
    /// field `name` is read from `key` instead of its default keys.
    ///
    /// Names are `time`, `address`, `method`, `target`, `request` (a whole request line), `status`,
    /// `bytes`, `host`, `user`, `referer`, `user_agent`, `duration_s`, `duration_ms`,
    /// `duration_us`, `duration_ns`, and `header.NAME` for a request header.
    pub(crate) fn new<'a>(settings: impl IntoIterator<Item = &'a str>) -> Result<Self, FieldError> {
        let mut map = Self::default();
        for setting in settings {
            let (name, key) =
                setting.split_once('=').ok_or_else(|| FieldError::NoKey(setting.to_owned()))?;
            if key.is_empty() || key.len() > KEY_MAX {
                return Err(FieldError::NoKey(setting.to_owned()));
            }
            let field = map.field(name)?;
            for keys in &mut map.keys {
                keys.retain(|(_, alias)| alias.rank == 0 || alias.field != field);
            }
            map.keys[key.len()].push((Box::from(key.as_bytes()), Alias { field, rank: 0 }));
        }
        Ok(map)
    }

    /// Returns the names of the request headers that the map reads, in lower case; see
    /// [`Entry::header`](super::Entry::header).
    pub(crate) fn headers(&self) -> &[String] {
        &self.headers
    }

    /// Returns the fields that the value at `path` contains.
    pub(super) fn aliases(&self, path: &[u8]) -> impl Iterator<Item = Alias> {
        let keys = self.keys.get(path.len()).map_or(&[][..], Vec::as_slice);
        keys.iter().filter(move |(key, _)| **key == *path).map(|(_, alias)| *alias)
    }

    fn field(&mut self, name: &str) -> Result<Field, FieldError> {
        match FIELDS.iter().find(|(known, ..)| *known == name) {
            Some(&(_, field, _)) => Ok(field),
            None => self.header_slot(name).map(Field::Text),
        }
    }

    fn header_slot(&mut self, name: &str) -> Result<Slot, FieldError> {
        let header = name.strip_prefix("header.").filter(|header| !header.is_empty());
        let header =
            header.ok_or_else(|| FieldError::Unknown(name.to_owned()))?.to_ascii_lowercase();
        let index =
            self.headers.iter().position(|known| *known == header).unwrap_or(self.headers.len());
        if index == HEADERS_MAX {
            return Err(FieldError::TooManyHeaders);
        }
        if index == self.headers.len() {
            self.headers.push(header);
        }
        u8::try_from(index).map(Slot::Header).map_err(|_| FieldError::TooManyHeaders)
    }
}

/// An invalid field setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FieldError {
    /// The setting is not `name=key`, or its key is empty or too long.
    NoKey(String),
    /// The field does not exist.
    Unknown(String),
    /// More request headers than an entry can store.
    TooManyHeaders,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoKey(setting) => write!(
                f,
                "`{setting}` is not `name=key` with a key of 1 to {KEY_MAX} bytes (for example `time=ts`)"
            ),
            Self::Unknown(name) => {
                write!(f, "unknown field `{name}`; fields are ")?;
                FIELDS.iter().try_for_each(|(known, ..)| write!(f, "{known}, "))?;
                f.write_str("and header.NAME")
            }
            Self::TooManyHeaders => write!(f, "more than {HEADERS_MAX} request headers"),
        }
    }
}

impl std::error::Error for FieldError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_replaces_what_was_known_of_its_field() {
        let map = FieldMap::new(["time=when", "time=at", "header.X-Api-Key=k"]).unwrap();
        assert_eq!(map.aliases(b"ts").count(), 0);
        let time = Alias { field: Field::Time, rank: 0 };
        assert_eq!(map.aliases(b"when").collect::<Vec<_>>(), [time]);
        assert_eq!(map.aliases(b"at").collect::<Vec<_>>(), [time]);
        assert_eq!(map.aliases(b"status").count(), 1);
        assert_eq!(map.headers(), ["x-api-key"]);
    }

    #[test]
    fn what_cannot_be_set_is_named() {
        let unknown = FieldMap::new(["tiem=ts"]).unwrap_err();
        assert_eq!(unknown, FieldError::Unknown("tiem".into()));
        assert!(unknown.to_string().contains("time, address"), "{unknown}");
        assert_eq!(FieldMap::new(["time"]).unwrap_err(), FieldError::NoKey("time".into()));
        assert_eq!(FieldMap::new(["time="]).unwrap_err(), FieldError::NoKey("time=".into()));
        assert!(FieldMap::new(["header.=x"]).is_err());
        let headers: Vec<_> = (0..=HEADERS_MAX).map(|n| format!("header.h{n}=k{n}")).collect();
        assert!(FieldMap::new(headers[1..].iter().map(String::as_str)).is_ok());
        let all = FieldMap::new(headers.iter().map(String::as_str));
        assert_eq!(all.unwrap_err(), FieldError::TooManyHeaders);
    }
}
