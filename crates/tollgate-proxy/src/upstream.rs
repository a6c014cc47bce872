use std::{
    error::Error as StdError,
    fmt,
    net::{IpAddr, SocketAddr},
    str::FromStr,
};

use http::{Uri, uri::Authority};

/// A server behind the proxy: a host and a port, reached by HTTP/1.1, over TLS if its URL is `https`.
///
/// ```
/// let upstream: tollgate_proxy::Upstream = "http://127.0.0.1:9000".parse()?;
/// assert_eq!(upstream.to_string(), "http://127.0.0.1:9000");
/// assert!("ftp://127.0.0.1:9000".parse::<tollgate_proxy::Upstream>().is_err());
/// # Ok::<(), tollgate_proxy::UpstreamError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    authority: Authority,
    scheme: UpstreamScheme,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UpstreamScheme {
    Http,
    Https,
}

/// The reason why a URL is not a valid upstream. Each message contains a valid example, and also
/// the given URL, except in the case of [`UserInfo`](Self::UserInfo).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum UpstreamError {
    /// The text is not a URL.
    NotAUrl {
        /// The text that is not a URL.
        given: String,
    },
    /// The scheme of the URL is neither `http` nor `https`.
    Scheme {
        /// The URL that was given.
        given: String,
    },
    /// The URL has a path or a query. Requests keep their own path and query.
    PathOrQuery {
        /// The URL that was given.
        given: String,
    },
    /// The URL has user information, such as a password. The message does not repeat the URL.
    UserInfo,
}

impl Upstream {
    /// Returns the host of the URL, with the port if the URL has one.
    pub(crate) fn authority(&self) -> &Authority {
        &self.authority
    }

    /// Returns whether the upstream is reached over TLS.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.scheme == UpstreamScheme::Https
    }

    /// Returns the host name or the IP address. An IPv6 address has no brackets.
    pub(crate) fn host(&self) -> &str {
        self.authority.host().trim_start_matches('[').trim_end_matches(']')
    }

    pub(crate) fn port(&self) -> u16 {
        let default = if self.is_https() { 443 } else { 80 };
        self.authority.port_u16().unwrap_or(default)
    }

    /// Returns the address of the upstream, if the host is an IP address.
    pub(crate) fn socket_address(&self) -> Option<SocketAddr> {
        let address: IpAddr = self.host().parse().ok()?;
        Some(SocketAddr::new(address, self.port()))
    }
}

impl FromStr for Upstream {
    type Err = UpstreamError;

    fn from_str(url: &str) -> Result<Self, UpstreamError> {
        let given = || url.to_owned();
        // User information may contain a password, which an error must not repeat.
        if url.contains('@') {
            return Err(UpstreamError::UserInfo);
        }
        let uri: Uri = url.parse().map_err(|_| UpstreamError::NotAUrl { given: given() })?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(UpstreamError::NotAUrl { given: given() });
        };
        let scheme = match scheme {
            "http" => UpstreamScheme::Http,
            "https" => UpstreamScheme::Https,
            _ => return Err(UpstreamError::Scheme { given: given() }),
        };
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(UpstreamError::PathOrQuery { given: given() });
        }
        Ok(Self { authority: authority.clone(), scheme })
    }
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_https() { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.authority)
    }
}

impl fmt::Display for UpstreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const RIGHT: &str = "use http://host:port or https://host:port";
        match self {
            Self::NotAUrl { given } => write!(f, "the upstream {given:?} is not a URL; {RIGHT}"),
            Self::Scheme { given } => {
                write!(f, "the upstream {given:?} uses neither http nor https; {RIGHT}")
            }
            Self::PathOrQuery { given } => write!(
                f,
                "the upstream {given:?} has a path or a query, but requests keep their own; {RIGHT}"
            ),
            Self::UserInfo => write!(f, "the upstream URL has a user name; {RIGHT}"),
        }
    }
}

impl StdError for UpstreamError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_http_authority_is_an_upstream() {
        for url in ["http://localhost", "http://127.0.0.1:9000/", "http://[::1]:9000", "https://a"]
        {
            assert!(url.parse::<Upstream>().is_ok(), "{url}");
        }
        let wrong = ["", "localhost:9000", "/x", "ftp://a", "http://a/x", "http://a?b", "http://"];
        for url in wrong {
            assert!(url.parse::<Upstream>().is_err(), "{url}");
        }
    }

    #[test]
    fn the_port_depends_on_the_scheme_and_addresses_are_not_looked_up() {
        let address = |url: &str| url.parse::<Upstream>().expect(url).socket_address();
        assert_eq!(address("http://[::1]"), "[::1]:80".parse().ok());
        assert_eq!(address("https://127.0.0.1"), "127.0.0.1:443".parse().ok());
        assert_eq!(address("https://127.0.0.1:8443"), "127.0.0.1:8443".parse().ok());
        assert_eq!(address("http://localhost:80"), None);
    }

    #[test]
    fn a_password_is_not_repeated() {
        let error = "http://me:secret@a".parse::<Upstream>().expect_err("user info");
        assert_eq!(error, UpstreamError::UserInfo);
        assert!(!error.to_string().contains("secret"));
    }
}
