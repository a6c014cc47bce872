//! Converts a log entry to a request for the policy.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, Ipv6Addr};

use tollgate::model::{RequestAttributes, attributes};

use super::log::{Entry, FieldMap};

/// A request for the policy, made from an entry.
///
/// - A request that could not be parsed (a TLS hello on a plain port) has the method `-` and the
///   path `/`: only its client matters.
/// - The log's user is the header `remote-user`. `Referer`, `User-Agent` and `Host` are the headers
///   with these names.
/// - A client with a host name in the log gets an address that is made from the name; see
///   [`Client`].
#[derive(Debug)]
pub(super) struct Request<'e> {
    entry: &'e Entry,
    fields: &'e FieldMap,
    method: Cow<'e, str>,
    path: Cow<'e, str>,
    host: Option<Cow<'e, str>>,
    client: Client,
}

/// The client of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Client {
    /// The log has the address.
    Address(IpAddr),
    /// The log has a host name: it is replaced by a unique local address (fd00::/8), the same for
    /// the same name, and different in the first 64 bits for different names.
    HostName(IpAddr),
    /// The log has no client.
    Unknown,
}

impl Client {
    fn of(entry: &Entry) -> Self {
        match (entry.address(), entry.client()) {
            (Some(address), _) => Self::Address(address),
            (None, Some(name)) => Self::HostName(made_of(name)),
            (None, None) => Self::Unknown,
        }
    }

    fn peer(self) -> Option<IpAddr> {
        match self {
            Self::Address(address) | Self::HostName(address) => Some(address),
            Self::Unknown => None,
        }
    }
}

impl<'e> Request<'e> {
    /// Returns the request of `entry`. `fields` has the names of its header fields.
    pub(super) fn new(entry: &'e Entry, fields: &'e FieldMap) -> Self {
        let target = entry.target().map_or(Cow::Borrowed("/"), String::from_utf8_lossy);
        let (authority, path) = split_target(target);
        Self {
            entry,
            fields,
            method: entry.method().map_or(Cow::Borrowed("-"), String::from_utf8_lossy),
            path,
            host: entry.host().map(String::from_utf8_lossy).or(authority),
            client: Client::of(entry),
        }
    }

    /// Returns the facts for the policy.
    pub(super) fn facts(&self) -> RequestAttributes<'_> {
        RequestAttributes {
            method: &self.method,
            path: &self.path,
            host: self.host.as_deref(),
            peer: self.client.peer(),
            headers: self,
        }
    }

    /// Returns the client of the request.
    pub(super) fn client(&self) -> Client {
        self.client
    }

    /// Returns the entry of the request.
    pub(super) fn entry(&self) -> &'e Entry {
        self.entry
    }
}

impl attributes::Headers for Request<'_> {
    fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
        if index > 0 {
            return None;
        }
        if let Some(header) = self.fields.headers().iter().position(|header| header == name) {
            return self.entry.header(header);
        }
        match name {
            "user-agent" => self.entry.user_agent(),
            "referer" => self.entry.referer(),
            "remote-user" => self.entry.user(),
            "host" => self.host.as_deref().map(str::as_bytes),
            _ => None,
        }
    }
}

/// Returns the authority of an absolute target, and the path of any target, without the query.
fn split_target(target: Cow<'_, str>) -> (Option<Cow<'_, str>>, Cow<'_, str>) {
    let absolute = target.find("://").filter(|at| !target[..*at].contains(['/', '?']));
    let Some(scheme) = absolute else {
        return (None, without_query(target));
    };
    let rest = &target[scheme + 3..];
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    (Some(Cow::Owned(authority.to_owned())), without_query(Cow::Owned(path)))
}

fn without_query(target: Cow<'_, str>) -> Cow<'_, str> {
    let Some(end) = target.find(['?', '#']) else {
        return target;
    };
    match target {
        Cow::Borrowed(target) => Cow::Borrowed(&target[..end]),
        Cow::Owned(mut target) => {
            target.truncate(end);
            Cow::Owned(target)
        }
    }
}

fn made_of(name: &[u8]) -> IpAddr {
    let mut hasher = DefaultHasher::new();
    name.to_ascii_lowercase().hash(&mut hasher);
    let network = u128::from(hasher.finish() >> 8 | 0xfd << 56);
    IpAddr::V6(Ipv6Addr::from_bits(network << 64 | 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(target: &str) -> (Option<String>, String) {
        let (authority, path) = split_target(Cow::Borrowed(target));
        (authority.map(Cow::into_owned), path.into_owned())
    }

    #[test]
    fn targets_of_every_form() {
        for (target, authority, path) in [
            ("/a/b?c=d", None, "/a/b"),
            ("/a#b", None, "/a"),
            ("*", None, "*"),
            ("/?next=http://x/", None, "/"),
            ("http://example.com:80/a?b", Some("example.com:80"), "/a"),
            ("http://example.com", Some("example.com"), "/"),
            ("http://example.com?a", Some("example.com"), "/"),
            ("example.com:443", None, "example.com:443"),
        ] {
            assert_eq!(split(target), (authority.map(Into::into), path.into()), "{target}");
        }
    }

    #[test]
    fn host_names_have_an_address_of_their_own() {
        let (one, other) = (made_of(b"a.example.com"), made_of(b"b.example.com"));
        assert_eq!(one, made_of(b"A.example.COM"));
        let network = |address| match address {
            IpAddr::V6(address) => address.to_bits() >> 64,
            IpAddr::V4(_) => panic!("an IPv6 address is made"),
        };
        assert_ne!(network(one), network(other));
        assert_eq!(network(one) >> 56, 0xfd);
    }
}
