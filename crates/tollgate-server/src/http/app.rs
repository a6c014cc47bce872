//! The state that the routes of the HTTP listener share.

use std::sync::Arc;

use axum::Router;
use tokio::sync::Mutex;
use tollgate::Limiter;
use tollgate::model::Store;

use super::audit_log::AuditLog;
use super::idempotency::IdempotencyCache;
use super::options::HttpOptions;
use crate::grpc::json_route;

/// The state that all routes share.
pub(super) struct App<S> {
    pub(super) limiter: Arc<Limiter<S>>,
    pub(super) options: HttpOptions,
    pub(super) idempotency: IdempotencyCache,
    pub(super) audit_log: AuditLog,
    /// A lock that is held while an import of tenants is read and stored, so only one import at a
    /// time is in memory.
    pub(super) importing: Arc<Mutex<()>>,
    /// The route `POST /json`, which serves the gRPC listener's service in JSON.
    pub(super) descriptors: Router,
}

impl<S: Store + 'static> App<S> {
    pub(super) fn new(limiter: Arc<Limiter<S>>, options: HttpOptions) -> Arc<Self> {
        let descriptors = json_route(Arc::clone(&limiter));
        let (idempotency, audit_log) = (IdempotencyCache::default(), AuditLog::default());
        let importing = Arc::default();
        Arc::new(Self { limiter, options, idempotency, audit_log, importing, descriptors })
    }
}
