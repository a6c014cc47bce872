//! A request as the policy sees it.

use std::net::IpAddr;

use http::Request;
use http::header::{HOST, HeaderMap};
use tollgate_core::attributes::Field;
use tollgate_core::policy::{Ambiguity, JsonPointer};
use tollgate_core::{Headers, RequestAttributes};

use super::extensions::{JsonBody, UnreadBody};
use super::meter::value_at;

/// The header fields of a request, and its body if the server has read it, by reference.
pub(super) struct Fields<'a> {
    headers: &'a HeaderMap,
    body: Option<&'a JsonBody>,
    unread: Option<Ambiguity>,
}

impl<'a> Fields<'a> {
    pub(super) fn of<B>(request: &'a Request<B>) -> Self {
        let body = request.extensions().get();
        let unread = request.extensions().get::<UnreadBody>().map(|unread| unread.0);
        Self { headers: request.headers(), body, unread }
    }
}

impl Headers for Fields<'_> {
    fn in_body(&self, pointer: &JsonPointer) -> Option<String> {
        value_at(&self.body?.0, pointer)
    }

    fn unread(&self) -> Option<Ambiguity> {
        self.unread.or_else(|| self.body.map(|_| Ambiguity::BodyValue))
    }

    fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
        self.headers.get_all(name).iter().nth(index).map(|value| value.as_bytes())
    }

    fn field(&self, name: &str) -> Field<'_> {
        let mut lines = self.headers.get_all(name).iter();
        match (lines.next(), lines.next()) {
            (None, _) => Field::Absent,
            (Some(line), None) => Field::Once(line.as_bytes()),
            (Some(_), Some(_)) => Field::Repeated,
        }
    }
}

/// Returns the attributes of a request. The host is in its target or, in HTTP/1.1's common form, in
/// the `host` header.
pub(super) fn attributes<'a, B>(
    request: &'a Request<B>,
    fields: &'a Fields<'a>,
    peer: Option<IpAddr>,
) -> RequestAttributes<'a> {
    let (method, target) = (request.method().as_str(), request.uri());
    let host = target.host().or_else(|| request.headers().get(HOST)?.to_str().ok());
    RequestAttributes { method, path: target.path(), host, peer, headers: fields }
}
