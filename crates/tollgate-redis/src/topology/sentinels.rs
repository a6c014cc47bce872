//! Queries the sentinels of a shard, and combines their reports.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep};
use tollgate_link::{LinkLimits, probe_delay};

use super::sentinel::{Report, Sentinel, ServerLocation};
use crate::connection::{Address, Credentials, Endpoint, LinkError, NameResolver, Protocol, Tls};
use crate::members::{Members, SentinelOrigin, SentinelVote};
use crate::random::random;

/// The most sentinels that are queried. Configured sentinels are queried first.
const MAX_SENTINELS: usize = 16;

/// The most servers of a shard.
const MAX_SERVERS: usize = 64;

/// The capacity of the queue of reports that sentinels sent and that are not processed yet.
const MAX_REPORTS: usize = 16;

/// The shortest time between two queries to one sentinel, even if the sentinel reports many events.
const LEAST_PERIOD: Duration = Duration::from_millis(10);

/// The sentinels of a shard, and the name of the shard in their configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentinels {
    /// The endpoints of the sentinels, at least one. If these sentinels name other sentinels, the
    /// other sentinels are queried too, with the access settings of the first of these endpoints.
    pub sentinels: Vec<Endpoint>,
    /// The name of the shard in the sentinels' `sentinel monitor` setting.
    pub service: String,
    /// The settings for access to the servers that the sentinels name.
    pub servers: ServerAccess,
}

/// The settings for access to servers with addresses that are discovered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerAccess {
    /// The user and the password for the servers.
    pub credentials: Credentials,
    /// The TLS settings, if TLS is used. The certificates must be valid for the host names that the
    /// sentinels report.
    pub tls: Option<Tls>,
    /// The number of the Redis database.
    pub database: u32,
    /// The version of the Redis wire protocol.
    pub protocol: Protocol,
}

impl ServerAccess {
    /// Returns the access settings of `endpoint`, for access to other servers.
    fn of(endpoint: &Endpoint) -> Self {
        let tls = match &endpoint.address {
            Address::Tcp { tls, .. } => tls.clone(),
            Address::Unix(_) => None,
        };
        Self {
            credentials: endpoint.credentials.clone(),
            tls,
            database: endpoint.database,
            protocol: endpoint.protocol,
        }
    }

    /// Returns the endpoint of a server or a sentinel at `location`, which a sentinel reported.
    /// `names` resolves the host name.
    fn to(&self, location: &ServerLocation, names: NameResolver) -> Endpoint {
        let ServerLocation { host, port } = location.clone();
        Endpoint {
            address: Address::Tcp { host, port, tls: self.tls.clone() },
            database: self.database,
            protocol: self.protocol,
            credentials: self.credentials.clone(),
            names,
        }
    }
}

/// Queries the sentinels until this value is dropped, and passes their reports to a member list.
#[derive(Debug)]
pub(crate) struct SentinelWatch(AbortHandle);

impl SentinelWatch {
    /// Starts to query the sentinels. Needs a tokio runtime.
    pub(crate) fn start(settings: Sentinels, members: Arc<Members>, limits: LinkLimits) -> Self {
        let (sender, reports) = mpsc::channel(MAX_REPORTS);
        let audience = SentinelReports {
            settings,
            members,
            limits,
            sender,
            listeners: JoinSet::new(),
            last_reports: BTreeMap::new(),
        };
        Self(tokio::spawn(audience.listen(reports)).abort_handle())
    }
}

impl Drop for SentinelWatch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A sentinel's address, and its report.
type Message = (Arc<str>, Report);

/// The reports of all sentinels.
struct SentinelReports {
    settings: Sentinels,
    members: Arc<Members>,
    limits: LinkLimits,
    sender: mpsc::Sender<Message>,
    listeners: JoinSet<()>,
    /// The queried sentinels, each with its last report. The report is `None` before the first
    /// report.
    last_reports: BTreeMap<Arc<str>, LastReport>,
}

/// The reason why a sentinel is trusted, and its last report with its time.
type LastReport = (SentinelOrigin, Option<(Report, Instant)>);

impl SentinelReports {
    async fn listen(mut self, mut reports: mpsc::Receiver<Message>) {
        for sentinel in self.settings.sentinels.clone() {
            self.begin(sentinel, SentinelOrigin::Configured);
        }
        while let Some((sentinel, report)) = reports.recv().await {
            self.record(&sentinel, &report);
        }
    }

