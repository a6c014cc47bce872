//! The member list of a shard: its servers, and the reports that determine which server may be
//! charged.

mod data_loss;
mod primary_election;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;
use tollgate_link::LinkLimits;

pub use self::data_loss::DataLoss;
pub(crate) use self::data_loss::generation_at;
pub(crate) use self::primary_election::{Confidence, SentinelOrigin, SentinelVote};

use self::data_loss::DataLossMonitor;
use self::primary_election::PrimaryElection;
use crate::connection::{Endpoint, LinkError, ServerReport};

/// The information about a shard's servers that all connections of the shard share.
///
/// When one connection detects a promotion, the other connections no longer charge the old primary.
#[derive(Debug)]
pub(crate) struct Members {
    election: Mutex<PrimaryElection>,
    view: watch::Sender<MembersView>,
    /// A number that is changed to request that the roles of all servers are queried immediately,
    /// without waiting for the next periodic query.
    inquiries: watch::Sender<u64>,
    losses: DataLossMonitor,
    /// The reason why the list contains no server. `None` while a server is known.
    trouble: Mutex<Option<LinkError>>,
}

/// The current information about the servers of a shard.
#[derive(Clone, Debug, Default)]
pub(crate) struct MembersView {
    /// All servers of the shard.
    pub(crate) servers: Arc<[Endpoint]>,
    /// The addresses of the servers.
    addresses: Arc<[Box<str>]>,
    /// The address of the primary that a trusted vote of sentinels names. `None` if there is no
    /// trusted vote.
    primary: Option<Box<str>>,
    /// The servers that must not be charged, because another server replaced them. Maps the address
    /// of each such server to the address of its successor.
    deposed: Arc<BTreeMap<Box<str>, Box<str>>>,
    /// The servers that report the role of a primary and are not chosen. Maps the address of each
    /// such server to the address of the chosen server.
    outranked: Arc<BTreeMap<Box<str>, Box<str>>>,
    /// The servers that were not queried successfully or unsuccessfully since the start. One of
    /// these servers may have the counters, so no server is charged until this set is empty.
    unqueried: Arc<BTreeSet<Box<str>>>,
}

impl MembersView {
    fn of(servers: Vec<Endpoint>) -> Self {
        let addresses = servers.iter().map(|server| server.to_string().into()).collect();
        Self { servers: servers.into(), addresses, ..Self::default() }
    }

    /// Returns whether the server at `address` may be charged, provided that the server is the
    /// primary.
    pub(crate) fn permits(&self, address: &str) -> bool {
        let is_chosen =
            !self.deposed.contains_key(address) && !self.outranked.contains_key(address);
        is_chosen && self.unqueried.is_empty() && self.has(address)
    }

    /// Returns the servers, except the primary that the sentinels name.
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
    /// Creates a member list of the configured servers.
    pub(crate) fn of(servers: Vec<Endpoint>, limits: &LinkLimits) -> Arc<Self> {
        Self::new(servers, 0, limits)
    }

    /// Creates a member list of `servers` for a shard without sentinels. If several servers report
    /// the role of a primary, the [mark](crate::connection::EpochMark) of the shard selects one of
    /// them. If the marks are equal, the first of these servers in `servers` is selected. No server
    /// is charged until each server was queried once.
    pub(crate) fn chosen_by_mark(servers: Vec<Endpoint>, limits: &LinkLimits) -> Arc<Self> {
        let members = Self::of(servers, limits);
        members.view.send_modify(|view| {
            view.unqueried = Arc::new(view.addresses.iter().cloned().collect());
        });
        let order = Arc::clone(&members.view.borrow().addresses);
        members.election.lock().choose_by_mark(order);
        members
    }

    /// Creates a member list without servers for a shard with this number of configured sentinels.
    /// The sentinels will name the servers.
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

    /// Returns the receiver of the current view. The receiver can be read and waited for.
    pub(crate) fn view(&self) -> watch::Receiver<MembersView> {
        self.view.subscribe()
    }

    /// Returns whether the server at `address` may be charged, provided that the server is the
    /// primary.
    pub(crate) fn permits(&self, address: &str) -> bool {
        self.view.borrow().permits(address)
    }

    /// Waits until the server at `address` must not be charged any more, and returns the reason.
    pub(crate) async fn forbids(&self, address: &str) -> LinkError {
        // An error of this wait means that the list was dropped, which is impossible during this
        // call.
        let _ = self.view().wait_for(|view| !view.permits(address)).await;
        self.reason(address)
    }

