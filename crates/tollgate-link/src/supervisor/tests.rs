use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::*;
use crate::circuit_breaker::CircuitState;
use crate::link::Link;

/// The result of one attempt to connect.
#[derive(Clone, Copy)]
enum Attempt {
    /// The attempt succeeds. The server closes the connection after the given time.
    Closes(Duration),
    /// The attempt succeeds. After the given time, the server reports on the open connection that
    /// it cannot serve.
    Refuses(Duration),
    /// The attempt succeeds, and the connection stays open.
    Stays,
    /// The attempt fails after the given time, because the server does not answer.
    Fails(Duration),
}

/// The time that a successful attempt takes.
const OPENING: Duration = Duration::from_millis(1);

const HOUR: Duration = Duration::from_secs(3_600);
const STARTED: &str = "an error before any attempt";

/// A simulated server. The state lists the results of the coming attempts to connect, and records
/// the times of the attempts.
#[derive(Clone, Default)]
struct Server(Arc<Mutex<State>>, Arc<Notify>);

#[derive(Default)]
struct State {
    attempts: VecDeque<Attempt>,
    at: Vec<Instant>,
    ended: usize,
}

struct Connection {
    closes: Option<Duration>,
    refuses: Duration,
    since: Instant,
}

impl Connector for Server {
    type Connection = Connection;
    type Report = ();
    type Error = &'static str;

    async fn connect(&mut self, _: u64, _: &Arc<Health>) -> Result<(Connection, ()), &'static str> {
        let attempt = {
            let mut state = self.0.lock();
            state.at.push(Instant::now());
            state.attempts.pop_front().unwrap_or(Attempt::Stays)
        };
        let (closes, refuses) = match attempt {
            Attempt::Closes(after) => (Some(after), HOUR),
            Attempt::Refuses(after) => (None, after),
            Attempt::Stays => (None, HOUR),
            Attempt::Fails(after) => {
                sleep(after).await;
                return Err("no answer");
            }
        };
        sleep(OPENING).await;
        Ok((Connection { closes, refuses, since: Instant::now() }, ()))
    }

    async fn ended(connection: &Connection) {
        match connection.closes {
            Some(after) => tokio::time::sleep_until(connection.since + after).await,
            None => std::future::pending().await,
        }
    }

    async fn watch(&mut self, connection: &Connection, (): ()) -> (Fault, &'static str) {
        tokio::time::sleep_until(connection.since + connection.refuses).await;
        (Fault::Unfit, "read-only")
    }

    fn end(&mut self, _: &Connection) {
        self.0.lock().ended += 1;
    }

    fn error(&self, _: &Connection, fault: Fault) -> &'static str {
        match fault {
            Fault::Ended => "closed",
            Fault::Unfit => "unfit",
            Fault::Unresponsive => "unresponsive",
        }
    }

    async fn changed(&mut self) {
        self.1.notified().await;
    }

    fn draw(&mut self) -> u64 {
        0
    }
}

fn link(attempts: impl IntoIterator<Item = Attempt>) -> (Server, Link<Connection, &'static str>) {
    let server = Server::default();
    server.0.lock().attempts.extend(attempts);
    let last_error = LastError::default();
    last_error.set(STARTED);
    let link = Link::start(server.clone(), LinkLimits::default(), last_error);
    (server, link)
}

/// Returns the times between the attempts, in milliseconds.
fn pauses(server: &Server) -> Vec<u128> {
    server.0.lock().at.windows(2).map(|pair| (pair[1] - pair[0]).as_millis()).collect()
}

