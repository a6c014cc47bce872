//! The upgrade of a connection to another protocol, such as WebSocket.
//!
//! `hyper` detaches the connection after a 101 response, but does not check what the response
//! accepts. This module checks that a request asks for exactly one permitted protocol, and that the
//! response accepts the same protocol. Otherwise the client and the upstream could use different
//! protocols on one connection, and the upstream could read requests that were never limited.

use http::{HeaderMap, HeaderValue, Request, Version, header};

use crate::hop;

/// The name of the protocol to which a request asks to upgrade its connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Upgrade(HeaderValue);

impl Upgrade {
    /// Returns the protocol to which `request` asks to upgrade, if `request` names exactly one
    /// protocol and `allowed` contains this protocol. Any other upgrade is ignored, which HTTP
    /// permits.
    pub(crate) fn requested<B>(request: &Request<B>, allowed: &[String]) -> Option<Self> {
        if request.version() != Version::HTTP_11 {
            return None;
        }
        let headers = request.headers();
        let protocol = only_protocol(headers)?;
        let known = allowed
            .iter()
            .any(|allowed| protocol.as_bytes().eq_ignore_ascii_case(allowed.as_bytes()));
        (known && hop::nominates(headers, "upgrade")).then(|| Self(protocol.clone()))
    }

    /// Returns whether a 101 response with these `headers` accepts this protocol.
    pub(crate) fn is_accepted(&self, headers: &HeaderMap) -> bool {
        only_protocol(headers)
            .is_some_and(|protocol| protocol.as_bytes().eq_ignore_ascii_case(self.0.as_bytes()))
    }

    /// Adds the header fields with which a request asks for this protocol, or with which a response
    /// accepts it.
    pub(crate) fn write(&self, headers: &mut HeaderMap) {
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, self.0.clone());
    }
}

fn only_protocol(headers: &HeaderMap) -> Option<&HeaderValue> {
    let mut protocols = headers.get_all(header::UPGRADE).iter();
    let first = protocols.next()?;
    protocols.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requested(version: Version, lines: &[(&str, &str)]) -> Option<Upgrade> {
        let mut request = Request::builder().version(version);
        for (name, value) in lines {
            request = request.header(*name, *value);
        }
        Upgrade::requested(&request.body(()).expect("a request"), &["websocket".to_owned()])
    }

    #[test]
    fn only_one_allowed_and_nominated_protocol_is_an_upgrade() {
        let wish = [("connection", "keep-alive, Upgrade"), ("upgrade", "WebSocket")];
        assert!(requested(Version::HTTP_11, &wish).is_some());
        assert!(requested(Version::HTTP_10, &wish).is_none());
        assert!(requested(Version::HTTP_11, &wish[1..]).is_none());
        for protocol in ["h2c", "websocket, h2c", "TLS/1.0"] {
            let wish = [("connection", "upgrade"), ("upgrade", protocol)];
            assert!(requested(Version::HTTP_11, &wish).is_none(), "{protocol}");
        }
    }
}
