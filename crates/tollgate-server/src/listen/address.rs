//! The address of a listener, as text.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use super::ListenError;

/// The address of a listener: `127.0.0.1:8080`, `unix:/run/tollgate.sock`, or `systemd:NAME` for
/// the socket that the service manager opened under that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// A TCP port.
    Tcp(SocketAddr),
    /// A unix domain socket.
    Unix(PathBuf),
    /// A socket that was opened before this process was started.
    Inherited(String),
}

impl Listen {
    /// Returns whether only this machine can reach the address. An inherited socket counts as
    /// reachable from other machines, because its address is unknown to this process.
    #[must_use]
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().to_canonical().is_loopback(),
            Self::Unix(_) => true,
            Self::Inherited(_) => false,
        }
    }
}

impl FromStr for Listen {
    type Err = ListenError;

    fn from_str(text: &str) -> Result<Self, ListenError> {
        if let Some(path) = text.strip_prefix("unix:") {
            // Both spellings are common: `unix:/path` and `unix:///path`.
            let path = path.strip_prefix("//").unwrap_or(path);
            return match path.starts_with('/') {
                true => Ok(Self::Unix(path.into())),
                false => Err(ListenError::Address(text.to_owned())),
            };
        }
        if let Some(name) = text.strip_prefix("systemd:").filter(|name| !name.is_empty()) {
            return Ok(Self::Inherited(name.to_owned()));
        }
        text.parse().map(Self::Tcp).map_err(|_| ListenError::Address(text.to_owned()))
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Inherited(name) => write!(f, "systemd:{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_and_written() {
        for text in ["127.0.0.1:8080", "[::1]:80", "unix:/run/t.sock", "systemd:http"] {
            assert_eq!(text.parse::<Listen>().unwrap().to_string(), text);
        }
        assert_eq!("unix:///a".parse::<Listen>().unwrap(), Listen::Unix("/a".into()));
        for wrong in ["", "8080", "localhost:80", "unix:", "unix:a", "systemd:", "1.2.3.4"] {
            assert!(wrong.parse::<Listen>().is_err(), "{wrong}");
        }
    }
}
