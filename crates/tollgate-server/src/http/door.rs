//! The HTTP/JSON door on its connections.

use std::future::Future;
use std::sync::Arc;

use axum::{Extension, Router};
use tollgate::Limiter;
use tollgate::core::Store;

use super::status::{self, Status};
use super::{HttpOptions, router};
use crate::access::Access;
use crate::connection::{Connection, ConnectionLimits, Door};
use crate::hyper_door::{Holding, HttpVersions, HyperDoor};

/// The HTTP/JSON door: HTTP/1.1 and HTTP/2 on one port.
#[derive(Clone, Debug)]
pub struct HttpDoor {
    router: Router,
    limits: ConnectionLimits,
}

impl HttpDoor {
    /// A door to `limiter`, its connections held to `limits`.
    pub fn new<S: Store + 'static>(
        limiter: Arc<Limiter<S>>,
        options: HttpOptions,
        limits: ConnectionLimits,
    ) -> Self {
        Self { router: router(limiter, options), limits }
    }

    /// The same door, which answers `GET /v1/status` to whom `access` admits.
    #[must_use]
    pub fn with_status(self, status: Status, access: Access) -> Self {
        Self { router: self.router.merge(status::route(status, access)), ..self }
    }
}

impl Door for HttpDoor {
    fn serve(self, connection: Connection) -> impl Future<Output = ()> + Send {
        let shutdown = Extension(connection.shutdown.clone());
        let holding = Holding::new(HttpVersions::Any, self.limits);
        HyperDoor::new(self.router.layer(shutdown), holding).serve(connection)
    }
}
