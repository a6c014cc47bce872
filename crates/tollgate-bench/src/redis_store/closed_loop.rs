//! Callers in a closed loop: each caller sends its next request after the answer to the previous
//! one.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::contender::{Contender, ContenderError};
use super::server::Server;

/// The requests of one round.
#[derive(Clone, Debug)]
pub struct Load {
    /// The number of concurrent callers.
    pub callers: usize,
    /// The number of limits that each request charges.
    pub limits: usize,
    /// The subject of each request. The callers receive the requests in turns.
    pub order: Arc<[u32]>,
}

/// The result of one contender in one round.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// The number of admitted requests.
    pub admitted: usize,
    /// The time from the first request to the last answer.
    pub wall: Duration,
    /// The processor time that the server used.
    pub server: Duration,
    /// The processor time that this process used, for the contender's client and the callers.
    pub client: Duration,
    /// The number of calls that were sent to the server. A call contains one or more decisions.
    pub calls: u64,
    /// The latency of each decision, shortest first.
    pub latencies: Vec<Duration>,
}

impl Round {
    /// Returns the number of decisions.
    #[must_use]
    pub fn decisions(&self) -> usize {
        self.latencies.len()
    }

    /// Returns a percentile of the latencies: `per_mille` of each 1,000 decisions took at most this
    /// time.
    #[must_use]
    pub fn percentile(&self, per_mille: usize) -> Duration {
        // The percentile by the nearest rank: the smallest latency that at least `per_mille` of
        // each 1,000 latencies do not exceed.
        let rank = (self.latencies.len() * per_mille).div_ceil(1_000);
        self.latencies.get(rank.saturating_sub(1)).copied().unwrap_or_default()
    }
}

/// Runs `load` with `contender`, and measures `server`.
///
/// # Errors
/// The first error of the contender, or an error if the processor time cannot be read.
pub async fn run<C: Contender>(
    contender: &Arc<C>,
    load: &Load,
    server: &Server,
) -> Result<Round, Box<dyn Error>> {
    let (start, started) = watch::channel(false);
    let mut callers = JoinSet::new();
    for caller in 0..load.callers {
        callers.spawn(call(Arc::clone(contender), load.clone(), caller, started.clone()));
    }
    let before = Usage::now(&**contender, server)?;
    let started = Instant::now();
    start.send_replace(true);
    let mut admitted = 0;
    let mut latencies = Vec::with_capacity(load.order.len());
    while let Some(caller) = callers.join_next().await {
        let answers = caller??;
        admitted += answers.admitted;
        latencies.extend(answers.latencies);
    }
    let wall = started.elapsed();
    let after = Usage::now(&**contender, server)?;
    latencies.sort_unstable();
    Ok(Round {
        admitted,
        wall,
        server: after.server.saturating_sub(before.server),
        client: after.client.saturating_sub(before.client),
        calls: after.calls.zip(before.calls).map_or(latencies.len() as u64, |(a, b)| a - b),
        latencies,
    })
}

/// The resources that a run has used so far.
struct Usage {
    server: Duration,
    client: Duration,
    calls: Option<u64>,
}

impl Usage {
    fn now(contender: &impl Contender, server: &Server) -> io::Result<Self> {
        let client = clock_gettime(ClockId::ProcessCPUTime);
        let client =
            Duration::new(client.tv_sec.unsigned_abs(), client.tv_nsec.unsigned_abs() as u32);
        Ok(Self { server: server.processor_time()?, client, calls: contender.calls() })
    }
}

/// The answers that one caller received, with their latencies.
struct Answers {
    admitted: usize,
    latencies: Vec<Duration>,
}

async fn call<C: Contender>(
    contender: Arc<C>,
    load: Load,
    caller: usize,
    mut started: watch::Receiver<bool>,
) -> Result<Answers, ContenderError> {
    let latencies = Vec::with_capacity(load.order.len().div_ceil(load.callers));
    let mut answers = Answers { admitted: 0, latencies };
    // `wait_for` fails only if the run was aborted. In that case this caller ends too.
    let _ = started.wait_for(|started| *started).await;
    for &subject in load.order.iter().skip(caller).step_by(load.callers) {
        let sent_at = Instant::now();
        let admitted = contender.decide(subject, load.limits).await?;
        answers.latencies.push(sent_at.elapsed());
        answers.admitted += usize::from(admitted);
    }
    Ok(answers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_nearest_rank() {
        let round = |count: u64| Round {
            admitted: 0,
            wall: Duration::ZERO,
            server: Duration::ZERO,
            client: Duration::ZERO,
            calls: 0,
            latencies: (1..=count).map(Duration::from_micros).collect(),
        };
        let micros = |count, per_mille| round(count).percentile(per_mille).as_micros();
        assert_eq!(micros(1_000, 500), 500);
        assert_eq!(micros(1_000, 999), 999);
        assert_eq!(micros(10, 999), 10);
        assert_eq!(micros(1, 500), 1);
        assert_eq!(micros(0, 500), 0);
    }
}
