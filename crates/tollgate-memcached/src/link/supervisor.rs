//! Keeps one verified connection to a server and replaces it when it is lost.

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

/// A key that no item has, for a test read.
const NOTHING: &[u8] = b"tg1";

/// The timeouts and thresholds of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkLimits {
    /// The number of consecutive replies that may miss their deadline before the connection is
    /// closed. Each connection counts separately.
    pub misses: u32,
    /// How long callers wait, within their deadlines, for the first attempt at a new connection.
    pub seek: Duration,
    /// The longest time for opening a connection. No caller waits for it.
    pub connect: Duration,
    /// The longest time for the round trips that verify a connection. A server slower than the
    /// deadline of decisions is of no use.
    pub proof: Duration,
    /// The time between two requests for the server's statistics.
    pub heartbeat: Duration,
    /// The longest time for the answer to such a request.
    pub heartbeat_answer: Duration,
    /// A connection that is lost sooner than this counts as a failed probe. This adds a pause
    /// before the next attempt if a server accepts connections and drops them.
    pub proven_after: Duration,
}

impl LinkLimits {
    /// Returns the limits for decisions that may take as long as `deadline`. With the default
    /// limits, a server that is as slow as the deadline allows would never be connected, or would
    /// be lost at its next heartbeat.
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

/// The state of a link.
#[derive(Clone, Debug)]
pub(super) enum Phase {
    /// No connection yet. Callers wait, within their deadlines.
    Connecting,
    /// A connection is available.
    Up(Arc<Connection>),
    /// No connection. Callers do not wait.
    Down,
}

/// The results that a supervisor publishes.
#[derive(Debug, Default)]
pub(super) struct LinkState {
    pub(super) last_error: Mutex<Option<LinkError>>,
    pub(super) observed: LossDetector,
}

/// The reason why a connection cannot be used further.
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
            // A frozen server answers no caller, and a stopped one does not return at once, so
            // callers do not wait.
            self.phase.send_replace(Phase::Down);
            sleep(probe_delay(failed, random.hash_one(attempt))).await;
            failed = failed.saturating_add(1);
        }
    }

    /// Tries once to connect. Callers wait for at most `LinkLimits::seek`.
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

    /// Checks that the server speaks memcached's protocol and is fast enough.
    async fn prove(&self, connection: &Connection) -> Result<(), LinkError> {
        self.beat(connection, self.limits.proof).await?;
        let deadline = Instant::now() + self.limits.proof;
        match connection.ask(&Command::Get { key: NOTHING }, deadline).await {
            Ok(Reply::Missing | Reply::Value(_)) => Ok(()),
            Ok(_) => Err(LinkError::Foreign { address: self.address.clone() }),
            Err(reason) => Err(self.error(reason, self.limits.proof)),
        }
    }

    /// Requests the server's statistics and processes them.
    async fn beat(&self, connection: &Connection, within: Duration) -> Result<(), LinkError> {
        let address = || self.address.clone();
        match connection.ask(&Command::Stats, Instant::now() + within).await {
            // Every memcached server reports its process id and its time.
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

    /// Serves calls by the connection until it fails.
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

/// Returns the delay before the next probe after the `failed`th consecutive failure, counted from
/// 0.
///
/// The delay doubles up to a bound. `draw`, a random number, spreads it by a quarter to either
/// side, so nodes that lost the same server do not reconnect at the same moment.
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
