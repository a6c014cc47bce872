//! Opens, verifies and watches the connection to the server of a shard that has the required role.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tollgate_link::{Connector, Fault, Health, LinkLimits};

use super::additional_connections::ConnectionPool;
use super::epoch_tracker::EpochTracker;
use super::replica_check::ReplicaCheck;
use super::verify::{ConnectLimits, RequiredRole, connect, probe};
use crate::codec::Codec;
use crate::connection::{Connection, LinkError, ServerReport};
use crate::members::{Members, MembersView};
use crate::offset::ShardClock;
use crate::random::random;

/// Connects a link to the first server of a member list that has the required role.
pub(super) struct ShardConnector<C> {
    members: Arc<Members>,
    view: watch::Receiver<MembersView>,
    required_role: RequiredRole,
    codec: Arc<C>,
    limits: LinkLimits,
    clock: Arc<ShardClock>,
    epochs: Arc<EpochTracker>,
    /// The address of the server that the last connection led to. `None` before the first
    /// connection.
    served: Option<Box<str>>,
    /// Whether the last connection led to another server than the connection before it.
    took_over: bool,
}

impl<C: Codec> Connector for ShardConnector<C> {
    type Connection = ConnectionPool;
    type Report = ServerReport;
    type Error = LinkError;

    async fn connect(
        &mut self,
        generation: u64,
        _: &Arc<Health>,
    ) -> Result<(ConnectionPool, ServerReport), LinkError> {
        self.view.mark_unchanged();
        let (connection, report) = self.first_fit(generation).await?;
        let (role, within) = (&self.required_role, self.limits.connect);
        Ok((ConnectionPool::new(connection, role, within, &report), report))
    }

    /// Begins to use `connection`. If the server reported a new replication id, starts a new epoch
    /// first, because a charge in a new epoch must not count as a charge in the old epoch.
    fn begin(&mut self, connection: &ConnectionPool, report: &ServerReport) {
        let now = Instant::now();
        self.clock.begin(report.clock, now);
        self.epochs.begin(report.replication.as_ref(), now);
        let address = connection.address();
        let before = self.served.replace(address.into());
        self.took_over = before.is_some_and(|before| *before != *address);
    }

    async fn ended(connection: &ConnectionPool) {
        connection.ended().await;
    }

    async fn watch(
        &mut self,
        connection: &ConnectionPool,
        report: ServerReport,
    ) -> (Fault, LinkError) {
        let heart = Heartbeat {
            took_over: self.took_over,
            connection,
            required_role: &self.required_role,
            members: &self.members,
            codec: &*self.codec,
            limits: self.limits,
            clock: &self.clock,
        };
        tokio::select! {
            biased;
            error = self.members.forbids(connection.address()) => (Fault::Unfit, error),
            error = heart.beat(report) => (fault_of(&error), error),
        }
    }

    fn end(&mut self, _: &ConnectionPool) {
        self.epochs.leave(Instant::now());
    }

    fn error(&self, connection: &ConnectionPool, fault: Fault) -> LinkError {
        let address = connection.address().to_owned();
        match fault {
            Fault::Unresponsive => LinkError::Slow { address, within: self.limits.proof },
            Fault::Ended | Fault::Unfit => LinkError::Closed { address },
        }
    }

    /// Waits until the servers of the member list change, or until another server may be charged.
    async fn changed(&mut self) {
        if self.view.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    fn draw(&mut self) -> u64 {
        random()
    }
}

impl<C: Codec> ShardConnector<C> {
    pub(super) fn new(
        members: Arc<Members>,
        required_role: RequiredRole,
        codec: Arc<C>,
        limits: LinkLimits,
        clock: Arc<ShardClock>,
        epochs: Arc<EpochTracker>,
    ) -> Self {
        let view = members.view();
        let (served, took_over) = (None, false);
        Self { members, view, required_role, codec, limits, clock, epochs, served, took_over }
    }

