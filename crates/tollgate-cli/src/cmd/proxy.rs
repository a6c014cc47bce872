//! `tollgate proxy`: a reverse proxy that limits requests to a service.

mod tls;

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tokio::net::{TcpListener, TcpSocket};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tollgate::Limiter;
use tollgate::model::Policy;
use tollgate::model::policy::MatchMode;
use tollgate::tower;
use tollgate_backend::{Backend, ListenerState, PolicyFile, Refunds};
use tollgate_policy::LoadedPolicy;
use tollgate_proxy::{
    JsonBodyBuffering, OnRejected, Rejected, Route, Settings, Upstream, Upstreams,
};
use tollgate_server::{Listen, Port, Served};

use crate::access_log::{AccessLog, AccessLogLayer, Lines};
use crate::certificates::NamedCertificates;
use crate::failure::Failure;
use crate::metrics::MetricSources;
use crate::serve::listeners::{Kind, ListenerConfig, Listeners};
use crate::serve::open::{self, Services};
use crate::serve::reload;
use crate::{access_log, limiter, log, policy_file, signals, traces};

/// Run a reverse proxy that limits the requests to a service
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// The service, as http://HOST:PORT or https://HOST:PORT; several share the requests
    #[arg(long, value_name = "URL", required = true)]
    upstream: Vec<Upstream>,
    /// A service for the paths below a prefix, as /PREFIX=URL or HOST/PREFIX=URL, or for the
    /// requests that a rule of the policy matches, as rule:NAME=URL; several share the requests
    #[arg(long, value_name = "PREFIX=URL")]
    route: Vec<Route>,
    /// The policy file
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,
    /// The address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Let another process of the same user listen on the same ports, for restarts without downtime
    #[arg(long)]
    reuse_port: bool,
    /// Open the admin listener here: health, readiness, status, metrics
    #[arg(long, value_name = "ADDR")]
    admin: Option<Listen>,
    /// Seconds to wait for a connection to the service; then 504
    #[arg(long, value_name = "SECONDS", default_value_t = 2, help_heading = "Timeouts")]
    connect_timeout: u64,
    /// Seconds from the end of a request to the head of the service's response; then 504
    #[arg(long, value_name = "SECONDS", default_value_t = 30, help_heading = "Timeouts")]
    response_timeout: u64,
    /// Seconds that requests in flight have to finish after SIGTERM
    #[arg(long, value_name = "SECONDS", default_value_t = 30, help_heading = "Timeouts")]
    drain_timeout: u64,
    /// The largest request body in bytes; above it, 413
    #[arg(long, value_name = "BYTES", default_value_t = 10 << 20, help_heading = "Resource limits")]
    max_body: u64,
    /// The largest request head in bytes; above it, 431
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 10, help_heading = "Resource limits")]
    max_head: usize,
    /// The most client connections at once; beyond it, idle ones are closed to make room
    #[arg(long, value_name = "N", default_value_t = 10_000, help_heading = "Resource limits")]
    max_connections: u32,
    /// The most client connections at once from one address, or one /64 of IPv6; 0 for no limit
    #[arg(long, value_name = "N", default_value_t = 256, help_heading = "Resource limits")]
    max_connections_per_address: u32,
    #[command(flatten)]
    tls: tls::Flags,
    #[command(flatten)]
    access_log: access_log::Flags,
    #[command(flatten)]
    traces: traces::Flags,
    /// The format of log lines
    #[arg(long, value_name = "FORM", value_enum, default_value_t)]
    log: log::Form,
}

/// The way in which charges are refunded: the proxy refunds them when it sees the responses, and
/// issues no receipts.
const REFUNDS: Refunds = Refunds::ByResponses;

pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    log::start(flags.log);
    let loaded = limiter::load(&flags.policy)?;
    let settings = settings(flags, &loaded)?;
    let admin = admin(flags, &loaded)?;
    tokio::runtime::Runtime::new()?.block_on(serve(flags, loaded, settings, admin))
}

