//! Extensions of requests and responses, by which a server and the layer exchange data.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Extensions, HeaderMap};
use tollgate_core::policy::Ambiguity;
use tollgate_core::{CertificateName, Limit};

use super::meter::is_json;

/// The address from which the client's connection comes. The server puts this address into a
/// request's extensions.
///
/// Unless the policy names trusted proxies, the limiter trusts no other address of the client.
///
/// ```
/// use http::Request;
/// use tollgate::tower::Peer;
///
/// let mut request = Request::new(());
/// request.extensions_mut().insert(Peer("192.0.2.7:4711".parse()?));
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// The names in the certificate that the client presented on its TLS connection. The server puts
/// these names into a request's extensions after it has verified the certificate.
///
/// ```
/// use http::Request;
/// use tollgate::tower::{ClientCertificate, TlsClient};
///
/// let names = ClientCertificate { common_name: Some("billing".into()), ..Default::default() };
/// let mut request = Request::new(());
/// request.extensions_mut().insert(TlsClient(names.into()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsClient(pub Arc<ClientCertificate>);

/// The names in a client's certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The whole subject of the certificate, such as `C=DE,O=Example,CN=billing`.
    pub subject: Option<String>,
    /// The common name in the certificate's subject.
    pub common_name: Option<String>,
    /// The first DNS name of the certificate's subject alternative names.
    pub dns: Option<String>,
    /// The first URI of the certificate's subject alternative names.
    pub uri: Option<String>,
    /// The first email address of the certificate's subject alternative names.
    pub email: Option<String>,
}

impl ClientCertificate {
    pub(crate) fn name(&self, name: CertificateName) -> Option<&str> {
        let value = match name {
            CertificateName::Subject => &self.subject,
            CertificateName::CommonName => &self.common_name,
            CertificateName::Dns => &self.dns,
            CertificateName::Uri => &self.uri,
            CertificateName::Email => &self.email,
        };
        value.as_deref()
    }
}

/// A function that finds the client's address in a request's extensions.
pub(crate) type PeerFrom = fn(&Extensions) -> Option<SocketAddr>;

/// The whole JSON body of a request. A server that has read the body puts its bytes into the
/// request's extensions, for policies that need the body ([`Policy::reads_bodies`]). The request's
/// own body does not change.
///
/// Never put only a part of a body into the extensions: the rest of the body may change the meaning
/// of this part.
///
/// [`Policy::reads_bodies`]: tollgate_core::Policy::reads_bodies
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonBody(pub Bytes);

impl JsonBody {
    /// Returns whether `headers` announce that the request's body is JSON and not compressed.
    #[must_use]
    pub fn is_announced_by(headers: &HeaderMap) -> bool {
        is_json(headers)
    }
}

/// The reason why a server that reads bodies did not read the body of a request. The server puts
/// this reason into the request's extensions. A policy can refuse the request for this reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnreadBody(pub Ambiguity);

/// The values of the subjects that the application reads from a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct ApplicationValues(pub(crate) Vec<(Arc<str>, String)>);

impl ApplicationValues {
    /// Returns the value of the subject `name`.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(own, _)| **own == *name).map(|(_, value)| &**value)
    }
}

/// The names of the rules that matched an admitted request, in the order of the policy. A layer
/// [with matched rules](super::Layer::with_matched_rules) puts these names into the request's
/// extensions, for services that treat the requests of some rules differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchedRules(pub Vec<Arc<str>>);

/// Marks a response that a proxy sends in place of the response of an upstream that failed. The
/// proxy puts this mark into the response's extensions.
///
/// The mark distinguishes a 502 or 504 of the proxy from a 502 or 504 that the upstream itself
/// sent. A policy can therefore refund a request after a failure of the upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpstreamFailed;

/// Marks a response that the layer made in place of the service. The layer puts this mark into the
/// response's extensions, for access logs.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The limit that refused the request. `None` if the request was refused for another reason:
    /// load shedding, an ambiguous path, or a store that does not answer.
    pub limit: Option<Arc<Limit>>,
}

/// Marks a response to a request whose whole body had not arrived: a response that a proxy sends in
/// place of the upstream, or a response of an upstream that waited for the rest of the body. The
/// proxy puts this mark into the response's extensions.
///
/// The request may have reached the upstream, and the client could cause the response by not
/// sending the rest of the body. Such a request is never refunded, even if the policy refunds upstream
/// failures or the response's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestIncomplete;
