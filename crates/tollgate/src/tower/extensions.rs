//! What a server tells the layer through the extensions of requests and responses.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{Extensions, HeaderMap};

use super::meter::is_json;

/// The address of the client's end of the connection, put into a request's extensions by the server.
///
/// It is the only address that is believed unless the policy names trusted proxies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// Finds the client's end of the connection in a request's extensions.
pub(super) type PeerFrom = fn(&Extensions) -> Option<SocketAddr>;

/// The whole body of a request, put into its extensions by a server that has read it, and whose type
/// is JSON: for what a policy wants to know of it ([`Policy::reads_bodies`]). The request's own body
/// is not touched.
///
/// A part of a body does not belong here: what is behind it may say otherwise.
///
/// [`Policy::reads_bodies`]: tollgate_core::Policy::reads_bodies
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonBody(pub Bytes);

impl JsonBody {
    /// Whether the body of a request with these header fields is JSON, and not compressed.
    #[must_use]
    pub fn is_announced_by(headers: &HeaderMap) -> bool {
        is_json(headers)
    }
}

/// Put into a response's extensions by a proxy that answers in place of an upstream that failed.
///
/// It tells such a 502 or 504 from one that the upstream itself sent, so that a policy can refund
/// what the client never had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpstreamFailed;

/// Put into a response's extensions by a proxy that answers in place of the upstream while the request's body has not
/// come to its end.
///
/// The request may have reached the upstream, and its client could cause the failure by sending no more. Such a
/// request is never refunded, whatever the policy says of upstream failures and statuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestIncomplete;
