//! Tests of batchers with real servers that die, freeze, refuse commands or lose their networks.
//!
//! The jobs use a codec that counts, in the server, how often each job was executed. In every test,
//! no job is executed twice, and no job that was refused or that timed out before it was sent is
//! executed later.

#[path = "../../tests/kit/mod.rs"]
mod kit;

mod callers;
mod death;
mod freeze;
mod network;
mod reach;
mod refusal;
mod tally;

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tollgate_link::{CircuitState, LinkLimits};

use self::tally::{Job, Tally};
use crate::batcher::{Batcher, BatcherError, BatcherLimits};
use crate::connection::Endpoint;
use crate::link::RequiredRole;

/// The time limit of each wait in a test. Even on a busy machine, an expected event happens
/// earlier.
const PATIENCE: Duration = Duration::from_secs(60);

/// The deadline of jobs that the server is expected to execute.
const AMPLE: Duration = Duration::from_secs(30);

/// The deadline of jobs that the server is expected to leave unanswered.
const SHORT: Duration = Duration::from_millis(15);

/// Returns limits that are long enough for a busy machine, so a delay by other tests does not look
/// like a fault.
fn patient() -> LinkLimits {
    LinkLimits {
        connect: PATIENCE,
        proof: PATIENCE,
        heartbeat_answer: PATIENCE,
        seek: AMPLE,
        ..LinkLimits::default()
    }
}

fn batcher_to(urls: &[String], limits: LinkLimits) -> Batcher<Tally> {
    let endpoint = |url: &String| url.parse::<Endpoint>().unwrap();
    let candidates = urls.iter().map(endpoint).collect();
    Batcher::start(
        candidates,
        RequiredRole::Primary,
        Tally::arc(),
        BatcherLimits::default(),
        limits,
    )
}

/// Returns a connected batcher.
async fn ready_batcher(url: &str, limits: LinkLimits) -> Batcher<Tally> {
    let batcher = batcher_to(&[url.to_owned()], limits);
    in_time(batcher.link().up()).await;
    batcher
}

impl Batcher<Tally> {
    async fn run(&self, key: &str, id: u64) -> Result<i64, BatcherError> {
        self.submit(Job::new(key, id), Instant::now() + AMPLE).await
    }

    async fn run_within(&self, key: &str, id: u64, time: Duration) -> Result<i64, BatcherError> {
        self.submit(Job::new(key, id), Instant::now() + time).await
    }

    fn circuit_state(&self) -> CircuitState {
        self.link().circuit().circuit_state()
    }

    /// Runs jobs with ids from `first` on until one job is executed. Returns the id of that job.
    async fn recovers(&self, first: u64) -> u64 {
        let mut id = first;
        let recovery = async {
            while self.run("recovery", id).await.is_err() {
                id += 1;
                sleep(Duration::from_millis(5)).await;
            }
        };
        in_time(recovery).await;
        id
    }
}

/// Waits for an event that must happen, for at most [`PATIENCE`].
async fn in_time<T>(what: impl Future<Output = T>) -> T {
    timeout(PATIENCE, what).await.expect("it did not happen")
}

/// Waits until `condition` is true.
async fn until(condition: impl Fn() -> bool) {
    in_time(async {
        while !condition() {
            sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}
