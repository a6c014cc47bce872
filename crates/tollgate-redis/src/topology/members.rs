//! The servers of one shard, and which of them may be charged.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::data_loss::DataLossMonitor;
use super::primary_election::{PrimaryElection, SentinelVote};
use crate::link::{Endpoint, LinkError, LinkLimits, Replication, Role};

/// What all connections to a shard know of its servers together.
///
/// Whatever one of them hears of a promotion, at once none of them charges the old primary.
#[derive(Debug)]
pub(crate) struct Members {
    election: Mutex<PrimaryElection>,
    view: watch::Sender<MembersView>,
    /// Changes when every server is to be asked at once who it is.
    inquiries: watch::Sender<u64>,
    losses: DataLossMonitor,
    /// Why no server is known, where none is.
    trouble: Mutex<Option<LinkError>>,
}

/// What is known of a shard's servers.
#[derive(Clone, Debug, Default)]
pub(crate) struct MembersView {
    /// All of them.
    pub(crate) servers: Arc<[Endpoint]>,
    /// Their addresses.
    addresses: Arc<[Box<str>]>,
    /// The primary that sentinels name, if they are to be believed.
    primary: Option<Box<str>>,
    /// Who is not to be charged, and who took over from it.
    deposed: Arc<BTreeMap<Box<str>, Box<str>>>,
}

impl MembersView {
    fn of(servers: Vec<Endpoint>) -> Self {
        let addresses = servers.iter().map(|server| server.to_string().into()).collect();
        Self { servers: servers.into(), addresses, ..Self::default() }
    }

    /// Whether the server at `address` may be charged, if it is the primary.
    pub(crate) fn permits(&self, address: &str) -> bool {
        !self.deposed.contains_key(address) && self.has(address)
    }

    /// The servers but for the primary that is announced.
    pub(crate) fn replicas(&self) -> Vec<Endpoint> {
        let named = self.servers.iter().zip(&*self.addresses);
        let replicas = named.filter(|(_, address)| self.primary.as_ref() != Some(address));
        replicas.map(|(server, _)| server.clone()).collect()
    }

    fn has(&self, address: &str) -> bool {
        self.addresses.iter().any(|known| **known == *address)
    }
}

impl Members {
    /// Servers that are known beforehand.
    pub(crate) fn of(servers: Vec<Endpoint>, limits: &LinkLimits) -> Arc<Self> {
        Self::new(servers, 0, limits)
    }

    /// Servers that so many configured sentinels will name.
    pub(crate) fn with_sentinels(sentinels: usize, limits: &LinkLimits) -> Arc<Self> {
        Self::new(Vec::new(), sentinels, limits)
    }

    fn new(servers: Vec<Endpoint>, sentinels: usize, limits: &LinkLimits) -> Arc<Self> {
        Arc::new(Self {
            election: Mutex::new(PrimaryElection::new(sentinels, limits.report_ttl())),
            view: watch::Sender::new(MembersView::of(servers)),
            inquiries: watch::Sender::new(0),
            losses: DataLossMonitor::default(),
            trouble: Mutex::default(),
        })
    }

    /// What is known, to read and to wait on.
    pub(crate) fn view(&self) -> watch::Receiver<MembersView> {
        self.view.subscribe()
    }

    /// Whether the server at `address` may be charged, if it is the primary.
    pub(crate) fn permits(&self, address: &str) -> bool {
        self.view.borrow().permits(address)
    }

    /// Waits until the server at `address` may not be charged any more; why.
    pub(crate) async fn forbids(&self, address: &str) -> LinkError {
        // An error means that the member list is gone, and with it who holds it to call this.
        let _ = self.view().wait_for(|view| !view.permits(address)).await;
        self.reason(address)
    }

    /// The server at `address` said this of itself.
    ///
    /// # Errors
    /// Why it is not to be charged, though it may be a primary.
    pub(crate) fn record_report(
        &self,
        address: &str,
        role: Role,
        server_report: Option<&Replication>,
        at: Instant,
    ) -> Result<(), LinkError> {
        if self.view.borrow().has(address) {
            let mut election = self.election.lock();
            election.record_report(address, role, server_report, at);
            self.publish(&election);
        }
        if self.permits(address) { Ok(()) } else { Err(self.reason(address)) }
    }

    /// A sentinel said this of the primary.
    pub(crate) fn record_vote(&self, sentinel: &str, word: SentinelVote) {
        let mut election = self.election.lock();
        let is_news = election.record_vote(sentinel, word);
        self.publish(&election);
        drop(election);
        if is_news {
            self.inquiries.send_modify(|inquiry| *inquiry += 1);
        }
    }

    /// These are the servers, as far as the sentinels know.
    pub(crate) fn has_servers(&self, servers: Vec<Endpoint>) {
        let mut named: Vec<(String, Endpoint)> =
            servers.into_iter().map(|server| (server.to_string(), server)).collect();
        // The same servers in another order are no news.
        named.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut election = self.election.lock();
        election.retain(|address| named.iter().any(|(known, _)| known == address));
        let servers: Vec<Endpoint> = named.into_iter().map(|(_, server)| server).collect();
        self.view.send_if_modified(|view| {
            let is_news = *view.servers != *servers;
            if is_news {
                let MembersView { deposed, primary, .. } = std::mem::take(view);
                *view = MembersView { deposed, primary, ..MembersView::of(servers) };
            }
            is_news
        });
        self.publish(&election);
    }

    /// What else keeps the servers from being known.
    pub(crate) fn set_error(&self, trouble: LinkError) {
        *self.trouble.lock() = Some(trouble);
    }

    /// Why there is no server to connect to.
    pub(crate) fn error(&self) -> Option<LinkError> {
        self.trouble.lock().clone()
    }

    /// Changes when every server is to be asked at once who it is.
    pub(crate) fn probe_requests(&self) -> watch::Receiver<u64> {
        self.inquiries.subscribe()
    }

    /// What the shard has lost.
    pub(crate) const fn losses(&self) -> &DataLossMonitor {
        &self.losses
    }

    fn publish(&self, election: &PrimaryElection) {
        let primary = election.named(Instant::now());
        self.view.send_if_modified(|view| {
            // Nobody is named for a while, now and then, and the primary is the same all the time.
            let is_other = primary.is_some() && view.primary.as_deref() != primary;
            if is_other {
                view.primary = primary.map(Box::from);
            }
            let is_deposed = *view.deposed != *election.deposed();
            if is_deposed {
                view.deposed = Arc::new(election.deposed().clone());
            }
            is_other || is_deposed
        });
    }

    fn reason(&self, address: &str) -> LinkError {
        let by = self.view.borrow().deposed.get(address).map(ToString::to_string);
        LinkError::Deposed { address: address.to_owned(), by }
    }
}
