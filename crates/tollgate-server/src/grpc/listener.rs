//! The gRPC listener.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tollgate::Limiter;
use tollgate::model::Store;

use super::routes::{RemoteCaller, Routes, Shared};
use crate::access::Access;
use crate::connection::{Connection, ConnectionHandler, ConnectionLimits};
use crate::http_connection::{HttpConnectionHandler, HttpConnectionLimits, HttpVersions};
use tollgate::observe::Histogram;

/// The default age after which a connection is closed. Envoy opens few connections and keeps them,
/// so without a maximum age, a node that was just started would not receive any calls.
pub const DEFAULT_CONNECTION_AGE: Duration = Duration::from_secs(30 * 60);

/// The listener for Envoy: the rate limit service over a limiter, with health (`grpc.health.v1`)
/// and reflection.
///
/// If the listener requires a token, callers send it as `authorization: Bearer TOKEN` with every
/// call except `Health/Check`. For TLS, the [`Listener`](crate::Listener) needs a certificate that
/// offers `h2`.
pub struct GrpcListener<S> {
    shared: Arc<Shared<S>>,
    limits: HttpConnectionLimits,
}

impl<S: Store + 'static> GrpcListener<S> {
    /// Creates a listener that serves decisions of `limiter` to the callers that `access` admits.
    #[must_use]
    pub fn new(limiter: Arc<Limiter<S>>, access: Access, limits: ConnectionLimits) -> Self {
        let shared = Arc::new(Shared::new(limiter, access, limits.request));
        let limits = HttpConnectionLimits {
            max_age: Some(DEFAULT_CONNECTION_AGE),
            ..HttpConnectionLimits::new(HttpVersions::Http2, limits)
        };
        Self { shared, limits }
    }

    /// Returns the durations of the charges that came through this listener and its clones.
    #[must_use]
    pub fn latency(&self) -> Arc<Histogram> {
        Arc::clone(&self.shared.latency)
    }

    /// Sets the age after which clients are asked (by `GOAWAY`) to open a new connection.
    #[must_use]
    pub fn with_connection_age(mut self, age: Duration) -> Self {
        self.limits.max_age = Some(age);
        self
    }
}

impl<S: Store + 'static> ConnectionHandler for GrpcListener<S> {
    async fn serve(self, connection: Connection) {
        let counters = Arc::clone(connection.slot.counters());
        let caller = RemoteCaller { peer: connection.peer, counters };
        let routes = Routes::new(self.shared, caller, connection.shutdown.clone());
        HttpConnectionHandler::new(routes, self.limits).serve(connection).await;
    }
}

impl<S> Clone for GrpcListener<S> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), limits: self.limits }
    }
}

impl<S> fmt::Debug for GrpcListener<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrpcListener").field("limits", &self.limits).finish_non_exhaustive()
    }
}
