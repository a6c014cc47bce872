//! `tollgate serve`: decides for other programs whether a request is admitted.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tollgate_backend::{PolicyFile, Refunds};
use tollgate_policy::LoadedPolicy;
use tollgate_server::{Listen, Port};

use crate::failure::Failure;
use crate::metrics::MetricSources;
use crate::serve::listeners::{Exposure, ListenFlags, Listeners};
use crate::serve::open::{self, Services};
use crate::serve::reload;
use crate::{limiter, log, policy_file, service_manager, signals, traces};

/// Decide for other programs whether a request is admitted: HTTP, Envoy's gRPC, the Redis protocol
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// The policy file
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,
    /// HTTP with JSON, and sub-requests of other proxies
    #[arg(long, value_name = "ADDR", help_heading = "Listeners")]
    http: Option<Listen>,
    /// Envoy's rate limit service
    #[arg(long, value_name = "ADDR", help_heading = "Listeners")]
    grpc: Option<Listen>,
    /// The Redis protocol
    #[arg(long, value_name = "ADDR", help_heading = "Listeners")]
    resp: Option<Listen>,
    /// The admin listener, for operators: health, readiness, status, metrics
    #[arg(long, value_name = "ADDR", help_heading = "Listeners")]
    admin: Option<Listen>,
    /// Accept clients without a token at listeners that other machines can reach
    #[arg(long)]
    insecure: bool,
    /// Let another process of the same user listen on the same ports, for restarts without downtime
    #[arg(long)]
    reuse_port: bool,
    /// Seconds that requests in flight have to finish after SIGTERM
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    drain_timeout: u64,
    #[command(flatten)]
    traces: traces::Flags,
    /// The format of log lines
    #[arg(long, value_name = "FORM", value_enum, default_value_t)]
    log: log::Form,
}

/// The way in which charges are refunded: callers refund them with receipts, which every listener
/// issues.
const REFUNDS: Refunds = Refunds::ByReceipts;

pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    log::start(flags.log);
    let loaded = limiter::load(&flags.policy)?;
    let listeners = Listeners::new(&loaded.settings.serve, flags_given(flags))?;
    let exposure = if flags.insecure { Exposure::Allowed } else { Exposure::Refused };
    listeners.check(exposure)?;
    let policy = summary(flags, &loaded);
    let settings = loaded.settings.clone();
    let revealed = settings.revealed.clone().into();
    tokio::runtime::Runtime::new()?.block_on(async {
        let terminated = signals::terminated()?;
        let port = if flags.reuse_port { Port::Shared } else { Port::Exclusive };
        let opened = open::listeners(&listeners, port)?;
        let traces = traces::start(&flags.traces, settings.traces.as_ref())?;
        let certificates = listeners.certificates();
        let mut counted = MetricSources::new(&loaded.policy)
            .with_exports(traces.counter())
            .with_certificates(certificates.clone());
        if listeners.samples_traffic(&settings.serve) {
            counted = counted.with_traffic_sample(&loaded.policy);
        }
        let limiter = limiter::open(loaded, REFUNDS).await?;
        let limiter = limiter.with_observer(counted.observer()).with_tracer(traces.tracer.clone());
        let limiter = Arc::new(limiter);
        let file = PolicyFile::new(&flags.policy, Arc::clone(&limiter), settings, REFUNDS);
        let file = Arc::new(file.with_listener_state(tollgate_backend::ListenerState::Open));
        let mut watch =
            (reload::watch(listeners, certificates)?, policy_file::watch(Arc::clone(&file))?);
        watch.1.spawn(counted.history().keep());
        open::announce(&opened);
        log::info(&policy);
        let services = Services::start(limiter, file, counted, revealed).await;
        let served = open::serve(opened, &services);
        service_manager::ready();
        let ended = async {
            terminated.await;
            service_manager::stopping();
        };
        let drain_timeout = Duration::from_secs(flags.drain_timeout);
        let drained = tollgate_server::serve(served, drain_timeout, ended).await;
        drop(watch);
        limiter::finish(&services.limiter).await;
        traces.finish().await;
        drained?;
        log::info(&"every request in flight has ended");
        Ok(())
    })
}

fn flags_given(flags: &Flags) -> ListenFlags {
    ListenFlags {
        http: flags.http.clone(),
        grpc: flags.grpc.clone(),
        resp: flags.resp.clone(),
        admin: flags.admin.clone(),
    }
}

fn summary(flags: &Flags, loaded: &LoadedPolicy) -> String {
    let holds = policy_file::summary(&loaded.policy);
    let store = limiter::store(&loaded.settings.store);
    let (file, version) = (flags.policy.display(), &loaded.version);
    format!("{file}, version {version}: {holds}; {store}")
}
