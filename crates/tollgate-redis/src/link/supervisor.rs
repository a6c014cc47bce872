//! Keeps one verified connection to a server and replaces it when it is lost.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};

use super::additional_connections::ConnectionPool;
use super::epoch_tracker::EpochTracker;
use super::replica_check::ReplicaCheck;
use super::verify::{ConnectLimits, RequiredRole, connect, probe};
use crate::circuit_breaker::{CircuitBreaker, CircuitState, Progress, probe_delay};
use crate::codec::Codec;
use crate::connection::{Connection, LinkError, LinkLimits, ServerReport};
use crate::offset::ShardClock;
use crate::random::random;
use crate::topology::Members;

/// A link to the server of a member list that has the required role. Dropping it closes the
/// connection.
#[derive(Debug)]
pub(crate) struct Link {
    phase: watch::Receiver<Phase>,
    faults: watch::Sender<Option<Report>>,
    members: Arc<Members>,
    circuit: Arc<CircuitBreaker>,
    clock: Arc<ShardClock>,
    histories: Arc<EpochTracker>,
    last_error: Arc<Mutex<Option<LinkError>>>,
    supervisor: AbortHandle,
}

/// The state of a link.
#[derive(Clone, Debug)]
pub(crate) enum Phase {
    /// No connection yet. Callers wait, within their deadlines.
    Connecting,
    /// A connection is available.
    Up(Arc<ConnectionPool>),
    /// No connection. Callers do not wait.
    Down,
}

/// The reason why a connection cannot be used further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It was closed.
    Ended,
    /// The server reports that it cannot serve: it is read-only, loads its data, or has no primary.
    Unfit,
    /// The server does not answer.
    Unresponsive,
}

#[derive(Clone, Copy, Debug)]
struct Report {
    generation: u64,
    fault: Fault,
}

impl Link {
    /// Starts to connect to the first server of `members` that has the role `required_role`, and to
    /// load what `codec` needs. Needs a tokio runtime.
    pub(crate) fn start<C: Codec>(
        members: Arc<Members>,
        required_role: RequiredRole,
        codec: Arc<C>,
        limits: LinkLimits,
    ) -> Self {
        let (phase, phases) = watch::channel(Phase::Connecting);
        let (faults, reports) = watch::channel(None);
        let circuit = Arc::new(CircuitBreaker::new(limits.misses));
        let clock = Arc::new(ShardClock::default());
        let histories = Arc::<EpochTracker>::default();
        let last_error = Arc::default();
        let supervisor = Supervisor {
            members: Arc::clone(&members),
            required_role,
            codec,
            limits,
            phase,
            reports,
            circuit: Arc::clone(&circuit),
            clock: Arc::clone(&clock),
            histories: Arc::clone(&histories),
            last_error: Arc::clone(&last_error),
            generation: 0,
            served: None,
        };
        let supervisor = tokio::spawn(supervisor.run()).abort_handle();
        Self { phase: phases, faults, members, circuit, clock, histories, last_error, supervisor }
    }

    /// Returns the link's phases, to read and to wait for.
    pub(crate) fn phases(&self) -> watch::Receiver<Phase> {
        self.phase.clone()
    }

    /// Returns the circuit breaker of the server.
    pub(crate) fn circuit(&self) -> &CircuitBreaker {
        &self.circuit
    }

    /// Returns the server's clock.
    pub(crate) fn clock(&self) -> &ShardClock {
        &self.clock
    }

    /// Returns the replication epochs of the servers' data.
    pub(crate) fn histories(&self) -> &EpochTracker {
        &self.histories
    }

    /// Returns whether the server of `connection` may be charged, by the current reports.
    pub(crate) fn permits(&self, connection: &Connection) -> bool {
        self.members.permits(connection.address())
    }

    /// Returns why the last attempt to connect failed or the last connection was lost, if that
    /// happened.
    pub(crate) fn last_error(&self) -> Option<LinkError> {
        self.last_error.lock().clone()
    }

    /// Returns the address of the connection, if there is one.
    pub(crate) fn address(&self) -> Option<String> {
        match &*self.phase.borrow() {
            Phase::Up(connection) => Some(connection.address().to_owned()),
            Phase::Connecting | Phase::Down => None,
        }
    }

    /// Waits, without a time limit, until there is a connection that answers.
    pub(crate) async fn up(&self) {
        // Callers open the circuit before the supervisor has dropped the connection.
        let serves = |phase: &Phase| {
            matches!(phase, Phase::Up(_)) && self.circuit.circuit_state() == CircuitState::Closed
        };
        // An error means that the supervisor has ended, which happens when the link is dropped.
        let _ = self.phases().wait_for(serves).await;
    }

    /// Reports that the connection of `generation` cannot be used further.
    pub(crate) fn report(&self, generation: u64, fault: Fault) {
        self.faults.send_if_modified(|report| {
            let news = report.is_none_or(|known| known.generation < generation);
            if news {
                *report = Some(Report { generation, fault });
            }
            news
        });
    }

