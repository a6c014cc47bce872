//! Keeps one proven connection to a server, and finds another when it is lost.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};

use super::connect::{ConnectLimits, Connection, RequiredRole, ServerReport, connect};
use super::epoch_tracker::EpochTracker;
use super::error::LinkError;
use crate::circuit_breaker::{
    CircuitBreaker, CircuitState, DEFAULT_FAILURE_THRESHOLD, probe_delay,
};
use crate::codec::Codec;
use crate::offset::ShardClock;
use crate::topology::Members;

/// The bounds of a link's waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkLimits {
    /// Decisions in a row that may miss their deadline before nobody waits for the server.
    pub misses: u32,
    /// How long callers wait, within their deadlines, for the first attempt at a new connection.
    pub seek: Duration,
    /// How long opening a connection may take. Nobody waits for it.
    pub connect: Duration,
    /// How long the round trip that proves a connection may take: a server that is slower than the
    /// decisions' deadline is of no use.
    pub proof: Duration,
    /// The time between two questions for role and time on a connection that is in use.
    pub heartbeat: Duration,
    /// How long the answer to such a question may take.
    pub heartbeat_answer: Duration,
    /// A connection that is lost sooner than this counts as a failed probe: a server that accepts
    /// and drops connections is not asked without a pause.
    pub proven_after: Duration,
    /// How long the answer to a call is waited for, within its deadline, on a connection that was
    /// left: a server that gave way still says what it did not carry out. Nothing else is sent to
    /// the shard meanwhile.
    pub last_words: Duration,
}

impl LinkLimits {
    /// For decisions that may take as long as `deadline`: a server that is as slow as that allows
    /// would else never be found, or be lost at its next heartbeat.
    #[must_use]
    pub fn for_deadline(deadline: Duration) -> Self {
        let usual = Self::default();
        Self {
            seek: usual.seek.max(deadline),
            connect: usual.connect.max(deadline),
            proof: usual.proof.max(deadline),
            heartbeat_answer: usual.heartbeat_answer.max(deadline),
            ..usual
        }
    }

    /// For how long at the most a server that was replaced is still charged after another one has
    /// become primary, where the servers may be asked for `INFO` and answer: a primary that was
    /// frozen and comes back takes charges until then that will be thrown away.
    ///
    /// Every server of a shard is asked who it is in the time of half a heartbeat, over a connection
    /// that may have to be opened, and no connection charges a server that is known to be replaced.
    #[must_use]
    pub fn gray_failure_max(&self) -> Duration {
        self.discovery_period().saturating_add(self.connect.max(self.heartbeat_answer))
    }

    /// How long what a server or a sentinel said of a primary counts: it may be missed twice.
    pub(crate) fn report_ttl(&self) -> Duration {
        let waits = self.connect.max(self.heartbeat_answer);
        self.heartbeat.saturating_mul(2).saturating_add(waits)
    }

    /// The time between two questions to each server of a shard.
    pub(crate) fn discovery_period(&self) -> Duration {
        self.heartbeat / 2
    }
}

impl Default for LinkLimits {
    fn default() -> Self {
        Self {
            misses: DEFAULT_FAILURE_THRESHOLD,
            seek: Duration::from_millis(15),
            connect: Duration::from_millis(500),
            proof: Duration::from_millis(15),
            heartbeat: Duration::from_secs(1),
            heartbeat_answer: Duration::from_millis(250),
            proven_after: Duration::from_millis(100),
            last_words: Duration::from_millis(250),
        }
    }
}

/// A link to whichever of a member list's servers has the required role. Dropping it ends the connection.
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

/// What the link has to offer.
#[derive(Clone, Debug)]
pub(crate) enum Phase {
    /// Nothing yet: wait, within the deadline.
    Connecting,
    /// A connection.
    Up(Arc<Connection>),
    /// Nothing, and no use in waiting.
    Down,
}