    /// Returns a connection to the first server that has the required role, and the report of this
    /// server. `generation` is the number of the new connection. If no server has this role,
    /// returns the error of the first server in the list.
    ///
    /// The servers are tried concurrently, so a frozen primary does not delay the connection to the
    /// replica that took over.
    async fn first_fit(&self, generation: u64) -> Result<(Connection, ServerReport), LinkError> {
        let limits = ConnectLimits { connect: self.limits.connect, proof: self.limits.proof };
        let servers = Arc::clone(&self.members.view().borrow().servers);
        let mut attempts = JoinSet::new();
        for (index, endpoint) in servers.iter().cloned().enumerate() {
            let (required_role, codec) = (self.required_role.clone(), Arc::clone(&self.codec));
            let members = Arc::clone(&self.members);
            attempts.spawn(async move {
                let prepare = async {
                    let (connection, server_report) =
                        connect(&endpoint, &required_role, &members, &*codec, limits, generation)
                            .await?;
                    if required_role.charges() {
                        let replication = server_report.replication.as_ref();
                        ReplicaCheck::default()
                            .check(&endpoint, replication, &*codec, limits.connect)
                            .await?;
                    }
                    Ok((connection, server_report))
                };
                prepare.await.map_err(|error| (index, error))
            });
        }
        let mut first: Option<(usize, LinkError)> = None;
        while let Some(Ok(attempt)) = attempts.join_next().await {
            match attempt {
                // Another server may have become the primary while this connection was prepared.
                Ok((connection, server_report)) if self.members.permits(connection.address()) => {
                    return Ok((connection, server_report));
                }
                Err(error) if first.as_ref().is_none_or(|known| error.0 < known.0) => {
                    first = Some(error);
                }
                Ok(_) | Err(_) => {}
            }
        }
        let unannounced = || self.members.error().unwrap_or(LinkError::NoPrimaryKnown);
        Err(first.map_or_else(unannounced, |(_, error)| error))
    }
}

/// The periodic queries on a connection in use.
struct Heartbeat<'a, C> {
    /// Whether another server was in use before the server of this connection.
    took_over: bool,
    connection: &'a ConnectionPool,
    required_role: &'a RequiredRole,
    members: &'a Members,
    codec: &'a C,
    limits: LinkLimits,
    clock: &'a ShardClock,
}

impl<C: Codec> Heartbeat<'_, C> {
    /// Queries the server periodically until a check fails, and returns the first error. Checks
    /// that the server still has the required role, that the server still has the data that it had
    /// at the time of `server_report`, and that its replicas can follow it. Also reads the server's
    /// clock.
    async fn beat(&self, mut server_report: ServerReport) -> LinkError {
        let LinkLimits { heartbeat, heartbeat_answer, .. } = self.limits;
        let mut beats = interval_at(Instant::now() + heartbeat, heartbeat);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        if let (true, true, Some(epoch)) =
            (self.took_over, self.required_role.charges(), self.members.next_epoch())
        {
            self.members.losses().write_epoch(self.connection, epoch, heartbeat_answer).await;
        }
        let mut replicas = ReplicaCheck::default();
        loop {
            if self.required_role.charges() {
                let (losses, replication) =
                    (self.members.losses(), server_report.replication.as_ref());
                losses.check(self.connection, replication, heartbeat_answer).await;
                let primary = self.connection.endpoint();
                let checked = replicas.check(primary, replication, self.codec, heartbeat_answer);
                if let Err(error) = checked.await {
                    return error;
                }
            }
            beats.tick().await;
            self.connection.close_unfit();
            server_report =
                match probe(self.connection, self.required_role, self.members, heartbeat_answer)
                    .await
                {
                    Ok(server_report) => server_report,
                    Err(error) => return error,
                };
            if let Some(reading) = server_report.clock {
                self.clock.observe(reading);
            }
        }
    }
}

fn fault_of(error: &LinkError) -> Fault {
    match error {
        LinkError::Slow { .. } => Fault::Unresponsive,
        LinkError::Closed { .. } => Fault::Ended,
        _ => Fault::Unfit,
    }
}