/// Opens the listeners, and serves clients until the process is asked to shut down and the last
/// request in flight has ended.
async fn serve(
    flags: &Flags,
    loaded: LoadedPolicy,
    mut settings: Settings,
    admin: Listeners,
) -> Result<(), Failure> {
    let terminated = signals::terminated()?;
    let port = if flags.reuse_port { Port::Shared } else { Port::Exclusive };
    let listener = listen(flags.listen, port)
        .map_err(|error| format!("cannot listen on {}: {error}", flags.listen))?;
    let opened = open::listeners(&admin, port)?;
    let file_settings = loaded.settings.clone();
    let traces = traces::start(&flags.traces, file_settings.traces.as_ref())?;
    let access_log = access_log::open(&flags.access_log)?;
    let lines = access_log.as_ref().map(AccessLog::lines);
    if let Some(lines) = lines.clone() {
        settings.on_rejected = OnRejected::new(move |Rejected { peer, status, .. }| {
            lines.add_rejected(peer.ip(), status);
        });
    }
    let certificates = certificates(&admin, &settings);
    let mut counted = MetricSources::new(&loaded.policy)
        .with_access_log(lines.clone())
        .with_exports(traces.counter())
        .with_certificates(certificates.clone())
        .with_proxy(settings.connection_metrics.clone(), settings.limits.connections)
        .with_upstreams(settings.upstream_metrics.clone());
    if admin.samples_traffic(&file_settings.serve) {
        counted = counted.with_traffic_sample(&loaded.policy);
    }
    let policy = summary(flags, &settings.upstreams, &loaded);
    let limiter = limiter::open(loaded, REFUNDS).await?;
    let limiter = limiter.with_observer(counted.observer()).with_tracer(traces.tracer.clone());
    let limiter = Arc::new(limiter);
    let revealed = file_settings.revealed.clone().into();
    let file = PolicyFile::new(&flags.policy, Arc::clone(&limiter), file_settings, REFUNDS);
    let file = Arc::new(adapting(file, flags, &settings));
    let mut watch = (reload::watch(admin, certificates)?, policy_file::watch(Arc::clone(&file))?);
    watch.1.spawn(Arc::clone(&limiter).watch_load());
    watch.1.spawn(counted.history().keep());
    if let Some(lines) = lines.clone() {
        watch.1.spawn(reopen_on_hangup(lines, signal(SignalKind::hangup())?));
    }
    open::announce(&opened);
    let scheme = if settings.tls.is_some() { "https" } else { "http" };
    log::info(&format_args!("listening on {scheme}://{}, {policy}", listener.local_addr()?));
    let services = Services::start(limiter, file, counted, revealed).await;
    let admin = open::serve(opened, &services);
    let ended = forward(listener, settings, &services.limiter, lines, admin, terminated).await;
    drop(watch);
    if let Some(log) = access_log {
        log.close();
    }
    limiter::finish(&services.limiter).await;
    traces.finish().await;
    ended?;
    log::info(&"every request in flight has ended");
    Ok(())
}

/// Returns all certificates of the process, which are reloaded when their files change.
fn certificates(admin: &Listeners, settings: &Settings) -> Vec<NamedCertificates> {
    let mut certificates = admin.certificates();
    let own = settings.tls.clone().map(|tls| NamedCertificates::of_listener("proxy", tls));
    certificates.extend(own);
    certificates.extend(settings.upstream_tls.clone().map(NamedCertificates::of_upstream));
    certificates
}

/// Returns `file` with a callback that adapts the proxy to each new policy: the trusted proxies, the
/// header fields that the policy reads, and whether bodies are buffered. The callback warns if the
/// policy no longer has a rule for which a flag sets a route.
fn adapting(file: PolicyFile, flags: &Flags, settings: &Settings) -> PolicyFile {
    let trusted = settings.trusted_proxies.clone();
    let request_fields = settings.request_fields.clone();
    let json_bodies = settings.json_bodies.clone();
    let routed: Vec<String> = settings.upstreams.rules().map(str::to_owned).collect();
    let file = file.with_on_reload(move |policy| {
        trusted.set(policy.forwarding().trusted.clone());
        request_fields.set(policy.request_fields());
        read_bodies_for(policy, &json_bodies);
        for missing in routed.iter().filter_map(|rule| no_rule(rule, policy)) {
            log::warn(&format_args!("{missing}; its requests go to the other upstreams"));
        }
    });
    file.with_listener_state(match flags.admin {
        Some(_) => ListenerState::Administration,
        None => ListenerState::Ignored,
    })
}

