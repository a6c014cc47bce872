use std::{error::Error as StdError, fmt, str::FromStr};

use http::{Uri, uri::Authority};

/// The server behind the proxy: a host and a port, reached by HTTP/1.1.
///
/// ```
/// let upstream: tollgate_proxy::Upstream = "http://127.0.0.1:9000".parse()?;
/// assert_eq!(upstream.to_string(), "http://127.0.0.1:9000");
/// assert!("https://127.0.0.1:9000".parse::<tollgate_proxy::Upstream>().is_err());
/// # Ok::<(), tollgate_proxy::UpstreamError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    authority: Authority,
}

/// The reason why a URL is not a valid upstream. Each message contains the value and a valid
/// example.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum UpstreamError {
    /// It is not a URL.
    NotAUrl {
        /// The value.
        given: String,
    },
    /// Its scheme is not `http`.
    Scheme {
        /// The value.
        given: String,
    },
    /// It has a path or a query. Requests keep their own.
    PathOrQuery {
        /// The value.
        given: String,
    },
    /// It has user information.
    UserInfo,
}

impl Upstream {
    /// Returns the host with its optional port.
    pub(crate) fn authority(&self) -> &Authority {
        &self.authority
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
        if scheme != "http" {
            return Err(UpstreamError::Scheme { given: given() });
        }
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(UpstreamError::PathOrQuery { given: given() });
        }
        Ok(Self { authority: authority.clone() })
    }
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.authority)
    }
}

impl fmt::Display for UpstreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const RIGHT: &str = "use http://host:port";
        match self {
            Self::NotAUrl { given } => write!(f, "the upstream {given:?} is not a URL; {RIGHT}"),
            Self::Scheme { given } => {
                write!(f, "the upstream {given:?} does not use plain http; {RIGHT}")
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
        for url in ["http://localhost", "http://127.0.0.1:9000/", "http://[::1]:9000"] {
            assert!(url.parse::<Upstream>().is_ok(), "{url}");
        }
        let wrong =
            ["", "localhost:9000", "/x", "https://a", "http://a/x", "http://a?b", "http://"];
        for url in wrong {
            assert!(url.parse::<Upstream>().is_err(), "{url}");
        }
    }

    #[test]
    fn a_password_is_not_repeated() {
        let error = "http://me:secret@a".parse::<Upstream>().expect_err("user info");
        assert_eq!(error, UpstreamError::UserInfo);
        assert!(!error.to_string().contains("secret"));
    }
}
