//! The link to the server of a shard that has the required role.

use std::sync::Arc;

use tokio::sync::watch;
use tollgate_link::{CircuitBreaker, Fault, LastError, LinkLimits, Progress};

use super::additional_connections::ConnectionPool;
use super::connector::ShardConnector;
use super::epoch_tracker::EpochTracker;
use super::verify::RequiredRole;
use crate::codec::Codec;
use crate::connection::{Connection, LinkError};
use crate::members::Members;
use crate::offset::ShardClock;

/// The state of a link.
pub(crate) type Phase = tollgate_link::Phase<ConnectionPool>;

/// A link to the server of a member list that has the required role. Dropping the link closes its
/// connection.
#[derive(Debug)]
pub(crate) struct Link {
    supervised: tollgate_link::Link<ConnectionPool, LinkError>,
    members: Arc<Members>,
    clock: Arc<ShardClock>,
    epochs: Arc<EpochTracker>,
}

impl Link {
    /// Starts to connect to the first server of `members` that has the role `required_role`.
    /// Prepares each connection for the commands of `codec`. Needs a tokio runtime.
    pub(crate) fn start<C: Codec>(
        members: Arc<Members>,
        required_role: RequiredRole,
        codec: Arc<C>,
        limits: LinkLimits,
    ) -> Self {
        let clock = Arc::new(ShardClock::default());
        let epochs = Arc::<EpochTracker>::default();
        let connector = ShardConnector::new(
            Arc::clone(&members),
            required_role,
            codec,
            limits,
            Arc::clone(&clock),
            Arc::clone(&epochs),
        );
        let supervised = tollgate_link::Link::start(connector, limits, LastError::default());
        Self { supervised, members, clock, epochs }
    }

    /// Returns the receiver of the link's state. The receiver can be read and waited for.
    pub(crate) fn phases(&self) -> watch::Receiver<Phase> {
        self.supervised.phases()
    }

    /// Returns the circuit breaker of the server.
    pub(crate) fn circuit(&self) -> &CircuitBreaker {
        self.supervised.circuit()
    }

    /// Returns the estimate of the server's clock.
    pub(crate) fn clock(&self) -> &ShardClock {
        &self.clock
    }

    /// Returns the replication epochs of the servers' data.
    pub(crate) fn epochs(&self) -> &EpochTracker {
        &self.epochs
    }

    /// Returns whether the server of `connection` may be charged, according to the latest reports
    /// of servers and sentinels.
    pub(crate) fn permits(&self, connection: &Connection) -> bool {
        self.members.permits(connection.address())
    }

    /// Returns whether `connection` is the connection in use. A late reply on an earlier connection
    /// says nothing about the server that serves calls now.
    pub(crate) fn uses(&self, connection: &Connection) -> bool {
        let current = self.supervised.connection();
        current.is_some_and(|current| current.generation == connection.generation)
    }

    /// Returns the reason why the last attempt to connect failed or the last connection was lost.
    /// Returns `None` if no attempt has failed and no connection was lost.
    pub(crate) fn last_error(&self) -> Option<LinkError> {
        self.supervised.last_error()
    }

    /// Returns the address of the connected server, or `None` without a connection.
    pub(crate) fn address(&self) -> Option<String> {
        self.supervised.connection().map(|connection| connection.address().to_owned())
    }

    /// Waits, without a time limit, until the link has a connection on which the server answers.
    pub(crate) async fn up(&self) {
        self.supervised.up().await;
    }

    /// Reports that the connection with the number `generation` cannot be used any more, because of
    /// `fault`.
    pub(crate) fn report(&self, generation: u64, fault: Fault) {
        self.supervised.health().report(generation, fault);
    }

    /// Reports that a decision missed its deadline. `submitted` is the progress of the server at
    /// the time when the decision was submitted.
    pub(crate) fn record_miss(&self, submitted: Progress) {
        self.supervised.health().record_miss(submitted);
    }
}