    /// Starts to query one more sentinel, if the limit of queried sentinels permits it.
    fn begin(&mut self, sentinel: Endpoint, origin: SentinelOrigin) {
        let address: Arc<str> = sentinel.to_string().into();
        if self.last_reports.len() < MAX_SENTINELS && !self.last_reports.contains_key(&address) {
            self.last_reports.insert(Arc::clone(&address), (origin, None));
            let listener = Listener {
                sentinel,
                address,
                service: self.settings.service.clone(),
                limits: self.limits,
                sender: self.sender.clone(),
                members: Arc::clone(&self.members),
            };
            self.listeners.spawn(listener.run());
        }
    }

    fn record(&mut self, sentinel: &Arc<str>, report: &Report) {
        let at = Instant::now();
        let Some((origin, last)) = self.last_reports.get_mut(sentinel) else { return };
        let origin = *origin;
        *last = Some((report.clone(), at));
        if let Some(first) = self.settings.sentinels.first() {
            let access = ServerAccess::of(first);
            for location in &report.sentinels {
                let sentinel = access.to(location, self.names());
                self.begin(sentinel, SentinelOrigin::Learned);
            }
        }
        self.members.has_servers(self.servers(at));
        let primary = self.server(&report.primary).to_string().into();
        let Report { epoch, certainty, .. } = *report;
        self.members.record_vote(sentinel, SentinelVote { primary, epoch, certainty, origin, at });
    }

    /// Returns the endpoint of a server that a sentinel named.
    fn server(&self, location: &ServerLocation) -> Endpoint {
        self.settings.servers.to(location, self.names())
    }

    /// Returns a resolver for the host name of a server or a sentinel that a sentinel reported. The
    /// resolver uses the same lookup as the first sentinel.
    fn names(&self) -> NameResolver {
        let first = self.settings.sentinels.first();
        first.map(|sentinel| sentinel.names.of_another()).unwrap_or_default()
    }

    /// Returns all servers that sentinels named recently. Primaries come first, so the limit of
    /// servers never excludes a primary.
    fn servers(&self, now: Instant) -> Vec<Endpoint> {
        let reports = || {
            let report = self.last_reports.values().filter_map(|(_, report)| report.as_ref());
            let is_fresh = |at: &Instant| now - *at <= self.limits.report_ttl();
            report.filter(move |(_, at)| is_fresh(at)).map(|(report, _)| report)
        };
        let primaries = reports().map(|report| &report.primary);
        let replicas = reports().flat_map(|report| &report.replicas);
        let mut servers = Vec::new();
        for location in primaries.chain(replicas) {
            let server = self.server(location);
            if servers.len() < MAX_SERVERS && !servers.contains(&server) {
                servers.push(server);
            }
        }
        servers
    }
}

/// A task that queries one sentinel.
struct Listener {
    sentinel: Endpoint,
    address: Arc<str>,
    service: String,
    limits: LinkLimits,
    sender: mpsc::Sender<Message>,
    members: Arc<Members>,
}

impl Listener {
    /// Queries the sentinel forever, and reconnects when necessary.
    async fn run(self) {
        let mut failed: u32 = 0;
        loop {
            let since = Instant::now();
            self.members.set_error(self.listen().await);
            if since.elapsed() >= self.limits.heartbeat {
                failed = 0;
            }
            sleep(probe_delay(failed, random())).await;
            failed = failed.saturating_add(1);
        }
    }

    /// Queries the sentinel on one connection, in each heartbeat interval and after each event.
    /// Returns the error that ends the connection.
    async fn listen(&self) -> LinkError {
        let sentinel = match Sentinel::connect(&self.sentinel, self.limits).await {
            Ok(sentinel) => sentinel,
            Err(error) => return error,
        };
        loop {
            match sentinel.query(&self.service, self.limits.heartbeat_answer).await {
                Ok(report) => {
                    // An error means that the receiver was dropped. In that case, this task is
                    // about to end.
                    let _ = self.sender.send((Arc::clone(&self.address), report)).await;
                }
                Err(error) => return error,
            }
            sleep(LEAST_PERIOD).await;
            tokio::select! {
                biased;
                changed = sentinel.changed() => if let Err(error) = changed { return error },
                () = sleep(self.limits.heartbeat) => {}
            }
        }
    }
}
