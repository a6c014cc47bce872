//! Additional connections to a link's server, for calls that would have to wait behind other calls
//! on a single connection.
//!
//! TCP delivers in order: on one connection, a delayed packet delays every later reply. A call on a
//! connection of its own delays no other call.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout};

use super::verify::RequiredRole;
use crate::connection::{
    CALLS_IN_FLIGHT, Connection, Endpoint, LinkError, Pushes, ServerReport, open,
};

/// The most connections of one batcher to its server, including the first connection.
pub(crate) const MAX_CONNECTIONS: usize = CALLS_IN_FLIGHT;

/// The maximum number of concurrent attempts to open an additional connection. The maximum is above
/// one, because a delayed packet may also delay an attempt.
const OPENING_MAX: usize = 4;

/// The time between a failed attempt to open an additional connection and the next attempt.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The first connection of a link, and additional connections to the same server.
#[derive(Debug)]
pub(crate) struct ConnectionPool {
    first: Arc<Connection>,
    additional: Option<Arc<AdditionalConnections>>,
}

/// The additional connections to one server. A connection is opened when a call finds no idle
/// connection.
#[derive(Debug)]
struct AdditionalConnections {
    endpoint: Endpoint,
    required_role: RequiredRole,
    connect: Duration,
    generation: u64,
    /// The replication id that the first connection's server reported.
    epoch: Box<str>,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    connections: Vec<Arc<Connection>>,
    /// The number of attempts in progress, at most [`OPENING_MAX`].
    opening: usize,
    failed_at: Option<Instant>,
}

/// A connection on which one call is counted as in flight. If this value is dropped before
/// [`answered`](Self::answered), the call stays counted until the server has answered the call.
#[derive(Debug)]
pub(crate) struct ClaimedConnection {
    connection: Arc<Connection>,
    since: Instant,
    is_additional: bool,
    is_answered: bool,
}

impl ConnectionPool {
    /// Creates a pool with the connection `first`. The server of `first` has `required_role` and
    /// reported `report`. Opening an additional connection takes at most `connect`.
    ///
    /// The pool opens no additional connections if `report` lacks the replication id or the
    /// server's time. Without the replication id, another server at the same address would not be
    /// detected. Without the server's time, commands have no deadline, so the server could not
    /// refuse a charge that arrives after its refund on another connection.
    pub(super) fn new(
        first: Connection,
        required_role: &RequiredRole,
        connect: Duration,
        report: &ServerReport,
    ) -> Self {
        let known = report.clock.and(report.replication.as_ref());
        let additional = known.map(|replication| {
            Arc::new(AdditionalConnections {
                endpoint: first.endpoint().clone(),
                required_role: required_role.clone(),
                connect,
                generation: first.generation,
                epoch: replication.id.clone(),
                open: Mutex::default(),
            })
        });
        Self { first: Arc::new(first), additional }
    }

    /// Returns a connection for one more call. Prefers an additional connection without a call in
    /// flight, and then the first connection if it has no call in flight. If every connection has a
    /// call in flight, returns the connection with the fewest calls, and opens another connection
    /// for later calls.
    ///
    /// A reply that takes longer than `overdue_after` is delayed. A connection with a delayed reply
    /// is used only if every connection has one. The first connection is the last choice among
    /// connections without a call, because the heartbeat uses the first connection: a call that
    /// waits for a delayed packet on this connection could delay the heartbeat.
    pub(crate) fn claim(&self, overdue_after: Duration) -> ClaimedConnection {
        let Some(additional) = &self.additional else {
            return ClaimedConnection::new(Arc::clone(&self.first), false);
        };
        if let Some(idle) = additional.claim_idle() {
            return idle;
        }
        if self.first.load().begin_if_idle() {
            return ClaimedConnection::opened(Arc::clone(&self.first), false);
        }
        additional.claim_least_loaded(&self.first, overdue_after)
    }

    /// Closes each additional connection that was idle for a while, on which a reply is delayed for
    /// too long, or that has ended. The heartbeat calls this function, so connections are closed
    /// even if there are no calls.
    pub(super) fn close_unfit(&self) {
        if let Some(additional) = &self.additional {
            additional.close_unfit();
        }
    }
}

impl Deref for ConnectionPool {
    type Target = Connection;

    /// Returns the first connection of the pool.
    fn deref(&self) -> &Connection {
        &self.first
    }
}

