//! Requests that are rejected before they reach the layer.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use http::StatusCode;

/// A request that the proxy rejected, because its head is malformed or too large. The request was
/// neither passed to the layer nor forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The address and port of the client.
    pub peer: SocketAddr,
    /// The status of the response.
    pub status: StatusCode,
    /// The reason of the rejection, as one sentence.
    pub detail: &'static str,
}

/// A function that is called for every [`Rejected`] request, before its response is sent. It must
/// not block.
#[derive(Clone, Default)]
pub struct OnRejected(Option<Arc<dyn Fn(Rejected) + Send + Sync>>);

impl OnRejected {
    /// Creates an `OnRejected` that calls `function`.
    pub fn new(function: impl Fn(Rejected) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(function)))
    }

    pub(crate) fn call(&self, rejected: Rejected) {
        if let Some(function) = &self.0 {
            function(rejected);
        }
    }
}

impl fmt::Debug for OnRejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnRejected").field(&self.0.is_some()).finish()
    }
}
