//! The HTTP/JSON listener and its connections.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use tollgate::Limiter;
use tollgate::model::Store;

use super::HttpOptions;
use super::app::App;
use super::direct::DirectChecks;
use super::hosts::AdmittedHost;
use super::routes::Routes;
use crate::connection::{Connection, ConnectionHandler, ConnectionLimits};
use crate::http_connection::{HttpConnectionHandler, HttpConnectionLimits, HttpVersions, Peer};

/// The HTTP/JSON listener: HTTP/1.1 and HTTP/2 on one port.
pub struct HttpListener<S> {
    app: Arc<App<S>>,
    limits: ConnectionLimits,
}

impl<S: Store + 'static> HttpListener<S> {
    /// Creates a listener for decisions of `limiter`, with the connection limits `limits`.
    pub fn new(limiter: Arc<Limiter<S>>, options: HttpOptions, limits: ConnectionLimits) -> Self {
        Self { app: App::new(limiter, options), limits }
    }
}

impl<S: Store + 'static> ConnectionHandler for HttpListener<S> {
    fn serve(self, connection: Connection) -> impl Future<Output = ()> + Send {
        let direct = DirectChecks::new(&self.app);
        let certificate = connection.stream.peer_certificate_bytes();
        let certificate = certificate.map(|bytes| self.app.idempotency.fingerprint(bytes));
        let routes = Arc::new(Routes {
            app: self.app,
            peer: Some(Peer(connection.peer)),
            certificate,
            shutdown: Some(connection.shutdown.clone()),
            counters: Some(Arc::clone(connection.slot.counters())),
            admitted_host: AdmittedHost::default(),
        });
        let service = service_fn(move |request: Request<Incoming>| {
            let routes = Arc::clone(&routes);
            // Boxed, because hyper moves the future of a response several times before its first
            // poll.
            Box::pin(async { Ok::<_, Infallible>(routes.answer(request).await) })
        });
        let limits = HttpConnectionLimits::new(HttpVersions::Any, self.limits);
        HttpConnectionHandler::new(service, limits).serve_with(direct, connection)
    }
}

impl<S> Clone for HttpListener<S> {
    fn clone(&self) -> Self {
        Self { app: Arc::clone(&self.app), limits: self.limits }
    }
}

impl<S> fmt::Debug for HttpListener<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpListener").field("limits", &self.limits).finish_non_exhaustive()
    }
}
