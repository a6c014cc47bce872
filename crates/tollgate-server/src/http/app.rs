//! What all routes share.

use std::fmt;
use std::sync::Arc;

use axum::Router;
use tollgate::Limiter;
use tollgate::core::Store;
use tollgate::observe::Top;
use tollgate::overrides::OverrideStore;
use tollgate::store::RolloutPercentage;

use super::audit::Audit;
use super::hosts::AllowedHosts;
use super::idempotency::IdempotencyCache;
use super::metrics::Metrics;
use super::redaction::Redaction;
use super::reload::Reload;
use super::simulate::Simulate;
use super::status::Status;
use super::subjects::Subjects;
use crate::access::Access;
use crate::dashboard::Dashboard;
use crate::grpc::json_route;
use tollgate::observe::Histogram;

/// How the listener is opened.
#[derive(Clone, Debug, Default)]
pub struct HttpOptions {
    /// Who may ask for verdicts.
    pub access: Access,
    /// Who may forget what subjects used, and see the status; nobody by default.
    pub admin: Option<Access>,
    /// What administrators are told at `GET /v1/status`; nothing by default.
    pub status: Option<Status>,
    /// What administrators are told at `GET /metrics`; nothing by default.
    pub metrics: Option<Metrics>,
    /// How administrators have the policy read anew; not at all by default.
    pub reload: Option<Reload>,
    /// What administrators turn by `PUT /v1/rollout`; nothing by default.
    pub rollout: Option<RolloutPercentage>,
    /// Who keeps the overrides that administrators set at `/v1/overrides`; nobody by default. It
    /// has to put them in force where this limiter [finds](Limiter::overrides) them.
    pub overrides: Option<Arc<dyn OverrideStore>>,
    /// The subjects that `GET /v1/top` lists for administrators; none by default.
    pub top: Option<Arc<Top>>,
    /// Who lists subjects to administrators at `GET /v1/subjects`; by default those of
    /// [`top`](Self::top) are all.
    pub subjects: Option<Subjects>,
    /// The limits whose subjects administrators see in clear; none by default. Credentials are
    /// hashed all the same.
    pub revealed: Arc<[Box<str>]>,
    /// How administrators try policies on access logs; not at all by default.
    pub simulate: Option<Simulate>,
    /// Whether the dashboard is served; it is not by default.
    pub dashboard: Dashboard,
    /// By which names browsers may call the listener; by any, by default.
    pub hosts: Option<AllowedHosts>,
    /// Whether this node can take traffic.
    pub readiness: Readiness,
    /// How long charges took, from the head of a request to its answer.
    pub latency: Arc<Histogram>,
}

impl HttpOptions {
    /// Whether subjects of `limit` are shown.
    pub(super) fn redaction_of(&self, limit: &str) -> Redaction {
        let is_revealed = self.revealed.iter().any(|revealed| **revealed == *limit);
        if is_revealed { Redaction::Clear } else { Redaction::Hashed }
    }
}

/// Whether a node can take traffic: an error says what is missing.
#[derive(Clone)]
pub struct Readiness(Arc<dyn Fn() -> Result<(), String> + Send + Sync>);

impl Readiness {
    /// As `check` says whenever it is asked. It is asked on the request's way: it reads what is
    /// known and waits for nothing.
    pub fn new(check: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }

    /// What is missing, if anything is.
    ///
    /// # Errors
    /// What is missing.
    pub fn check(&self) -> Result<(), String> {
        (self.0)()
    }
}

impl Default for Readiness {
    /// Always, as with a store in this process.
    fn default() -> Self {
        Self::new(|| Ok(()))
    }
}

impl fmt::Debug for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Readiness").field(&self.check()).finish()
    }
}

/// What all routes share.
pub(super) struct App<S> {
    pub(super) limiter: Arc<Limiter<S>>,
    pub(super) options: HttpOptions,
    pub(super) idempotency: IdempotencyCache,
    pub(super) audit: Audit,
    /// `POST /json`: the gRPC listener's service, in JSON.
    pub(super) descriptors: Router,
}

impl<S: Store + 'static> App<S> {
    pub(super) fn new(limiter: Arc<Limiter<S>>, options: HttpOptions) -> Arc<Self> {
        let descriptors = json_route(Arc::clone(&limiter));
        let (idempotency, audit) = (IdempotencyCache::default(), Audit::default());
        Arc::new(Self { limiter, options, idempotency, audit, descriptors })
    }
}