impl AdditionalConnections {
    /// Closes each connection that was idle for a while, on which a reply is delayed for too long,
    /// or that has ended.
    fn close_unfit(&self) {
        let now = Instant::now();
        self.open.lock().connections.retain(|one| !one.has_ended() && one.load().is_fit(now));
    }

    /// Returns a connection without a call in flight. Returns `None` if every connection has a call
    /// in flight.
    fn claim_idle(&self) -> Option<ClaimedConnection> {
        let mut open = self.open.lock();
        if open.connections.is_empty() {
            return None;
        }
        let now = Instant::now();
        open.connections.retain(|one| !one.has_ended() && one.load().is_fit(now));
        let idle = open.connections.iter().find(|one| one.load().begin_if_idle())?;
        Some(ClaimedConnection::opened(Arc::clone(idle), true))
    }

    /// Returns the connection with the fewest calls in flight, which may be `first`. Also starts to
    /// open another connection.
    fn claim_least_loaded(
        self: &Arc<Self>,
        first: &Arc<Connection>,
        overdue_after: Duration,
    ) -> ClaimedConnection {
        let mut open = self.open.lock();
        self.open_another(&mut open);
        let order = |one: &&Arc<Connection>| one.load().order(overdue_after);
        let least = open.connections.iter().min_by_key(order);
        match least.filter(|one| order(one) < order(&first)) {
            Some(one) => ClaimedConnection::new(Arc::clone(one), true),
            None => ClaimedConnection::new(Arc::clone(first), false),
        }
    }

    fn open_another(self: &Arc<Self>, open: &mut Open) {
        let failed_lately = open.failed_at.is_some_and(|at| at.elapsed() < RETRY_AFTER);
        let is_full = open.connections.len() + open.opening + 1 >= MAX_CONNECTIONS;
        if is_full || failed_lately || open.opening >= OPENING_MAX {
            return;
        }
        open.opening += 1;
        let all = Arc::downgrade(self);
        let opening = Arc::clone(self).connect();
        tokio::spawn(async move {
            let opened = opening.await;
            // The first connection may be closed by now, together with the additional connections.
            let Some(all) = all.upgrade() else { return };
            let mut open = all.open.lock();
            open.opening = open.opening.saturating_sub(1);
            match opened {
                Ok(connection) => {
                    open.failed_at = None;
                    open.connections.push(Arc::new(connection));
                }
                Err(_) => open.failed_at = Some(Instant::now()),
            }
        });
    }

    /// Opens a connection, and checks that its server is the same server in the same epoch.
    async fn connect(self: Arc<Self>) -> Result<Connection, LinkError> {
        let address = self.endpoint.to_string();
        let (endpoint, generation, within) = (self.endpoint.clone(), self.generation, self.connect);
        let (role, epoch) = (self.required_role.clone(), self.epoch.clone());
        // If this task kept a reference to the pool, the task would keep the other connections
        // open.
        drop(self);
        let opening = async {
            let connection = open(&endpoint, generation, Pushes::Ignored).await?;
            let report = connection.query(within).await?;
            let is_same = report.replication.is_some_and(|found| found.id == epoch);
            if role.accepts(report.role) && is_same {
                return Ok(connection);
            }
            Err(LinkError::Closed { address: address.clone() })
        };
        let slow = |_| LinkError::Slow { address: address.clone(), within };
        timeout(within, opening).await.map_err(slow)?
    }
}

impl ClaimedConnection {
    /// Adds one call to the load of `connection`.
    fn new(connection: Arc<Connection>, is_additional: bool) -> Self {
        connection.load().begin();
        Self::opened(connection, is_additional)
    }

    /// Returns `connection` for a call that the load of the connection already counts.
    fn opened(connection: Arc<Connection>, is_additional: bool) -> Self {
        Self { connection, since: Instant::now(), is_additional, is_answered: false }
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Returns the time at which the call was counted.
    pub(crate) const fn since(&self) -> Instant {
        self.since
    }

    /// Returns whether the connection is an additional connection. The first connection to the
    /// server is not an additional connection.
    pub(crate) const fn is_additional(&self) -> bool {
        self.is_additional
    }

    /// Records that the server has answered the call, or that the connection failed.
    pub(crate) fn answered(&mut self) {
        if !std::mem::replace(&mut self.is_answered, true) {
            self.connection.load().end();
        }
    }
}

impl Drop for ClaimedConnection {
    fn drop(&mut self) {
        let load = self.connection.load();
        if self.is_answered || !load.abandon() {
            return;
        }
        // Without a runtime, no task can be started and nothing is sent any more.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(Arc::clone(load).settle(self.connection.handle()));
        }
    }
}