    /// Reports that a decision missed its deadline. `submitted` is the server's progress when the
    /// decision was submitted.
    pub(crate) fn missed(&self, submitted: Progress) {
        if self.circuit.missed(submitted) {
            self.report(submitted.generation(), Fault::Unresponsive);
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.supervisor.abort();
    }
}

struct Supervisor<C> {
    members: Arc<Members>,
    required_role: RequiredRole,
    codec: Arc<C>,
    limits: LinkLimits,
    phase: watch::Sender<Phase>,
    reports: watch::Receiver<Option<Report>>,
    circuit: Arc<CircuitBreaker>,
    clock: Arc<ShardClock>,
    histories: Arc<EpochTracker>,
    last_error: Arc<Mutex<Option<LinkError>>>,
    generation: u64,
    /// The address of the server that was in service last.
    served: Option<Box<str>>,
}

impl<C: Codec> Supervisor<C> {
    async fn run(mut self) {
        let mut failed: u32 = 0;
        let mut view = self.members.view();
        loop {
            view.mark_unchanged();
            match self.seek().await {
                Ok((connection, server_report)) => {
                    let since = Instant::now();
                    let fault = self.serve(connection, server_report).await;
                    if since.elapsed() < self.limits.proven_after {
                        self.stop();
                    } else {
                        failed = 0;
                        match fault {
                            // A frozen server answers no caller, so callers do not wait for it.
                            Fault::Unresponsive => self.stop(),
                            Fault::Ended | Fault::Unfit => {
                                self.wait();
                                continue;
                            }
                        }
                    }
                }
                Err(error) => {
                    *self.last_error.lock() = Some(error);
                    self.stop();
                }
            }
            tokio::select! {
                biased;
                () = sleep(probe_delay(failed, random())) => {}
                // The list of servers changed, or the one to charge.
                Ok(()) = view.changed() => {}
            }
            failed = failed.saturating_add(1);
        }
    }

    /// Tries once to connect to a server with the required role. Callers wait for at most
    /// `LinkLimits::seek`.
    async fn seek(&mut self) -> Result<(Connection, ServerReport), LinkError> {
        self.generation += 1;
        let (phase, circuit) = (self.phase.clone(), Arc::clone(&self.circuit));
        let patience = self.limits.seek;
        let attempt = self.first_fit();
        tokio::pin!(attempt);
        tokio::select! {
            biased;
            found = &mut attempt => return found,
            () = sleep(patience) => shut(&phase, &circuit),
        }
        attempt.await
    }

    /// Returns the first server that has the required role, or the error of the first server in the
    /// list.
    ///
    /// All servers are tried concurrently, so a frozen primary does not hide the replica that took
    /// over.
    async fn first_fit(&self) -> Result<(Connection, ServerReport), LinkError> {
        let limits = ConnectLimits { connect: self.limits.connect, proof: self.limits.proof };
        let servers = Arc::clone(&self.members.view().borrow().servers);
        let mut attempts = JoinSet::new();
        for (place, endpoint) in servers.iter().cloned().enumerate() {
            let (required_role, codec) = (self.required_role.clone(), Arc::clone(&self.codec));
            let (members, generation) = (Arc::clone(&self.members), self.generation);
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
                prepare.await.map_err(|error| (place, error))
            });
        }
        let mut first: Option<(usize, LinkError)> = None;
        while let Some(Ok(attempt)) = attempts.join_next().await {
            match attempt {
                // Another server may have taken over while this one was prepared.
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

    /// Serves calls by the connection until it fails.
    async fn serve(&mut self, connection: Connection, server_report: ServerReport) -> Fault {
        let (role, within) = (&self.required_role, self.limits.connect);
        let connection = Arc::new(ConnectionPool::new(connection, role, within, &server_report));
        let since = Instant::now();
        self.clock.begin(server_report.clock);
        // Before the connection can be used: a charge of a new epoch must not count as one of the
        // old epoch.
        self.histories.begin(server_report.replication.as_ref(), since);
        self.circuit.close(connection.generation);
        self.phase.send_replace(Phase::Up(Arc::clone(&connection)));
        let generation = connection.generation;
        let reported = self
            .reports
            .wait_for(|report| report.is_some_and(|report| report.generation == generation));
        let address = connection.address();
        let before = self.served.replace(address.into());
        let took_over = before.is_some_and(|before| *before != *address);
        let heart = Heartbeat {
            took_over,
            connection: &connection,
            required_role: &self.required_role,
            members: &self.members,
            codec: &*self.codec,
            limits: self.limits,
            clock: &self.clock,
        };
        let (fault, error) = tokio::select! {
            biased;
            () = connection.ended() => (Fault::Ended, None),
            Ok(report) = reported => (report.map_or(Fault::Ended, |report| report.fault), None),
            error = self.members.forbids(connection.address()) => (Fault::Unfit, Some(error)),
            error = heart.beat(server_report) => (fault_of(&error), Some(error)),
        };
        self.histories.leave(Instant::now());
        let address = connection.address().to_owned();
        *self.last_error.lock() = error.or(Some(match fault {
            Fault::Unresponsive => LinkError::Slow { address, within: self.limits.proof },
            Fault::Ended | Fault::Unfit => LinkError::Closed { address },
        }));
        fault
    }

    fn stop(&self) {
        shut(&self.phase, &self.circuit);
    }

    fn wait(&self) {
        self.circuit.seek();
        self.phase.send_replace(Phase::Connecting);
    }
}

fn shut(phase: &watch::Sender<Phase>, circuit: &CircuitBreaker) {
    circuit.open();
    phase.send_replace(Phase::Down);
}

/// The periodic queries on a connection in use.
struct Heartbeat<'a, C> {
    /// Whether another server was in service before.
    took_over: bool,
    connection: &'a ConnectionPool,
    required_role: &'a RequiredRole,
    members: &'a Members,
    codec: &'a C,
    limits: LinkLimits,
    clock: &'a ShardClock,
}

impl<C: Codec> Heartbeat<'_, C> {
    /// Checks periodically that the server, which last reported `server_report`, still has the
    /// required role and its data, and that its replicas can follow it, and reads its clock.
    /// Returns the first error.
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
                losses.look(self.connection, replication, heartbeat_answer).await;
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
