//! Converts a log entry to a request for the policy.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, Ipv6Addr};

use tollgate::model::{RequestAttributes, attributes};

use super::log::{Entry, FieldMap};

/// A request for the policy, made from an entry of a log.
///
/// - A request that could not be parsed (a TLS hello on a plain port) has the method `-` and the
///   path `/`: only its client matters.
/// - The log's user is the header `remote-user`. `Referer`, `User-Agent` and `Host` are the headers
///   with these names.
/// - A client with a host name in the log gets an address that is made from the name; see
///   [`Client`].
#[derive(Debug)]
pub(crate) struct Request<'e> {
    entry: &'e Entry,
    fields: &'e FieldMap,
    method: Cow<'e, str>,
    path: Cow<'e, str>,
    query: Option<Cow<'e, str>>,
    host: Option<Cow<'e, str>>,
    client: Client,
}

/// The client of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Client {
    /// The log has the address of the client.
    Address(IpAddr),
    /// The log has a host name, which is replaced by a unique local address (fd00::/8). Equal names
    /// get the same address, and different names get addresses with different first 64 bits.
    HostName(IpAddr),
    /// The log has no client.
    Unknown,
}

impl Client {
    fn of(entry: &Entry) -> Self {
        match (entry.address(), entry.client()) {
            (Some(address), _) => Self::Address(address),
            (None, Some(name)) => Self::HostName(pseudo_address(name)),
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
    pub(crate) fn new(entry: &'e Entry, fields: &'e FieldMap) -> Self {
        let target = entry.target().map_or(Cow::Borrowed("/"), text_of);
        let Target { authority, path, query } = Target::of(target);
        Self {
            entry,
            fields,
            method: entry.method().map_or(Cow::Borrowed("-"), text_of),
            path,
            query,
            host: entry.host().map(text_of).or(authority),
            client: Client::of(entry),
        }
    }

    /// Returns the attributes of the request for the policy.
    pub(crate) fn facts(&self) -> RequestAttributes<'_> {
        RequestAttributes {
            method: &self.method,
            path: &self.path,
            query: self.query.as_deref(),
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

/// The parts of a target.
struct Target<'t> {
    authority: Option<Cow<'t, str>>,
    path: Cow<'t, str>,
    query: Option<Cow<'t, str>>,
}

impl<'t> Target<'t> {
    /// Splits a target. Only an absolute target has an authority.
    fn of(target: Cow<'t, str>) -> Self {
        // Most targets are paths.
        let absolute = if target.starts_with('/') { None } else { target.find("://") };
        let absolute = absolute.filter(|at| !target[..*at].contains(['/', '?']));
        let (authority, rest) = match absolute {
            None => (None, target),
            Some(scheme) => {
                let rest = &target[scheme + 3..];
                let (authority, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
                let slash = if rest.starts_with('/') { "" } else { "/" };
                (Some(authority.to_owned().into()), format!("{slash}{rest}").into())
            }
        };
        let (path, query) = match rest {
            Cow::Borrowed(rest) => {
                let (path, query) = split_query(rest);
                (path.into(), query.map(Cow::Borrowed))
            }
            Cow::Owned(rest) => {
                let (path, query) = split_query(&rest);
                (path.to_owned().into(), query.map(|query| query.to_owned().into()))
            }
        };
        Self { authority, path, query }
    }
}

/// Returns the path and the query, without a fragment.
fn split_query(target: &str) -> (&str, Option<&str>) {
    let Some(at) = memchr::memchr2(b'?', b'#', target.as_bytes()) else { return (target, None) };
    let (path, rest) = target.split_at(at);
    let query = rest.strip_prefix('?').and_then(|query| query.split('#').next());
    (path, query)
}

/// Returns `bytes` as text. Replaces bytes that are not UTF-8, which are rare.
fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

fn pseudo_address(name: &[u8]) -> IpAddr {
    let mut hasher = DefaultHasher::new();
    name.to_ascii_lowercase().hash(&mut hasher);
    let network = u128::from(hasher.finish() >> 8 | 0xfd << 56);
    IpAddr::V6(Ipv6Addr::from_bits(network << 64 | 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(target: &str) -> (Option<String>, String, Option<String>) {
        let Target { authority, path, query } = Target::of(Cow::Borrowed(target));
        (authority.map(Cow::into_owned), path.into_owned(), query.map(Cow::into_owned))
    }

    #[test]
    fn targets_of_every_form() {
        for (target, authority, path, query) in [
            ("/a/b?c=d", None, "/a/b", Some("c=d")),
            ("/a/b?c?d#e?f", None, "/a/b", Some("c?d")),
            ("/a#b?c", None, "/a", None),
            ("*", None, "*", None),
            ("/?next=http://x/", None, "/", Some("next=http://x/")),
            ("http://example.com:80/a?b", Some("example.com:80"), "/a", Some("b")),
            ("http://example.com", Some("example.com"), "/", None),
            ("http://example.com?a", Some("example.com"), "/", Some("a")),
            ("example.com:443", None, "example.com:443", None),
        ] {
            let expected = (authority.map(Into::into), path.into(), query.map(Into::into));
            assert_eq!(split(target), expected, "{target}");
        }
    }

    #[test]
    fn host_names_have_an_address_of_their_own() {
        let (one, other) = (pseudo_address(b"a.example.com"), pseudo_address(b"b.example.com"));
        assert_eq!(one, pseudo_address(b"A.example.COM"));
        let network = |address| match address {
            IpAddr::V6(address) => address.to_bits() >> 64,
            IpAddr::V4(_) => panic!("an IPv6 address is made"),
        };
        assert_ne!(network(one), network(other));
        assert_eq!(network(one) >> 56, 0xfd);
    }
}
