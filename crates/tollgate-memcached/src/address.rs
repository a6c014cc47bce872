//! The address of a memcached server.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

const DEFAULT_PORT: u16 = 11_211;

/// The address of a memcached server: `HOST`, `HOST:PORT`, `[IPV6]:PORT` or `unix:/PATH`.
///
/// The default port is 11211. Connections are neither encrypted nor authenticated, so the network
/// between this node and the server must be trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A TCP address. The host name is resolved for each new connection.
    Tcp {
        /// The host name or IP address, without brackets.
        host: String,
        /// The TCP port.
        port: u16,
    },
    /// A unix domain socket.
    Unix(PathBuf),
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let wrong = || AddressError(text.chars().take(100).collect());
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return if path.starts_with('/') { Ok(Self::Unix(path.into())) } else { Err(wrong()) };
        }
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => rest.split_once(']').ok_or_else(wrong)?,
            None => text.split_at(text.find(':').unwrap_or(text.len())),
        };
        let port = match port.strip_prefix(':') {
            Some(port) => port.parse().ok().filter(|port| *port != 0).ok_or_else(wrong)?,
            None if port.is_empty() => DEFAULT_PORT,
            None => return Err(wrong()),
        };
        let in_brackets = text.starts_with('[');
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let is_right = if in_brackets {
            host.parse::<std::net::Ipv6Addr>().is_ok()
        } else {
            !host.is_empty() && host.bytes().all(is_host)
        };
        if is_right { Ok(Self::Tcp { host: host.to_owned(), port }) } else { Err(wrong()) }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

/// The error for a text that is not a server address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressError(String);

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is not the address of a memcached server: use HOST:PORT, such as \
             10.0.0.1:11211, or unix:/PATH",
            self.0
        )
    }
}

impl std::error::Error for AddressError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_they_are_read() {
        for (text, shown) in [
            ("10.0.0.1:11212", "10.0.0.1:11212"),
            ("cache-1.internal", "cache-1.internal:11211"),
            ("[::1]:11212", "[::1]:11212"),
            ("[::1]", "[::1]:11211"),
            ("unix:/run/memcached.sock", "unix:/run/memcached.sock"),
            ("unix:///run/memcached.sock", "unix:/run/memcached.sock"),
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), shown, "{text}");
        }
    }

    #[test]
    fn what_names_no_server_is_refused() {
        let wrong =
            ["", ":1", "a:", "a:0", "a:65536", "a:b", "a b", "::1", "[::1", "[a]:1", "unix:x"];
        for text in wrong.into_iter().chain(["redis://h", "[::1]1", "a/b"]) {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains("is not the address of a memcached server"), "{text}: {error}");
        }
    }
}
