//! The reply to `INFO`.

use redis::Value;

/// A server's reply to `INFO`: lines of `name:value`, and headings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info(Box<str>);

impl Info {
    /// Creates the reply from its text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// Reads a reply. Returns `None` if the reply is not a text.
    pub(crate) fn from_reply(reply: &Value) -> Option<Self> {
        let text = match reply {
            Value::BulkString(bytes) => std::str::from_utf8(bytes).ok()?,
            Value::VerbatimString { text, .. } | Value::SimpleString(text) => text,
            _ => return None,
        };
        Some(Self::new(text))
    }

    /// Returns the value called `name`, or `None` if the server does not report the value.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    }

    /// Returns the value called `name`, if it is an unsigned integer.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        self.field(name)?.parse().ok()
    }

    /// Returns the names and values of all lines with names that begin with `prefix`.
    pub fn fields<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let of_prefix = move |line: &'a str| line.starts_with(prefix).then(|| line.split_once(':'));
        self.0.lines().filter_map(of_prefix).flatten().map(|(name, value)| (name, value.trim()))
    }
}

/// Returns the value of the field `name` in a text such as `keys=12,expires=11`, or `None` if the
/// text has no such field.
#[must_use]
pub fn part<'a>(value: &'a str, name: &str) -> Option<&'a str> {
    value.split(',').find_map(|pair| pair.split_once('=').filter(|it| it.0 == name)).map(|it| it.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Server\r\nredis_version:7.4.2\r\nmaxmemory:0\r\n\r\n# Keyspace\r\n\
        db0:keys=12,expires=11,avg_ttl=5\r\ndb1:keys=1,expires=0\r\n";

    #[test]
    fn values_are_found_by_their_whole_name() {
        let info = Info::new(TEXT);
        assert_eq!(info.field("redis_version"), Some("7.4.2"));
        assert_eq!(info.field("redis"), None);
        assert_eq!(info.number("maxmemory"), Some(0));
        assert_eq!(info.number("redis_version"), None);
        let databases: Vec<_> = info.fields("db").collect();
        assert_eq!(databases[1], ("db1", "keys=1,expires=0"));
        assert_eq!(part(databases[0].1, "expires"), Some("11"));
        assert_eq!(part(databases[0].1, "exp"), None);
    }
}
