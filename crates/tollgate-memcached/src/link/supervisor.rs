//! Keeps one proven connection to a server, and makes another when it is lost.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout};

use super::connection::{CallError, Connection};
use super::error::LinkError;
use super::loss_detector::LossDetector;
use crate::address::Address;
use crate::wire::{Command, Reply};

/// The shortest and the longest time from a failed probe to the next one.
const PROBE_AFTER: Duration = Duration::from_millis(20);
const PROBE_AT_LEAST_EVERY: Duration = Duration::from_millis(200);

/// A name that no item has, to ask for one.
const NOTHING: &[u8] = b"tg1";

/// The bounds of a link's waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkLimits {
    /// Replies in a row that may miss their deadline before nobody waits for the server. Each
    /// connection counts by itself.
    pub misses: u32,
    /// How long callers wait, within their deadlines, for the first attempt at a new connection.
    pub seek: Duration,
    /// How long opening a connection may take. Nobody waits for it.
    pub connect: Duration,
    /// How long the round trips that prove a connection may take: a server that is slower than the
    /// decisions' deadline is of no use.
    pub proof: Duration,
    /// The time between two questions for the server's statistics.
    pub heartbeat: Duration,
    /// How long the answer to such a question may take.
    pub heartbeat_answer: Duration,
    /// A connection that is lost sooner than this counts as a failed probe: a server that accepts
    /// and drops connections is not asked without a pause.
    pub proven_after: Duration,
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
}

impl Default for LinkLimits {
    fn default() -> Self {
        Self {
            misses: 5,
            seek: Duration::from_millis(15),
            connect: Duration::from_millis(500),
            proof: Duration::from_millis(50),
            heartbeat: Duration::from_secs(1),
            heartbeat_answer: Duration::from_millis(250),
            proven_after: Duration::from_millis(100),
        }
    }
}

/// What a link has to offer.
#[derive(Clone, Debug)]
pub(super) enum Phase {
    /// Nothing yet: wait, within the deadline.
    Connecting,
    /// A connection.
    Up(Arc<Connection>),
    /// Nothing, and no use in waiting.
    Down,
}

/// What a supervisor tells.
#[derive(Debug, Default)]
pub(super) struct LinkState {
    pub(super) last_error: Mutex<Option<LinkError>>,
    pub(super) observed: LossDetector,
}

/// Why a connection is of no further use.
enum Fault {
    Ended,
    Unresponsive,
}

pub(super) struct Supervisor {
    pub(super) address: Address,
    pub(super) limits: LinkLimits,
    pub(super) phase: watch::Sender<Phase>,
    pub(super) link_state: Arc<LinkState>,
}

impl Supervisor {
    pub(super) async fn run(self) {
        let random = RandomState::new();
        let mut failed: u32 = 0;
        for attempt in 0_u64.. {
            match self.seek().await {
                Ok(connection) => {
                    let since = Instant::now();
                    let fault = self.serve(connection).await;
                    if since.elapsed() >= self.limits.proven_after {
                        failed = 0;
                        if matches!(fault, Fault::Ended) {
                            self.phase.send_replace(Phase::Connecting);
                            continue;
                        }
                    }
                }
                Err(error) => *self.link_state.last_error.lock() = Some(error),
            }
            // A frozen server answers nobody, and one that is gone is not back at once: callers
            // need not wait.
            self.phase.send_replace(Phase::Down);
            sleep(probe_delay(failed, random.hash_one(attempt))).await;
            failed = failed.saturating_add(1);
        }
    }

    /// Tries once for a connection, while callers wait for a short time at most.
    async fn seek(&self) -> Result<Connection, LinkError> {
        let attempt = self.connect();
        tokio::pin!(attempt);
        tokio::select! {
            found = &mut attempt => return found,
            () = sleep(self.limits.seek) => { self.phase.send_replace(Phase::Down); }
        }
        attempt.await
    }

    async fn connect(&self) -> Result<Connection, LinkError> {
        let LinkLimits { connect, misses, .. } = self.limits;
        let slow = || LinkError::Slow { address: self.address.clone(), within: connect };
        let opened = timeout(connect, open(&self.address)).await.map_err(|_| slow())?;
        let stream = opened.map_err(|error| LinkError::connect(&self.address, &error))?;
        let connection = Connection::start(stream, misses);
        self.prove(&connection).await?;
        Ok(connection)
    }

