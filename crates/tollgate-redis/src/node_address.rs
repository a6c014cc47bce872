//! The addresses of cluster nodes.

use std::fmt;

use crate::connection::{Address, Endpoint};

/// The longest host name, in bytes.
const MAX_HOST_BYTES: usize = 255;

/// A host name or IP address, and a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeAddress {
    host: Box<str>,
    port: u16,
}

impl NodeAddress {
    /// Creates an address. Returns `None` if `host` is not a name or an IP address, or if `port` is
    /// 0.
    pub(crate) fn new(host: &str, port: u16) -> Option<Self> {
        let is_of_a_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte);
        let is_host = (1..=MAX_HOST_BYTES).contains(&host.len()) && host.bytes().all(is_of_a_name);
        (is_host && port > 0).then(|| Self { host: host.into(), port })
    }

    /// Returns the address of `endpoint`, or `None` for a unix domain socket.
    pub(crate) fn of(endpoint: &Endpoint) -> Option<Self> {
        match &endpoint.address {
            Address::Tcp { host, port, .. } => Self::new(host, *port),
            Address::Unix(_) => None,
        }
    }

    /// Parses `host:port`. If the host is empty or `?`, the address gets the host `source_host`,
    /// the host of the node that sent the text. Returns `None` if the text is not a valid address.
    pub(crate) fn read(text: &str, source_host: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let host = if matches!(host, "" | "?") { source_host } else { host };
        Self::new(host, port.parse().ok()?)
    }

    /// Returns the host name or IP address.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Returns an endpoint for this address. The endpoint has the user, the certificates and the
    /// protocol version of `like`. Without `like`, the endpoint has the defaults.
    pub(crate) fn endpoint(&self, like: Option<&Endpoint>) -> Endpoint {
        let tls = like.and_then(|like| match &like.address {
            Address::Tcp { tls, .. } => tls.clone(),
            Address::Unix(_) => None,
        });
        let address = Address::Tcp { host: self.host.to_string(), port: self.port, tls };
        // A cluster has only database 0.
        Endpoint {
            address,
            database: 0,
            protocol: like.map(|like| like.protocol).unwrap_or_default(),
            credentials: like.map(|like| like.credentials.clone()).unwrap_or_default(),
            names: like.map(|like| like.names.of_another()).unwrap_or_default(),
        }
    }
}

impl fmt::Display for NodeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_node_says_is_an_address_or_nothing() {
        let read = |text| NodeAddress::read(text, "10.0.0.9").map(|address| address.to_string());
        for (text, address) in [
            ("127.0.0.1:6381", Some("127.0.0.1:6381")),
            ("2001:db8::1:6381", Some("[2001:db8::1]:6381")),
            ("node-1.example.org:7000", Some("node-1.example.org:7000")),
            (":6381", Some("10.0.0.9:6381")),
            ("?:6381", Some("10.0.0.9:6381")),
            ("10.0.0.1", None),
            ("10.0.0.1:0", None),
            ("10.0.0.1:65536", None),
            ("a/../b:1", None),
            ("a b:1", None),
            ("", None),
        ] {
            assert_eq!(read(text).as_deref(), address, "{text:?}");
        }
        assert_eq!(NodeAddress::new(&"a".repeat(256), 1), None);
    }

    #[test]
    fn a_node_is_reached_as_the_one_that_is_known() {
        let seed: Endpoint = "rediss://me:secret@seed:7000?protocol=3".parse().unwrap();
        let node = NodeAddress::new("10.0.0.1", 7001).unwrap().endpoint(Some(&seed));
        assert_eq!(node.to_string(), "rediss://10.0.0.1:7001");
        assert_eq!((node.credentials, node.protocol), (seed.credentials, seed.protocol));
    }
}
