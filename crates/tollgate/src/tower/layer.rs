//! The layer, which puts a limiter in front of services.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use http::Extensions;

use super::extensions::{Peer, PeerFrom};
use super::service::Service;
use crate::limiter::Limiter;

/// A layer that puts a [`Limiter`] in front of a service.
pub struct Layer<S> {
    limiter: Arc<Limiter<S>>,
    peer_from: PeerFrom,
    with_rules: bool,
}

impl<S> Layer<S> {
    /// Creates a layer that decides by `limiter` and takes the client's address from [`Peer`].
    pub fn new(limiter: impl Into<Arc<Limiter<S>>>) -> Self {
        let peer_from = |extensions: &Extensions| extensions.get::<Peer>().map(|peer| peer.0);
        Self { limiter: limiter.into(), peer_from, with_rules: false }
    }

    /// Takes the client's address from the extension that `peer_from` reads, instead of [`Peer`].
    /// Use this function for servers that have their own type for the address.
    ///
    /// In a limit by address, all requests without an address share one counter.
    /// [`RateLimitLayer`](crate::RateLimitLayer) rejects such requests instead.
    #[must_use]
    pub fn with_peer_from(mut self, peer_from: fn(&Extensions) -> Option<SocketAddr>) -> Self {
        self.peer_from = peer_from;
        self
    }

    /// Puts the names of the rules that matched into the extensions of each admitted request, as
    /// [`MatchedRules`](super::MatchedRules).
    #[must_use]
    pub fn with_matched_rules(mut self) -> Self {
        self.with_rules = true;
        self
    }
}

impl<S, Inner> tower_layer::Layer<Inner> for Layer<S> {
    type Service = Service<Inner, S>;

    fn layer(&self, inner: Inner) -> Self::Service {
        Service::new(inner, Arc::clone(&self.limiter), self.peer_from, self.with_rules)
    }
}

impl<S> Clone for Layer<S> {
    fn clone(&self) -> Self {
        Self { limiter: Arc::clone(&self.limiter), ..*self }
    }
}

impl<S> fmt::Debug for Layer<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layer").finish_non_exhaustive()
    }
}
