//! The listener itself.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tollgate::Limiter;
use tollgate::core::Store;

use super::routes::{Routes, Shared};
use crate::access::Access;
use crate::connection::{Connection, ConnectionLimits, Door};
use crate::hyper_door::{Holding, HttpVersions, HyperDoor};
use tollgate::observe::Histogram;

/// How old a connection grows unless the listener is told otherwise. Envoy opens few and keeps them:
/// without an end a node that was just started would never be asked.
pub const DEFAULT_CONNECTION_AGE: Duration = Duration::from_secs(30 * 60);

/// The listener that Envoy knocks at: its rate limit service over a limiter, with health
/// (`grpc.health.v1`, open to everybody) and reflection.
///
/// Callers show a token as `authorization: Bearer TOKEN`, where one is asked. TLS is the business
/// of the [`Listener`](crate::Listener), whose certificate offers `h2`.
pub struct GrpcListener<S> {
    shared: Arc<Shared<S>>,
    holding: Holding,
}

impl<S: Store + 'static> GrpcListener<S> {
    /// A listener to `limiter` for whom `access` admits.
    #[must_use]
    pub fn new(limiter: Arc<Limiter<S>>, access: Access, limits: ConnectionLimits) -> Self {
        let shared = Arc::new(Shared::new(limiter, access, limits.request));
        let holding = Holding {
            age: Some(DEFAULT_CONNECTION_AGE),
            ..Holding::new(HttpVersions::Http2, limits)
        };
        Self { shared, holding }
    }

    /// How long charges took that came in through this listener, and those of its clones.
    #[must_use]
    pub fn latency(&self) -> Arc<Histogram> {
        Arc::clone(&self.shared.latency)
    }

    /// Sets how old connections grow before their clients are told to open others.
    #[must_use]
    pub fn with_connection_age(mut self, age: Duration) -> Self {
        self.holding.age = Some(age);
        self
    }
}

impl<S: Store + 'static> Door for GrpcListener<S> {
    async fn serve(self, connection: Connection) {
        let routes = Routes::new(self.shared, connection.shutdown.clone());
        HyperDoor::new(routes, self.holding).serve(connection).await;
    }
}

impl<S> Clone for GrpcListener<S> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), holding: self.holding }
    }
}

impl<S> fmt::Debug for GrpcListener<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrpcListener").field("holding", &self.holding).finish_non_exhaustive()
    }
}