/// Forwards the requests of clients until `terminated` resolves and the last request in flight has
/// ended. Until then, `admin` is served too, because the admin listener reports the status.
async fn forward(
    listener: TcpListener,
    settings: Settings,
    limiter: &Arc<Limiter<Backend>>,
    lines: Option<Lines>,
    admin: Vec<Served>,
    terminated: impl Future<Output = ()>,
) -> Result<(), Failure> {
    let layer = tower::Layer::new(Arc::clone(limiter));
    let has_routed_rules = settings.upstreams.rules().next().is_some();
    let layer = if has_routed_rules { layer.with_matched_rules() } else { layer };
    let proxy = async {
        match lines {
            Some(lines) => {
                let layer = AccessLogLayer { inner: layer, lines, limiter: Arc::clone(limiter) };
                tollgate_proxy::run(listener, settings, layer, terminated).await
            }
            None => tollgate_proxy::run(listener, settings, layer, terminated).await,
        }
    };
    tokio::select! {
        ended = proxy => ended?,
        ended = tollgate_server::serve(admin, Duration::ZERO, pending()) => ended?,
    }
    Ok(())
}

/// Opens the file of the access log again after each SIGHUP.
async fn reopen_on_hangup(lines: Lines, mut hangup: Signal) {
    while hangup.recv().await.is_some() {
        lines.reopen();
    }
}

/// Opens the socket for clients. Must be called in a tokio runtime.
fn listen(address: SocketAddr, port: Port) -> io::Result<TcpListener> {
    /// The most connections that wait until this process accepts them.
    const BACKLOG: u32 = 1_024;
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(port == Port::Shared)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Opens the admin listener if it is configured, with the tokens and the certificate from the
/// policy file.
fn admin(flags: &Flags, loaded: &LoadedPolicy) -> Result<Listeners, Failure> {
    let Some(listen) = flags.admin.clone() else { return Ok(Listeners(Vec::new())) };
    let endpoint = ListenerConfig::new(Kind::Admin, listen, loaded.settings.serve.admin.as_ref())?;
    let endpoint = endpoint.with_browsers(&loaded.settings.serve.dashboard, &[]);
    endpoint.check()?;
    Ok(Listeners(vec![endpoint]))
}

fn settings(flags: &Flags, loaded: &LoadedPolicy) -> Result<Settings, Failure> {
    let upstreams = Upstreams::new(flags.upstream.clone(), flags.route.clone());
    let upstreams = upstreams.map_err(|error| error.to_string())?;
    if let Some(missing) = upstreams.rules().find_map(|rule| no_rule(rule, &loaded.policy)) {
        return Err(Failure::from(missing));
    }
    let mut settings = Settings::with_upstreams(upstreams);
    settings.upstream_tls = flags.tls.client(settings.upstreams.use_tls())?;
    settings.tls = flags.tls.server()?;
    settings.trusted_proxies = loaded.policy.forwarding().trusted.clone().into();
    settings.request_fields.set(loaded.policy.request_fields());
    read_bodies_for(&loaded.policy, &settings.json_bodies);
    settings.timeouts.connect = Duration::from_secs(flags.connect_timeout);
    settings.timeouts.response_head = Duration::from_secs(flags.response_timeout);
    settings.timeouts.drain = Duration::from_secs(flags.drain_timeout);
    settings.limits.request_body_bytes = flags.max_body;
    settings.limits.header_bytes = flags.max_head;
    settings.limits.connections = flags.max_connections;
    settings.limits.connections_per_address = flags.max_connections_per_address;
    Ok(settings)
}

/// Returns a message if the policy has no rule with the name `rule`, for which a flag sets a route.
fn no_rule(rule: &str, policy: &Policy) -> Option<String> {
    let names = || policy.rules().iter().map(|one| &*one.name);
    if names().any(|name| name == rule) {
        return None;
    }
    let hint = match tollgate_policy::suggest(rule, names()) {
        Some(near) => format!("did you mean {near:?}?"),
        None => format!("its rules are {}", names().collect::<Vec<_>>().join(", ")),
    };
    Some(format!("--route rule:{rule}: the policy has no rule {rule:?}; {hint}"))
}

/// Makes the proxy read bodies if the policy uses values from them.
fn read_bodies_for(policy: &Policy, bodies: &JsonBodyBuffering) {
    if policy.reads_bodies() { bodies.enable() } else { bodies.disable() }
}

fn summary(flags: &Flags, upstreams: &Upstreams, loaded: &LoadedPolicy) -> String {
    let holds = policy_file::summary(&loaded.policy);
    let order = match loaded.policy.match_mode() {
        MatchMode::FirstMatch => "the first match decides",
        MatchMode::AllMatches => "all matches decide",
    };
    let policy = flags.policy.display();
    let store = limiter::store(&loaded.settings.store);
    format!("forwarding to {upstreams}; {policy}: {holds}, {order}; {store}")
}
