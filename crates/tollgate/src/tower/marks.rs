//! What a server tells the layer through the extensions of requests and responses.

use std::net::SocketAddr;

/// The address of the client's end of the connection, put into a request's extensions by the server.
///
/// It is the only address that is believed unless the policy names trusted proxies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// Put into a response's extensions by a proxy that answers in place of an upstream that failed.
///
/// It tells such a 502 or 504 from one that the upstream itself sent, so that a policy can refund
/// what the client never had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpstreamFailed;
