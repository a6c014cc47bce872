//! The URL of a collector.

use std::fmt;
use std::str::FromStr;

use axum::http::Uri;
use axum::http::uri::{PathAndQuery, Scheme};

/// The URL at which a collector accepts traces, such as `http://127.0.0.1:4318/v1/traces`, with or
/// without TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint(Uri);

/// The reason why a text is not a valid [`Endpoint`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndpointError {
    /// The text is not a URL with a host.
    NoUrl,
    /// The scheme is neither `http` nor `https`.
    Scheme,
    /// The URL has a query, or user information.
    TooMuch,
}

impl Endpoint {
    /// Parses the complete URL to which traces are posted. No path is appended to the URL.
    ///
    /// # Errors
    /// [`EndpointError`] if `url` is not a valid URL of a collector.
    pub fn exactly(url: &str) -> Result<Self, EndpointError> {
        let uri: Uri = url.parse().map_err(|_| EndpointError::NoUrl)?;
        let authority = uri.authority().ok_or(EndpointError::NoUrl)?;
        if ![Some(&Scheme::HTTP), Some(&Scheme::HTTPS)].contains(&uri.scheme()) {
            return Err(EndpointError::Scheme);
        }
        if uri.query().is_some() || authority.as_str().contains('@') {
            return Err(EndpointError::TooMuch);
        }
        Ok(Self(uri))
    }

    /// Returns whether the collector is reached over TLS.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.0.scheme() == Some(&Scheme::HTTPS)
    }

    /// Returns the name or address of the host.
    pub(super) fn host(&self) -> &str {
        let host = self.0.host().unwrap_or_default();
        host.trim_start_matches('[').trim_end_matches(']')
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    /// Parses a base URL, such as `http://127.0.0.1:4318`, and appends the path for traces.
    fn from_str(base: &str) -> Result<Self, EndpointError> {
        let Self(base) = Self::exactly(base)?;
        let path = format!("{}/v1/traces", base.path().trim_end_matches('/'));
        let mut parts = base.into_parts();
        parts.path_and_query = PathAndQuery::try_from(path).ok();
        Uri::from_parts(parts).map(Self).map_err(|_| EndpointError::NoUrl)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for EndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoUrl => "expected a URL such as http://127.0.0.1:4318",
            Self::Scheme => "expected the scheme http or https, such as http://127.0.0.1:4318",
            Self::TooMuch => {
                "a collector's URL has only a host, a port and a path: remove everything else"
            }
        })
    }
}

impl std::error::Error for EndpointError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_gets_the_path_of_traces_and_a_whole_url_none() {
        for (base, whole) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("http://collector:4318/", "http://collector:4318/v1/traces"),
            ("http://collector/otlp/", "http://collector/otlp/v1/traces"),
            ("http://[::1]:4318", "http://[::1]:4318/v1/traces"),
            ("https://collector", "https://collector/v1/traces"),
        ] {
            assert_eq!(base.parse::<Endpoint>().unwrap().to_string(), whole);
        }
        let exact = Endpoint::exactly("http://collector:4318/mine").unwrap();
        assert_eq!(exact.to_string(), "http://collector:4318/mine");
    }

    #[test]
    fn a_certificate_is_for_the_host_alone() {
        for (url, host) in
            [("https://[::1]:4318", "::1"), ("https://collector:4318/x", "collector")]
        {
            let endpoint = Endpoint::exactly(url).unwrap();
            assert_eq!((endpoint.is_https(), endpoint.host()), (true, host));
        }
        assert!(!Endpoint::exactly("http://collector").unwrap().is_https());
    }

    #[test]
    fn what_cannot_be_reached_is_refused_with_a_reason() {
        for (text, error) in [
            ("", EndpointError::NoUrl),
            ("collector", EndpointError::Scheme),
            ("/v1/traces", EndpointError::NoUrl),
            ("grpc://collector:4317", EndpointError::Scheme),
            ("http://a:b@collector:4318", EndpointError::TooMuch),
            ("http://collector:4318/?key=1", EndpointError::TooMuch),
        ] {
            assert_eq!(text.parse::<Endpoint>(), Err(error), "{text}");
        }
    }
}