/// Why a connection is of no further use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It ended.
    Ended,
    /// The server says that it cannot serve: it is read-only, loads its data, has no primary.
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
    /// Starts to look for the first of the servers of `members` that does `required_role`, and to make it
    /// ready for `codec`. Needs a tokio runtime.
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
        };
        let supervisor = tokio::spawn(supervisor.run()).abort_handle();
        Self { phase: phases, faults, members, circuit, clock, histories, last_error, supervisor }
    }

    /// The link's phases, to read and to wait on.
    pub(crate) fn phases(&self) -> watch::Receiver<Phase> {
        self.phase.clone()
    }

    /// The circuit that guards the server.
    pub(crate) fn circuit(&self) -> &CircuitBreaker {
        &self.circuit
    }

    /// The server's clock.
    pub(crate) fn clock(&self) -> &ShardClock {
        &self.clock
    }

    /// The histories that the servers' data was of.
    pub(crate) fn histories(&self) -> &EpochTracker {
        &self.histories
    }

    /// Whether `connection` leads to a server that may be charged, by what is known now.
    pub(crate) fn permits(&self, connection: &Connection) -> bool {
        self.members.permits(connection.address())
    }

    /// Why the last attempt failed or the last connection was lost, if any was.
    pub(crate) fn last_error(&self) -> Option<LinkError> {
        self.last_error.lock().clone()
    }

    /// Where the connection leads, if there is one.
    pub(crate) fn address(&self) -> Option<String> {
        match &*self.phase.borrow() {
            Phase::Up(connection) => Some(connection.address().to_owned()),
            Phase::Connecting | Phase::Down => None,
        }
    }

    /// Waits, without a limit of its own, until there is a connection that answers.
    pub(crate) async fn up(&self) {
        // Callers open the circuit before the supervisor has left the connection.
        let serves = |phase: &Phase| {
            matches!(phase, Phase::Up(_)) && self.circuit.circuit_state() == CircuitState::Closed
        };
        // An error means that the supervisor is gone, which is when the link is dropped.
        let _ = self.phases().wait_for(serves).await;
    }

    /// Tells that the connection of `generation` is of no further use.
    pub(crate) fn report(&self, generation: u64, fault: Fault) {
        self.faults.send_if_modified(|report| {
            let news = report.is_none_or(|known| known.generation < generation);
            if news {
                *report = Some(Report { generation, fault });
            }
            news
        });
    }

    /// Tells that a decision, which was asked for under the connection `generation`, missed its
    /// deadline.
    pub(crate) fn missed(&self, generation: u64) {
        if self.circuit.missed(generation) {
            self.report(generation, Fault::Unresponsive);
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
}

impl<C: Codec> Supervisor<C> {
    async fn run(mut self) {
        let random = RandomState::new();
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
                            // A frozen server answers nobody: callers need not wait for it.
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
                () = sleep(probe_delay(failed, random.hash_one(self.generation))) => {}
                // Other servers, or another one of them to charge.
                Ok(()) = view.changed() => {}
            }
            failed = failed.saturating_add(1);
        }
    }

    /// Looks once for a server that has the required role, while callers wait for a short time at most.
    async fn seek(&mut self) -> Result<(Connection, ServerReport), LinkError> {
        self.generation += 1;
        let (phase, circuit) = (self.phase.clone(), Arc::clone(&self.circuit));
        let patience = self.limits.seek;
        let attempt = self.first_fit();
        tokio::pin!(attempt);
        tokio::select! {
            found = &mut attempt => return found,
            () = sleep(patience) => shut(&phase, &circuit),
        }
        attempt.await
    }

    /// The first server that proves to have the required role, or why the first of the list does not.
    ///
    /// They are asked side by side: a frozen primary does not hide the replica that took over.
    async fn first_fit(&self) -> Result<(Connection, ServerReport), LinkError> {
        let limits = ConnectLimits { connect: self.limits.connect, proof: self.limits.proof };
        let servers = Arc::clone(&self.members.view().borrow().servers);
        let mut attempts = JoinSet::new();
        for (place, endpoint) in servers.iter().cloned().enumerate() {
            let (required_role, codec) = (self.required_role.clone(), Arc::clone(&self.codec));
            let (members, generation) = (Arc::clone(&self.members), self.generation);
            attempts.spawn(async move {
                let found =
                    connect(&endpoint, &required_role, &members, &*codec, limits, generation).await;
                found.map_err(|error| (place, error))
            });
        }
        let mut first: Option<(usize, LinkError)> = None;
        while let Some(Ok(attempt)) = attempts.join_next().await {
            match attempt {
                // While it was made ready, another may have been found to have taken over.
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

    /// Has the connection in service until something is wrong with it.
    async fn serve(&mut self, connection: Connection, server_report: ServerReport) -> Fault {
        let connection = Arc::new(connection);
        let since = Instant::now();
        self.clock.restart();
        if let Some(reading) = server_report.clock {
            self.clock.observe(reading);
        }
        // Before anyone can use the connection: a charge of a new history must not pass for one of
        // the old.
        self.histories.begin(server_report.replication.as_ref(), since);
        self.circuit.close(connection.generation);
        self.phase.send_replace(Phase::Up(Arc::clone(&connection)));
        let generation = connection.generation;
        let reported = self
            .reports
            .wait_for(|report| report.is_some_and(|report| report.generation == generation));
        let heart = Heartbeat {
            connection: &connection,
            required_role: &self.required_role,
            members: &self.members,
            limits: self.limits,
            clock: &self.clock,
        };
        let (fault, error) = tokio::select! {
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

/// What a connection in service is asked again and again.
struct Heartbeat<'a> {
    connection: &'a Connection,
    required_role: &'a RequiredRole,
    members: &'a Members,
    limits: LinkLimits,
    clock: &'a ShardClock,
}

impl Heartbeat<'_> {
    /// Asks whether the server, which told `server_report` of itself, still has the required role and has its data,
    /// and learns the time; returns what is wrong.
    async fn beat(&self, mut server_report: ServerReport) -> LinkError {
        let LinkLimits { heartbeat, heartbeat_answer, .. } = self.limits;
        let mut beats = interval_at(Instant::now() + heartbeat, heartbeat);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            if self.required_role.charges() {
                let losses = self.members.losses();
                losses
                    .look(self.connection, server_report.replication.as_ref(), heartbeat_answer)
                    .await;
            }
            beats.tick().await;
            server_report = match self
                .connection
                .probe(self.required_role, self.members, heartbeat_answer)
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
