//! A request as the policy sees it.

use std::net::IpAddr;

use http::header::{HOST, HeaderMap};
use http::request::Parts;
use tollgate_core::policy::JsonPointer;
use tollgate_core::{Facts, Headers};

use super::marks::JsonBody;
use super::meter::value_at;

/// The header fields of a request, and its body if somebody has read it, by reference.
pub(super) struct Fields<'a> {
    headers: &'a HeaderMap,
    body: Option<&'a JsonBody>,
}

impl<'a> Fields<'a> {
    pub(super) fn of(parts: &'a Parts) -> Self {
        Self { headers: &parts.headers, body: parts.extensions.get() }
    }
}

impl Headers for Fields<'_> {
    fn in_body(&self, pointer: &JsonPointer) -> Option<String> {
        value_at(&self.body?.0, pointer)
    }

    fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
        self.headers.get_all(name).iter().nth(index).map(|value| value.as_bytes())
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
