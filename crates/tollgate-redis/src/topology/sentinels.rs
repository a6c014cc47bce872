//! The sentinels that watch over a shard, and what they say together.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep};

use super::members::Members;
use super::primary_election::{SentinelOrigin, SentinelVote};
use super::sentinel::{Report, Sentinel, ServerLocation};
use crate::circuit_breaker::probe_delay;
use crate::link::{
    Address, Credentials, Endpoint, LinkError, LinkLimits, NameResolver, Protocol, Tls,
};

/// The most sentinels that are listened to, those that the configuration names first.
const MAX_SENTINELS: usize = 16;

/// The most servers that a shard is believed to have.
const MAX_SERVERS: usize = 64;

/// Reports that wait to be heard.
const MAX_REPORTS: usize = 16;

/// The least time between two questions to one sentinel, however much news it has.
const LEAST_PERIOD: Duration = Duration::from_millis(10);

/// Sentinels, and what they watch over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentinels {
    /// Where they are, and as whom they are reached; at least one. Others that they name are
    /// listened to as well, reached in the way of the first.
    pub sentinels: Vec<Endpoint>,
    /// What they call the shard: the name in their `sentinel monitor`.
    pub service: String,
    /// How the servers are reached that they name.
    pub servers: ServerAccess,
}

/// How servers are reached whose addresses are learned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerAccess {
    /// As whom to connect.
    pub credentials: Credentials,
    /// TLS, if it is used. Certificates are for the hosts as they are announced.
    pub tls: Option<Tls>,
    /// The number of the database.
    pub database: u32,
    /// The version of the wire protocol.
    pub protocol: Protocol,
}

impl ServerAccess {
    /// The way to `endpoint`, for servers elsewhere.
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

    fn to(&self, place: &ServerLocation) -> Endpoint {
        let ServerLocation { host, port } = place.clone();
        Endpoint {
            address: Address::Tcp { host, port, tls: self.tls.clone() },
            database: self.database,
            protocol: self.protocol,
            credentials: self.credentials.clone(),
            names: NameResolver::default(),
        }
    }
}

/// Listens to sentinels until it is dropped, and tells a member list what they say.
#[derive(Debug)]
pub(crate) struct SentinelWatch(AbortHandle);

impl SentinelWatch {
    /// Begins to listen. Needs a tokio runtime.
    pub(crate) fn start(settings: Sentinels, members: Arc<Members>, limits: LinkLimits) -> Self {
        let (tell, reports) = mpsc::channel(MAX_REPORTS);
        let audience = SentinelReports {
            settings,
            members,
            limits,
            tell,
            listeners: JoinSet::new(),
            heard: BTreeMap::new(),
        };
        Self(tokio::spawn(audience.listen(reports)).abort_handle())
    }
}

impl Drop for SentinelWatch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A sentinel's address, and what it said.
type Message = (Arc<str>, Report);

/// What is heard of all sentinels.
struct SentinelReports {
    settings: Sentinels,
    members: Arc<Members>,
    limits: LinkLimits,
    tell: mpsc::Sender<Message>,
    listeners: JoinSet<()>,
    /// The sentinels that are listened to, and the last that each of them said, if it did.
    heard: BTreeMap<Arc<str>, LastReport>,
}

/// How a sentinel came to be listened to, and the last that it said.
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

    /// Listens to one more sentinel, if there is room.
    fn begin(&mut self, sentinel: Endpoint, origin: SentinelOrigin) {
        let address: Arc<str> = sentinel.to_string().into();
        if self.heard.len() < MAX_SENTINELS && !self.heard.contains_key(&address) {
            self.heard.insert(Arc::clone(&address), (origin, None));
            let listener = Listener {
                sentinel,
                address,
                service: self.settings.service.clone(),
                limits: self.limits,
                tell: self.tell.clone(),
                members: Arc::clone(&self.members),
            };
            self.listeners.spawn(listener.run());
        }
    }

    fn record(&mut self, sentinel: &Arc<str>, report: &Report) {
        let at = Instant::now();
        let Some((origin, last)) = self.heard.get_mut(sentinel) else { return };
        let origin = *origin;
        *last = Some((report.clone(), at));
        if let Some(first) = self.settings.sentinels.first() {
            let access = ServerAccess::of(first);
            for place in &report.sentinels {
                self.begin(access.to(place), SentinelOrigin::Learned);
            }
        }
        self.members.has_servers(self.servers(at));
        let primary = self.settings.servers.to(&report.primary).to_string().into();
        let Report { epoch, certainty, .. } = *report;
        self.members.record_vote(sentinel, SentinelVote { primary, epoch, certainty, origin, at });
    }

    /// All servers that were named of late; primaries first, so that nobody crowds them out.
    fn servers(&self, now: Instant) -> Vec<Endpoint> {
        let reports = || {
            let said = self.heard.values().filter_map(|(_, said)| said.as_ref());
            let is_fresh = |at: &Instant| now - *at <= self.limits.report_ttl();
            said.filter(move |(_, at)| is_fresh(at)).map(|(report, _)| report)
        };
        let primaries = reports().map(|report| &report.primary);
        let replicas = reports().flat_map(|report| &report.replicas);
        let mut servers = Vec::new();
        for place in primaries.chain(replicas) {
            let server = self.settings.servers.to(place);
            if servers.len() < MAX_SERVERS && !servers.contains(&server) {
                servers.push(server);
            }
        }
        servers
    }
}

/// Listens to one sentinel.
struct Listener {
    sentinel: Endpoint,
    address: Arc<str>,
    service: String,
    limits: LinkLimits,
    tell: mpsc::Sender<Message>,
    members: Arc<Members>,
}

impl Listener {
    /// Listens for ever; connects again where it has to.
    async fn run(self) {
        let random = RandomState::new();
        let mut failed: u32 = 0;
        loop {
            let since = Instant::now();
            self.members.set_error(self.listen().await);
            if since.elapsed() >= self.limits.heartbeat {
                failed = 0;
            }
            sleep(probe_delay(failed, random.hash_one(failed))).await;
            failed = failed.saturating_add(1);
        }
    }

    /// Asks on one connection, in each heartbeat and whenever there is news; why it cannot go on.
    async fn listen(&self) -> LinkError {
        let sentinel = match Sentinel::connect(&self.sentinel, self.limits).await {
            Ok(sentinel) => sentinel,
            Err(error) => return error,
        };
        loop {
            match sentinel.ask(&self.service, self.limits.heartbeat_answer).await {
                Ok(report) => {
                    // An error means that nobody listens any more, and this task is to end.
                    let _ = self.tell.send((Arc::clone(&self.address), report)).await;
                }
                Err(error) => return error,
            }
            sleep(LEAST_PERIOD).await;
            tokio::select! {
                news = sentinel.news() => if let Err(error) = news { return error },
                () = sleep(self.limits.heartbeat) => {}
            }
        }
    }
}
