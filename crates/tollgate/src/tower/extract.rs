//! A request as the policy sees it.

use std::net::IpAddr;

use http::header::{HOST, HeaderMap};
use http::request::Parts;
use http::{Method, Request, Uri};
use tollgate_core::attributes::Field;
use tollgate_core::policy::{Ambiguity, JsonPointer};
use tollgate_core::{CertificateName, Headers, RequestAttributes};

use super::extensions::{ApplicationValues, JsonBody, TlsClient, UnreadBody};
use super::meter::value_at;

/// The header fields of a request, and its body if the server has read it, by reference.
pub(crate) struct Fields<'a> {
    headers: &'a HeaderMap,
    body: Option<&'a JsonBody>,
    unread: Option<Ambiguity>,
    application: Option<&'a ApplicationValues>,
    client: Option<&'a TlsClient>,
}

impl<'a> Fields<'a> {
    pub(crate) fn of<B>(request: &'a Request<B>) -> Self {
        let extensions = request.extensions();
        let unread = extensions.get::<UnreadBody>().map(|unread| unread.0);
        let (body, application, client) = (extensions.get(), extensions.get(), extensions.get());
        Self { headers: request.headers(), body, unread, application, client }
    }

    /// Returns the fields of a request without a body, with the values of the application.
    pub(crate) fn of_parts(parts: &'a Parts, application: &'a ApplicationValues) -> Self {
        let (body, client) = (parts.extensions.get(), parts.extensions.get());
        let application = Some(application);
        Self { headers: &parts.headers, body, unread: None, application, client }
    }
}

impl Headers for Fields<'_> {
    fn in_body(&self, pointer: &JsonPointer) -> Option<String> {
        value_at(&self.body?.0, pointer)
    }

    fn unread(&self) -> Option<Ambiguity> {
        self.unread.or_else(|| self.body.map(|_| Ambiguity::BodyValue))
    }

    fn client_certificate(&self, name: CertificateName) -> Option<&str> {
        self.client?.0.name(name)
    }

    fn application_value(&self, name: &str) -> Option<&str> {
        self.application?.get(name)
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
pub(crate) fn attributes<'a, B>(
    request: &'a Request<B>,
    fields: &'a Fields<'a>,
    peer: Option<IpAddr>,
) -> RequestAttributes<'a> {
    attributes_of(request.method(), request.uri(), fields, peer)
}

/// Returns the attributes of a request, like [`attributes`], from its parts.
pub(crate) fn attributes_of<'a>(
    method: &'a Method,
    target: &'a Uri,
    fields: &'a Fields<'a>,
    peer: Option<IpAddr>,
) -> RequestAttributes<'a> {
    let host = target.host().or_else(|| fields.headers.get(HOST)?.to_str().ok());
    let (path, query) = (target.path(), target.query());
    RequestAttributes { method: method.as_str(), path, query, host, peer, headers: fields }
}
