//! The metrics for Prometheus.
//!
//! Labels come only from the configuration: names of limits, rules, shards and listeners. No label
//! contains a subject, so traffic does not create series.

mod batchers;
mod certificates;
mod decisions;
mod families;
mod history;
mod memcached;
mod migration;
mod per_store;
mod process;
mod proxy;
mod shedding;
mod store;

use std::sync::{Arc, OnceLock};

use tollgate::model::Policy;
use tollgate::observe::{
    AmbiguousRequests, Completions, Decisions, Degraded, Observer, Reservations, Top,
};
use tollgate::{Clock, Limiter, SystemClock};
use tollgate_backend::{Backend, PolicyFile};
use tollgate_proxy::{ConnectionMetrics, UpstreamMetrics};
use tollgate_server::http::{History, Metrics};
use tollgate_server::otlp::ExportCounter;

pub(crate) use batchers::circuit_breaker;
pub(crate) use process::ListenerMetrics;
use proxy::ProxyConnections;

use crate::access_log::Lines;
use crate::certificates::NamedCertificates;
use crate::traffic_sample::TrafficSample;

/// The sources of a node's metrics: the counters of its decisions, its listeners, its certificates
/// and the other parts that the metrics describe.
#[derive(Clone, Debug)]
pub(crate) struct MetricSources {
    decisions: Arc<Decisions>,
    degraded: Arc<Degraded>,
    ambiguous: Arc<AmbiguousRequests>,
    completions: Arc<Completions>,
    holds: Arc<Reservations>,
    top: Arc<Top>,
    /// The listeners, which are set once all of them are open. Listeners are opened one after the
    /// other, so a client can request the metrics from the first listener before the last one is
    /// open.
    listeners: Arc<OnceLock<Vec<ListenerMetrics>>>,
    /// The counters of spans, if tracing is on.
    exports: Option<ExportCounter>,
    /// The access log, if there is one.
    access_log: Option<Lines>,
    /// The certificates of listeners and upstreams.
    certificates: Vec<NamedCertificates>,
    /// The client connections of the proxy, if this process is a proxy.
    proxy: Option<ProxyConnections>,
    /// The upstreams of the proxy, if this process is a proxy.
    upstreams: Option<UpstreamMetrics>,
    /// The decisions of the last hour.
    history: History,
    /// The sample of the requests of the last hour, for simulations.
    sample: Arc<TrafficSample>,
}

impl MetricSources {
    /// Creates the sources for a node with the policy `policy`. All counters are zero.
    pub(crate) fn new(policy: &Policy) -> Self {
        let (decisions, listeners) = (Arc::new(Decisions::new(policy)), Arc::default());
        let history = history::of(Arc::clone(&decisions), Arc::clone(&listeners));
        Self {
            decisions,
            degraded: Arc::new(Degraded::new(policy)),
            ambiguous: Arc::default(),
            completions: Arc::default(),
            holds: Arc::new(Reservations::new(policy)),
            top: Arc::new(Top::new(policy, SystemClock.now())),
            listeners,
            exports: None,
            access_log: None,
            certificates: Vec::new(),
            proxy: None,
            upstreams: None,
            history,
            sample: Arc::new(TrafficSample::off()),
        }
    }

    /// Keeps a sample of the requests for simulations. `policy` is the policy at the start of the
    /// node.
    pub(crate) fn with_traffic_sample(mut self, policy: &Policy) -> Self {
        self.sample = Arc::new(TrafficSample::new(policy));
        self
    }

    /// Adds the counters of spans.
    pub(crate) fn with_exports(mut self, exports: Option<ExportCounter>) -> Self {
        self.exports = exports;
        self
    }

    /// Adds the count of lines that the access log dropped.
    pub(crate) fn with_access_log(mut self, access_log: Option<Lines>) -> Self {
        self.access_log = access_log;
        self
    }

    /// Adds the certificates of listeners and upstreams.
    pub(crate) fn with_certificates(mut self, certificates: Vec<NamedCertificates>) -> Self {
        self.certificates = certificates;
        self
    }

    /// Adds the client connections of the proxy and their limit.
    pub(crate) fn with_proxy(mut self, metrics: ConnectionMetrics, limit: u32) -> Self {
        self.proxy = Some(ProxyConnections { metrics, limit });
        self
    }

    /// Adds the state of the upstreams of the proxy.
    pub(crate) fn with_upstreams(mut self, upstreams: UpstreamMetrics) -> Self {
        self.upstreams = Some(upstreams);
        self
    }

    /// Returns the observer that passes every decision to the counters, to the list of top subjects
    /// and to the traffic sample.
    pub(crate) fn observer(&self) -> impl Observer + 'static {
        let Self { decisions, degraded, ambiguous, completions, holds, top, sample, .. } =
            self.clone();
        ((decisions, (top, sample)), ((degraded, ambiguous), (completions, holds)))
    }

    /// Returns the subjects with the most charges and refusals.
    pub(crate) fn top(&self) -> Arc<Top> {
        Arc::clone(&self.top)
    }

    /// Returns the sample of the requests of the last hour.
    pub(crate) fn traffic_sample(&self) -> Arc<TrafficSample> {
        Arc::clone(&self.sample)
    }

    /// Returns the decisions of the last hour.
    pub(crate) fn history(&self) -> History {
        self.history.clone()
    }

    /// Sets the listeners to report. Only the first call has an effect.
    pub(crate) fn set_listeners(&self, listeners: Vec<ListenerMetrics>) {
        // Only the first call sets the listeners. An error of a later call is ignored.
        let _ = self.listeners.set(listeners);
    }

    /// Returns all metrics, including the state of the store of `limiter` and of the `file` of its
    /// policy.
    pub(crate) fn metrics(&self, limiter: Arc<Limiter<Backend>>, file: Arc<PolicyFile>) -> Metrics {
        let sources = self.clone();
        Metrics::new(move |page| {
            process::build(page);
            process::policy(page, &limiter.policy(), &file.status());
            decisions::write(page, &sources);
            shedding::write(page, limiter.policy().shedding(), limiter.worker());
            page.family(&families::QUEUED, [([""; 0], limiter.queued() as u64)]);
            if let Some(exports) = &sources.exports {
                process::spans(page, exports.read());
            }
            if let Some(lines) = &sources.access_log {
                page.family(&families::ACCESS_LOG_DROPPED, [([""; 0], lines.dropped())]);
            }
            let listeners = sources.listeners.get().map_or(&[][..], Vec::as_slice);
            process::listeners(page, listeners, sources.proxy.as_ref());
            certificates::write(page, &sources.certificates);
            proxy::write(page, sources.proxy.as_ref());
            proxy::write_upstreams(page, sources.upstreams.as_ref());
            store::write(page, limiter.store(), &limiter.policy());
        })
    }
}

#[cfg(test)]
mod tests;
