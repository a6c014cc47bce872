//! The options of the HTTP listener.

use std::fmt;
use std::sync::Arc;

use tollgate::observe::{Histogram, Top};
use tollgate::overrides::OverrideStore;
use tollgate::rollout_percentage::RolloutPercentage;
use tollgate::tenants::TenantStore;

use super::callbacks::{Metrics, Reload, Simulate, Status, Subjects};
use super::hosts::AllowedHosts;
use super::redaction::Redaction;
use crate::access::Access;
use crate::dashboard::Dashboard;
use crate::history::History;

/// The options of the HTTP listener.
#[derive(Clone, Debug, Default)]
pub struct HttpOptions {
    /// The access control for decisions.
    pub access: Access,
    /// The access control of the routes for administrators, such as the reset of subjects. By
    /// default no one has access to these routes.
    pub admin: Option<Access>,
    /// The document at `GET /v1/status`, for administrators. Absent by default.
    pub status: Option<Status>,
    /// The decisions of the last hour at `GET /v1/history`, for administrators. Absent by default.
    pub history: Option<History>,
    /// The metrics at `GET /metrics`, for administrators. Absent by default.
    pub metrics: Option<Metrics>,
    /// The function that reloads the policy for administrators. Absent by default.
    pub reload: Option<Reload>,
    /// The percentage of the rollout, which administrators set by `PUT /v1/rollout`. Absent by
    /// default.
    pub rollout: Option<RolloutPercentage>,
    /// The store of the overrides that administrators set at `/v1/overrides`. Absent by default.
    /// The store has to put the overrides into the table that the listener's limiter
    /// [reads](tollgate::Limiter::overrides).
    pub overrides: Option<Arc<dyn OverrideStore>>,
    /// The store of the tenants that administrators set at `/v1/tenants`. Absent by default. The
    /// store has to put the tenants into the table that the listener's limiter
    /// [reads](tollgate::Limiter::tenants).
    pub tenants: Option<Arc<dyn TenantStore>>,
    /// The subjects that `GET /v1/top` lists for administrators. Absent by default.
    pub top: Option<Arc<Top>>,
    /// The source of the subjects that `GET /v1/subjects` lists for administrators. By default,
    /// only the subjects of [`top`](Self::top) are listed.
    pub subjects: Option<Subjects>,
    /// The limits whose subjects administrators see in clear text. Empty by default. Credentials
    /// are always hashed.
    pub revealed: Arc<[Box<str>]>,
    /// The function that evaluates policies on access logs for administrators. Absent by default.
    pub simulate: Option<Simulate>,
    /// Whether the listener serves the dashboard. By default it does not.
    pub dashboard: Dashboard,
    /// The host names by which browsers may reach the listener. By default any name is allowed.
    pub hosts: Option<AllowedHosts>,
    /// The check of whether this node can accept traffic.
    pub readiness: Readiness,
    /// The histogram in which the listener records the duration of each charge, from the complete
    /// request to the decision. A request without a decision is not recorded.
    pub latency: Arc<Histogram>,
}

impl HttpOptions {
    /// Returns whether administrators see the subjects of `limit` in clear text or as hashes.
    pub(super) fn redaction_of(&self, limit: &str) -> Redaction {
        let is_revealed = self.revealed.iter().any(|revealed| **revealed == *limit);
        if is_revealed { Redaction::Clear } else { Redaction::Hashed }
    }
}

/// A check of whether a node can accept traffic. An error contains the reason why the node cannot
/// accept traffic.
#[derive(Clone)]
pub struct Readiness(Arc<dyn Fn() -> Result<(), String> + Send + Sync>);

impl Readiness {
    /// Creates a check that calls `check` for each request. `check` must not block, because it runs
    /// within the request. `check` should only read state that is in memory.
    pub fn new(check: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }

    /// Runs the check.
    ///
    /// # Errors
    /// The reason why the node cannot accept traffic.
    pub fn check(&self) -> Result<(), String> {
        (self.0)()
    }
}

impl Default for Readiness {
    /// Returns a check that always reports that the node is ready, for a store in this process.
    fn default() -> Self {
        Self::new(|| Ok(()))
    }
}

impl fmt::Debug for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Readiness").field(&self.check()).finish()
    }
}