    /// Records the report of the server at `address` about itself.
    ///
    /// # Errors
    /// The reason why the server must not be charged, although it may report the role of a primary.
    pub(crate) fn record_report(
        &self,
        address: &str,
        server_report: &ServerReport,
    ) -> Result<(), LinkError> {
        if self.view.borrow().has(address) {
            let ServerReport { role, replication, mark, at, .. } = server_report;
            let mut election = self.election.lock();
            election.record_report(address, *role, replication.as_ref(), *mark, *at);
            self.mark_queried(address);
            self.publish(&election);
        }
        if self.permits(address) { Ok(()) } else { Err(self.reason(address)) }
    }

    /// Records that the server at `address` did not answer.
    pub(crate) fn record_unreachable(&self, address: &str) {
        let mut election = self.election.lock();
        election.record_unreachable(address, Instant::now());
        self.mark_queried(address);
        self.publish(&election);
    }

    /// Waits until every server was queried once. Each query ends within [`LinkLimits::connect`].
    pub(crate) async fn settled(&self) {
        // An error of this wait means that the member list was dropped.
        let _ = self.view().wait_for(|view| view.unqueried.is_empty()).await;
    }

    /// Returns the addresses of the reachable servers that report the role of a primary.
    pub(crate) fn leaders(&self) -> Vec<String> {
        self.election.lock().reachable_leaders(Instant::now())
    }

    /// Returns the epoch to write on a server after nodes have moved to the server from another
    /// server. Returns `None` if the mark of the shard does not choose the primary.
    pub(crate) fn next_epoch(&self) -> Option<u64> {
        self.election.lock().next_epoch()
    }

    fn mark_queried(&self, address: &str) {
        self.view.send_if_modified(|view| {
            let is_changed = view.unqueried.contains(address);
            if is_changed {
                Arc::make_mut(&mut view.unqueried).remove(address);
            }
            is_changed
        });
    }

    /// Records the vote of a sentinel.
    pub(crate) fn record_vote(&self, sentinel: &str, vote: SentinelVote) {
        let mut election = self.election.lock();
        let is_changed = election.record_vote(sentinel, vote);
        self.publish(&election);
        drop(election);
        if is_changed {
            self.inquiries.send_modify(|inquiry| *inquiry += 1);
        }
    }

    /// Replaces the servers of the list by the servers that the sentinels name.
    pub(crate) fn has_servers(&self, servers: Vec<Endpoint>) {
        let mut named: Vec<(String, Endpoint)> =
            servers.into_iter().map(|server| (server.to_string(), server)).collect();
        // The servers are sorted, because the same servers in another order are not a change.
        named.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut election = self.election.lock();
        election.retain(|address| named.iter().any(|(known, _)| known == address));
        let servers: Vec<Endpoint> = named.into_iter().map(|(_, server)| server).collect();
        self.view.send_if_modified(|view| {
            let is_changed = *view.servers != *servers;
            if is_changed {
                let MembersView { deposed, primary, .. } = std::mem::take(view);
                *view = MembersView { deposed, primary, ..MembersView::of(servers) };
            }
            is_changed
        });
        self.publish(&election);
    }

    /// Sets the reason why no server is known.
    pub(crate) fn set_error(&self, trouble: LinkError) {
        *self.trouble.lock() = Some(trouble);
    }

    /// Returns the reason why the list contains no server. Returns `None` while a server is known.
    pub(crate) fn error(&self) -> Option<LinkError> {
        self.trouble.lock().clone()
    }

    /// Returns a receiver of a number that changes whenever the roles of all servers must be
    /// queried immediately.
    pub(crate) fn probe_requests(&self) -> watch::Receiver<u64> {
        self.inquiries.subscribe()
    }

    /// Returns the monitor that detects losses of the shard's data.
    pub(crate) const fn losses(&self) -> &DataLossMonitor {
        &self.losses
    }

    fn publish(&self, election: &PrimaryElection) {
        let primary = election.named(Instant::now());
        self.view.send_if_modified(|view| {
            // If no primary is reported for a while, the last reported primary stays.
            let is_other = primary.is_some() && view.primary.as_deref() != primary;
            if is_other {
                view.primary = primary.map(Box::from);
            }
            let is_deposed = *view.deposed != *election.deposed();
            if is_deposed {
                view.deposed = Arc::new(election.deposed().clone());
            }
            let is_outranked = *view.outranked != *election.outranked();
            if is_outranked {
                view.outranked = Arc::new(election.outranked().clone());
            }
            is_other || is_deposed || is_outranked
        });
    }

    fn reason(&self, address: &str) -> LinkError {
        let view = self.view.borrow();
        let by = view.deposed.get(address).map(ToString::to_string);
        if let (None, Some(by)) = (&by, view.outranked.get(address)) {
            return LinkError::Outranked { address: address.to_owned(), by: by.to_string() };
        }
        LinkError::Deposed { address: address.to_owned(), by }
    }
}