    /// Whether the server speaks as memcached does, and quickly enough.
    async fn prove(&self, connection: &Connection) -> Result<(), LinkError> {
        self.beat(connection, self.limits.proof).await?;
        let deadline = Instant::now() + self.limits.proof;
        match connection.ask(&Command::Get { key: NOTHING }, deadline).await {
            Ok(Reply::Missing | Reply::Value(_)) => Ok(()),
            Ok(_) => Err(LinkError::Foreign { address: self.address.clone() }),
            Err(reason) => Err(self.error(reason, self.limits.proof)),
        }
    }

    /// Asks for the server's statistics, and learns from them.
    async fn beat(&self, connection: &Connection, within: Duration) -> Result<(), LinkError> {
        let address = || self.address.clone();
        match connection.ask(&Command::Stats, Instant::now() + within).await {
            // Every server tells its process and its time.
            Ok(Reply::Stats(stats)) if stats.pid != 0 && stats.time != 0 => {
                self.link_state.observed.observe(stats, Instant::now());
                Ok(())
            }
            Ok(_) => Err(LinkError::Foreign { address: address() }),
            Err(reason) => Err(self.error(reason, within)),
        }
    }

    fn error(&self, reason: CallError, within: Duration) -> LinkError {
        let address = self.address.clone();
        match reason {
            CallError::TimedOut | CallError::Overloaded => LinkError::Slow { address, within },
            CallError::Closed | CallError::Lost => LinkError::Closed { address },
        }
    }

    /// Has the connection in service until something is wrong with it.
    async fn serve(&self, connection: Connection) -> Fault {
        let connection = Arc::new(connection);
        self.phase.send_replace(Phase::Up(Arc::clone(&connection)));
        let address = || self.address.clone();
        let (fault, error) = tokio::select! {
            () = connection.ended() => (Fault::Ended, LinkError::Closed { address: address() }),
            () = connection.silent() => {
                (Fault::Unresponsive, LinkError::Slow { address: address(), within: self.limits.proof })
            }
            error = self.beats(&connection) => (Fault::Unresponsive, error),
        };
        *self.link_state.last_error.lock() = Some(error);
        connection.cut();
        fault
    }

    async fn beats(&self, connection: &Connection) -> LinkError {
        let period = self.limits.heartbeat;
        let mut beats = interval_at(Instant::now() + period, period);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            beats.tick().await;
            if let Err(error) = self.beat(connection, self.limits.heartbeat_answer).await {
                return error;
            }
        }
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

async fn open(address: &Address) -> std::io::Result<Box<dyn Stream>> {
    match address {
        Address::Tcp { host, port } => {
            let stream = TcpStream::connect((host.as_str(), *port)).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream))
        }
        Address::Unix(path) => Ok(Box::new(UnixStream::connect(path).await?)),
    }
}

/// How long to wait after the `failed`th failure in a row, counted from 0, before the next probe.
///
/// Doubles up to a bound and is spread by `draw`, a random number, over a quarter to either side:
/// many nodes that lost the same server do not come back in step.
fn probe_delay(failed: u32, draw: u64) -> Duration {
    let doubled = PROBE_AFTER.saturating_mul(1 << failed.min(8)).min(PROBE_AT_LEAST_EVERY);
    let spread = u64::try_from(doubled.as_micros() / 2).unwrap_or(u64::MAX);
    doubled * 3 / 4 + Duration::from_micros(draw % (spread + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_are_neither_hasty_nor_rare() {
        for (failed, least, most) in [(0, 15, 25), (1, 30, 50), (3, 120, 200), (u32::MAX, 150, 250)]
        {
            for draw in [0, 1, 7_919, u64::MAX] {
                let delay = probe_delay(failed, draw);
                assert!(delay >= Duration::from_millis(least), "{failed}: {delay:?}");
                assert!(delay <= Duration::from_millis(most), "{failed}: {delay:?}");
            }
        }
    }
}
