//! Opens listeners and starts their services.

use std::sync::Arc;
use std::time::Duration;

use tollgate::Limiter;
use tollgate::overrides::OverrideStore;
use tollgate::rollout_percentage::RolloutPercentage;
use tollgate::tenants::TenantStore;
use tollgate_backend::{Backend, OverrideSync, PolicyFile, TenantSync};
use tollgate_server::{
    Access, ConnectionLimits, GrpcListener, HttpListener, HttpOptions, Listener, Port, Readiness,
    RespListener, RespSettings, Served,
};

use super::listeners::{BrowserAccess, Kind, ListenerConfig, Listeners};
use super::{simulate_api, status, subjects};
use crate::failure::Failure;
use crate::metrics::{ListenerMetrics, MetricSources};
use crate::{log, policy_file};

/// The longest time that a node waits at its start for the tenants in the store.
const TENANTS_WAIT: Duration = Duration::from_secs(5);

/// A socket that listens but accepts no connection yet.
#[derive(Debug)]
pub(crate) struct OpenListener {
    name: &'static str,
    address: String,
    kind: Kind,
    access: Access,
    browsers: BrowserAccess,
    listener: Listener,
}

/// Opens the sockets of all `listeners`. Must be called in a tokio runtime.
pub(crate) fn listeners(listeners: &Listeners, port: Port) -> Result<Vec<OpenListener>, Failure> {
    listeners.0.iter().map(|endpoint| open_listener(endpoint, port)).collect()
}

/// Logs the address of each listener.
pub(crate) fn announce(opened: &[OpenListener]) {
    for listener in opened {
        log::info(&format_args!("{} at {}", listener.name, listener.address));
    }
}

fn open_listener(endpoint: &ListenerConfig, port: Port) -> Result<OpenListener, Failure> {
    let opened = Listener::open(&endpoint.listen, port);
    let name = endpoint.kind.name();
    let mut listener = opened.map_err(|error| format!("the {name} listener: {error}"))?;
    let address = listener.local_address()?;
    if let Some(tls) = &endpoint.tls {
        listener = listener.with_tls(tls.clone());
    }
    let (kind, access, browsers) =
        (endpoint.kind, endpoint.access.clone(), endpoint.browsers.clone());
    Ok(OpenListener { name, address, kind, access, browsers, listener })
}

/// The shared objects that the services of the listeners use.
#[derive(Debug)]
pub(crate) struct Services {
    pub(crate) limiter: Arc<Limiter<Backend>>,
    pub(crate) file: Arc<PolicyFile>,
    pub(crate) counted: MetricSources,
    pub(crate) overrides: Arc<dyn OverrideStore>,
    pub(crate) tenants: Arc<dyn TenantStore>,
    /// The limits with subjects that administrators see in clear text.
    pub(crate) revealed: Arc<[Box<str>]>,
}

/// Starts the service of each listener.
pub(crate) fn serve(opened: Vec<OpenListener>, services: &Services) -> Vec<Served> {
    let (served, listeners) = opened.into_iter().map(|endpoint| services.answer(endpoint)).unzip();
    services.counted.set_listeners(listeners);
    served
}

impl Services {
    /// Starts the synchronization of overrides and of tenants, and waits at most [`TENANTS_WAIT`]
    /// for the tenants in the store.
    pub(crate) async fn start(
        limiter: Arc<Limiter<Backend>>,
        file: Arc<PolicyFile>,
        counted: MetricSources,
        revealed: Arc<[Box<str>]>,
    ) -> Self {
        let overrides = Arc::new(OverrideSync::start(Arc::clone(&limiter)));
        let tenants = Arc::new(TenantSync::start(Arc::clone(&limiter)));
        // An error is logged, and the node starts with the default quotas.
        tenants.loaded(TENANTS_WAIT).await;
        Self { limiter, file, counted, overrides, tenants, revealed }
    }

    fn answer(&self, endpoint: OpenListener) -> (Served, ListenerMetrics) {
        let limits = ConnectionLimits::default();
        let OpenListener { name, kind, access, browsers, listener, .. } = endpoint;
        let limiter = Arc::clone(&self.limiter);
        let (served, latency) = match kind {
            Kind::Http => {
                let readiness = self.readiness();
                let hosts = browsers.hosts;
                let options = HttpOptions { access, readiness, hosts, ..HttpOptions::default() };
                let latency = Arc::clone(&options.latency);
                let endpoint = HttpListener::new(limiter, options, limits);
                (Served::new(name, listener, limits, endpoint), Some(latency))
            }
            Kind::Admin => {
                // Operators can also request decisions at the admin listener. These decisions are
                // not counted as traffic.
                let endpoint =
                    HttpListener::new(limiter, self.administration(access, browsers), limits);
                (Served::new(name, listener, limits, endpoint), None)
            }
            Kind::Resp => {
                let settings = RespSettings { access, limits };
                let endpoint = RespListener::new(limiter, settings);
                let latency = endpoint.latency();
                (Served::new(name, listener, limits, endpoint), Some(latency))
            }
            Kind::Grpc => {
                let endpoint = GrpcListener::new(limiter, access, limits);
                let latency = endpoint.latency();
                (Served::new(name, listener, limits, endpoint), Some(latency))
            }
        };
        let slots = served.slots();
        (served, ListenerMetrics { slots, latency })
    }

    /// Returns the check of whether this node can accept traffic.
    fn readiness(&self) -> Readiness {
        let limiter = Arc::clone(&self.limiter);
        Readiness::new(move || limiter.store().check_clock())
    }

    /// Returns the options of the admin listener.
    fn administration(&self, access: Access, browsers: BrowserAccess) -> HttpOptions {
        let (limiter, file) = (|| Arc::clone(&self.limiter), || Arc::clone(&self.file));
        HttpOptions {
            admin: Some(access.clone()),
            access,
            reload: Some(policy_file::reload(file())),
            status: Some(status::of(limiter(), file())),
            history: Some(self.counted.history()),
            metrics: Some(self.counted.metrics(limiter(), file())),
            rollout: rollout(self.limiter.store()),
            simulate: Some(simulate_api::of(limiter(), self.counted.traffic_sample())),
            dashboard: browsers.dashboard,
            hosts: browsers.hosts,
            overrides: Some(Arc::clone(&self.overrides)),
            tenants: Some(Arc::clone(&self.tenants)),
            top: Some(self.counted.top()),
            subjects: Some(subjects::of(limiter())),
            revealed: Arc::clone(&self.revealed),
            readiness: self.readiness(),
            ..HttpOptions::default()
        }
    }
}

/// Returns the percentage of the rollout, which administrators can set. Returns `None` if the store
/// has no rollout.
fn rollout(store: &Backend) -> Option<RolloutPercentage> {
    match store {
        Backend::Rollout(moving) => Some(moving.percentage().clone()),
        _ => None,
    }
}
