//! A server and its few connections. Calls use the connections in rotation.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::time::{Instant, timeout_at};
use tollgate_link::{LastError, Link, LinkLimits, Phase};

use super::connection::Connection;
use super::connector::ServerConnector;
use super::error::LinkError;
use super::loss_detector::{LossDetector, Losses};
use crate::address::Address;

/// The connections to one server. Dropping this value closes the connections.
#[derive(Debug)]
pub(crate) struct Server {
    address: Address,
    links: Box<[Link<Connection, LinkError>]>,
    turn: AtomicUsize,
    last_error: LastError<LinkError>,
    observed: Arc<LossDetector>,
}

impl Server {
    /// Starts to connect to the server at `address`. Needs a tokio runtime.
    pub(crate) fn start(address: Address, connections: NonZeroUsize, limits: LinkLimits) -> Self {
        let last_error = LastError::default();
        let observed = Arc::<LossDetector>::default();
        let link = |_| {
            let (address, observed) = (address.clone(), Arc::clone(&observed));
            let connector = ServerConnector {
                address,
                limits,
                observed,
                #[cfg(feature = "simulation")]
                network: tollgate_link::simulation::CapturedNetwork::default(),
            };
            Link::start(connector, limits, last_error.clone())
        };
        let links = (0..connections.get()).map(link).collect();
        Self { address, links, turn: AtomicUsize::new(0), last_error, observed }
    }

    /// Returns the next open connection in rotation.
    ///
    /// If no connection is open and a first attempt to connect is under way, waits for this attempt
    /// until `deadline`. A first attempt follows the start or the loss of a connection. Returns
    /// `None` if no such attempt is under way, or if the attempt does not open a connection in
    /// time.
    pub(crate) async fn connection(&self, deadline: Instant) -> Option<Arc<Connection>> {
        let first = self.turn.fetch_add(1, Ordering::Relaxed);
        let in_turn =
            || (0..self.links.len()).map(|it| &self.links[(first + it) % self.links.len()]);
        let mut seeking = None;
        for link in in_turn() {
            match link.phase() {
                Phase::Up(connection) if connection.is_open() => {
                    return Some(connection);
                }
                // The supervisor has not yet detected that the connection is closed.
                Phase::Up(_) | Phase::Connecting => seeking = seeking.or(Some(link)),
                Phase::Down => {}
            }
        }
        let mut phase = seeking?.phases();
        let settled = phase.wait_for(|phase| match phase {
            Phase::Up(connection) => connection.is_open(),
            Phase::Connecting => false,
            Phase::Down => true,
        });
        let settled = timeout_at(deadline, settled).await.ok()?.ok()?;
        match &*settled {
            Phase::Up(connection) => Some(Arc::clone(connection)),
            Phase::Connecting | Phase::Down => None,
        }
    }

    /// Waits, without a time limit, until every connection is open.
    pub(crate) async fn ready(&self) {
        for link in &self.links {
            // An error means that the task that opens the connection has ended, which happens when
            // this value is dropped.
            let _ = link.phases().wait_for(|phase| matches!(phase, Phase::Up(_))).await;
        }
    }

    /// Returns the server's address.
    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// Returns two numbers: the configured number of connections, and the number of connections
    /// that are open now.
    pub(crate) fn connections(&self) -> (usize, usize) {
        let connected = self.links.iter().filter(|link| link.connection().is_some());
        (self.links.len(), connected.count())
    }

    /// Returns the losses of data that were detected on the server.
    pub(crate) fn losses(&self) -> Losses {
        self.observed.losses()
    }

    /// Returns the server's time in seconds since the Unix epoch. Returns `None` before the server
    /// has reported its time.
    pub(crate) fn time(&self) -> Option<u64> {
        self.observed.time(Instant::now())
    }

    /// Returns the server's time in milliseconds since the Unix epoch, with an error of at most
    /// [`TIME_UNCERTAINTY`](super::TIME_UNCERTAINTY). Returns `None` before the server has reported
    /// its time.
    pub(crate) fn millis(&self) -> Option<u64> {
        self.observed.millis(Instant::now())
    }

    /// Returns the reason why the last attempt to connect failed or the last connection was lost.
    /// Returns `None` if no attempt has failed and no connection was lost.
    pub(crate) fn last_error(&self) -> Option<LinkError> {
        self.last_error.get()
    }
}
