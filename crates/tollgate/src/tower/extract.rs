//! A request as the policy sees it.

use std::net::IpAddr;

use http::header::{HOST, HeaderMap};
use http::request::Parts;
use tollgate_core::{Facts, Headers};

/// The header fields of a request, by reference.
pub(super) struct Fields<'a>(pub(super) &'a HeaderMap);

impl Headers for Fields<'_> {
    fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
        self.0.get_all(name).iter().nth(index).map(|value| value.as_bytes())
    }
}

/// The facts of a request. Its target names the host or, in HTTP/1.1's common form, the header.
pub(super) fn facts<'a>(
    parts: &'a Parts,
    fields: &'a Fields<'a>,
    peer: Option<IpAddr>,
) -> Facts<'a> {
    let host = parts.uri.host().or_else(|| parts.headers.get(HOST)?.to_str().ok());
    Facts { method: parts.method.as_str(), path: parts.uri.path(), host, peer, headers: fields }
}
