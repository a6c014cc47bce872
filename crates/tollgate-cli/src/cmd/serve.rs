//! `tollgate serve`: answers other programs whether a request may pass.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tollgate_backend::{KeptOverrides, PolicyFile, Refunds};
use tollgate_policy::Loaded;
use tollgate_server::{Listen, Port};

use super::Failure;
use crate::metrics::Counted;
use crate::serve::doors::{Asked, Doors, Exposure};
use crate::serve::open::{self, Behind};
use crate::serve::reload;
use crate::{limiter, log, policy_file, service_manager, signals, traces};

/// Answer other programs whether a request may pass: HTTP, Envoy's gRPC, the Redis protocol
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// The policy file
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,
    /// HTTP with JSON, and sub-requests of other proxies
    #[arg(long, value_name = "ADDR", help_heading = "Doors")]
    http: Option<Listen>,
    /// Envoy's rate limit service
    #[arg(long, value_name = "ADDR", help_heading = "Doors")]
    grpc: Option<Listen>,
    /// The Redis protocol
    #[arg(long, value_name = "ADDR", help_heading = "Doors")]
    resp: Option<Listen>,
    /// For those who run it: health, readiness, status, metrics
    #[arg(long, value_name = "ADDR", help_heading = "Doors")]
    admin: Option<Listen>,
    /// Let everybody in where other machines reach a door and no token is asked
    #[arg(long)]
    insecure: bool,
    /// Let another process of the same user listen on the same ports, for restarts without a gap
    #[arg(long)]
    reuse_port: bool,
    /// Seconds that requests in flight have to end after SIGTERM
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    drain_timeout: u64,
    #[command(flatten)]
    traces: traces::Flags,
    /// How the lines of the log are written
    #[arg(long, value_name = "FORM", value_enum, default_value_t)]
    log: log::Form,
}

/// Every door gives receipts out.
const REFUNDS: Refunds = Refunds::ByReceipts;

pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    log::start(flags.log);
    let loaded = limiter::load(&flags.policy)?;
    let doors = Doors::new(&loaded.settings.serve, asked(flags))?;
    let exposure = if flags.insecure { Exposure::Allowed } else { Exposure::Refused };
    doors.check(exposure)?;
    let policy = summary(flags, &loaded);
    let settings = loaded.settings.clone();
    let revealed = settings.revealed.clone().into();
    tokio::runtime::Runtime::new()?.block_on(async {
        let terminated = signals::terminated()?;
        let port = if flags.reuse_port { Port::Shared } else { Port::Exclusive };
        let opened = open::listeners(&doors, port)?;
        let traces = traces::start(&flags.traces, settings.traces.as_ref())?;
        let counted = Counted::new(&loaded.policy).with_exports(traces.counter());
        let limiter = limiter::open(loaded, REFUNDS).await?;
        let limiter = limiter.with_observer(counted.observer()).with_tracer(traces.tracer.clone());
        let limiter = Arc::new(limiter);
        let file = PolicyFile::new(&flags.policy, Arc::clone(&limiter), settings, REFUNDS);
        let file = Arc::new(file.with_doors(tollgate_backend::Doors::Open));
        let watch = (reload::watch(doors)?, policy_file::watch(Arc::clone(&file))?);
        for door in &opened {
            log::tell(&format_args!("{} at {}", door.name, door.address));
        }
        log::tell(&policy);
        let overrides = Arc::new(KeptOverrides::start(Arc::clone(&limiter)));
        let behind = Behind { limiter, file, counted, overrides, revealed };
        let served = open::serve(opened, &behind);
        service_manager::ready();
        let ended = async {
            terminated.await;
            service_manager::stopping();
        };
        tollgate_server::serve(served, Duration::from_secs(flags.drain_timeout), ended).await?;
        drop(watch);
        let limiter = &behind.limiter;
        limiter.store().give_back_leases(limiter.now()).await;
        traces.finish().await;
        log::tell(&"every request in flight has ended");
        Ok(())
    })
}

fn asked(flags: &Flags) -> Asked {
    Asked {
        http: flags.http.clone(),
        grpc: flags.grpc.clone(),
        resp: flags.resp.clone(),
        admin: flags.admin.clone(),
    }
}

fn summary(flags: &Flags, loaded: &Loaded) -> String {
    let holds = policy_file::summary(&loaded.policy);
    let store = limiter::store(&loaded.settings.store);
    let (file, version) = (flags.policy.display(), &loaded.version);
    format!("{file}, version {version}: {holds}; {store}")
}