fn millis(time: u64) -> Duration {
    Duration::from_millis(time)
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_served_is_replaced_at_once_and_callers_wait_for_it() {
    let (server, link) = link([Attempt::Closes(millis(150)), Attempt::Refuses(millis(150))]);
    link.up().await;
    assert_eq!(link.last_error(), Some(STARTED));
    let mut phases = link.phases();
    for error in ["closed", "read-only"] {
        phases.wait_for(|phase| matches!(phase, Phase::Connecting)).await.unwrap();
        assert_eq!(link.last_error(), Some(error));
        assert_eq!(link.circuit().circuit_state(), CircuitState::Seeking);
        link.up().await;
    }
    assert_eq!((pauses(&server), server.0.lock().ended), (vec![151, 151], 2));
    assert_eq!(link.circuit().opened(), 0);
}

#[tokio::test(start_paused = true)]
async fn failed_attempts_are_repeated_after_growing_pauses() {
    let (server, link) = link([Attempt::Fails(millis(1)); 6]);
    link.up().await;
    // The delays are three quarters of 20, 40, 80, 160 and 200 ms, because the random numbers are
    // 0. Each attempt takes 1 ms.
    assert_eq!(pauses(&server), [16, 31, 61, 121, 151, 151]);
    assert_eq!(link.last_error(), Some("no answer"));
    assert_eq!(link.circuit().opened(), 1, "it stays open between the attempts");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_lost_at_once_counts_as_a_failure() {
    let (server, link) = link([Attempt::Closes(millis(99)), Attempt::Closes(millis(100))]);
    link.up().await;
    let mut phases = link.phases();
    phases.wait_for(|phase| matches!(phase, Phase::Down)).await.unwrap();
    assert_eq!(link.circuit().circuit_state(), CircuitState::Open);
    link.up().await;
    phases.wait_for(|phase| matches!(phase, Phase::Connecting)).await.unwrap();
    link.up().await;
    assert_eq!(pauses(&server), [1 + 99 + 15, 1 + 100]);
}

#[tokio::test(start_paused = true)]
async fn callers_wait_for_a_slow_attempt_only_for_a_while() {
    let (_, link) = link([Attempt::Fails(millis(400))]);
    let since = Instant::now();
    link.phases().wait_for(|phase| matches!(phase, Phase::Down)).await.unwrap();
    assert_eq!(since.elapsed(), LinkLimits::default().seek);
    link.up().await;
    assert_eq!(since.elapsed(), millis(400 + 15) + OPENING);
}

#[tokio::test(start_paused = true)]
async fn missed_deadlines_in_a_row_replace_the_connection() {
    let (server, link) = link([]);
    link.up().await;
    sleep(millis(200)).await;
    let health = link.health();
    for misses in [4, 5] {
        for _ in 0..misses {
            health.record_miss(health.circuit().progress());
        }
        let is_open = health.circuit().circuit_state() == CircuitState::Open;
        assert_eq!(is_open, misses == 5);
        health.circuit().answered();
    }
    link.phases().wait_for(|phase| matches!(phase, Phase::Down)).await.unwrap();
    assert_eq!(link.last_error(), Some("unresponsive"));
    link.up().await;
    assert_eq!(pauses(&server), [1 + 200 + 15]);
}

#[tokio::test(start_paused = true)]
async fn a_report_of_an_earlier_connection_does_not_end_this_one() {
    let (server, link) = link([Attempt::Closes(millis(150))]);
    link.up().await;
    sleep(millis(200)).await;
    link.up().await;
    link.health().report(1, Fault::Unfit);
    sleep(millis(200)).await;
    assert!(link.connection().is_some());
    link.health().report(2, Fault::Unfit);
    link.health().report(2, Fault::Ended);
    sleep(millis(5)).await;
    assert_eq!((link.last_error(), server.0.lock().ended), (Some("unfit"), 2));
    assert!(link.connection().is_some(), "the third one");
}

#[tokio::test(start_paused = true)]
async fn a_change_ends_the_pause() {
    let (server, link) = link([Attempt::Fails(millis(1))]);
    link.phases().wait_for(|phase| matches!(phase, Phase::Down)).await.unwrap();
    server.1.notify_one();
    link.up().await;
    assert_eq!(pauses(&server), [1]);
}
