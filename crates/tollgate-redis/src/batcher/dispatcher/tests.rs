//! Tests of refused calls, with a server in this process.

use std::sync::atomic::{AtomicBool, Ordering};

use redis::Cmd;
use redis::aio::MultiplexedConnection;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};
use tollgate_core::Timestamp;
use tollgate_link::LinkLimits;

use super::*;
use crate::batcher::batch::{Batch, Waiter};
use crate::batcher::{Batcher, BatcherLimits, Route};
use crate::link::RequiredRole;
use crate::offset::ClockAt;

const PATIENCE: Duration = Duration::from_secs(60);

/// Jobs that are names of commands. Only the command `WRITE` writes.
struct Names;

impl Codec for Names {
    type Job = &'static str;
    type Answer = ();

    fn encode(&self, jobs: &[&'static str], _deadline: Option<Timestamp>) -> Cmd {
        redis::cmd(jobs[0])
    }

    fn decode(&self, jobs: &[&'static str], _reply: Value) -> Vec<Result<(), StepError>> {
        jobs.iter().map(|_| Ok(())).collect()
    }

    fn wrote(&self, jobs: &[&'static str], _answers: &[Result<(), StepError>]) -> bool {
        jobs.contains(&"WRITE")
    }

    fn clock(&self, _reply: &Value) -> Option<Timestamp> {
        None
    }

    fn retime(&self, _jobs: &mut [&'static str], _shard: ClockAt) {}

    fn job_bytes(&self, job: &&'static str) -> usize {
        job.len()
    }

    async fn load(&self, _connection: &mut MultiplexedConnection) -> RedisResult<()> {
        Ok(())
    }

    fn error_action(&self, _error: &RedisError) -> ErrorAction {
        ErrorAction::Nothing
    }
}

/// Answers commands like a primary. Rejects the first command `BUSY`.
async fn serve(mut stream: TcpStream, faults: Arc<Faults>) {
    let mut bytes = [0; 1024];
    while let Ok(count @ 1..) = stream.read(&mut bytes).await {
        let received = String::from_utf8_lossy(&bytes[..count]).into_owned();
        for command in received.split('*').skip(1) {
            let reply = match command.split("\r\n").nth(2).unwrap_or_default() {
                "ROLE" => "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n",
                "TIME" => "*2\r\n$1\r\n1\r\n$1\r\n0\r\n",
                "INFO" => "$0\r\n\r\n",
                "MGET" => "*2\r\n$-1\r\n$-1\r\n",
                "DOWN" => "-CLUSTERDOWN The cluster is down\r\n",
                "WITHOUT_OWNER" => "-CLUSTERDOWN Hash slot not served\r\n",
                "BUSY" if faults.is_busy.swap(false, Ordering::Relaxed) => {
                    "-BUSY a script runs\r\n"
                }
                "LATE" if faults.is_late.swap(false, Ordering::Relaxed) => {
                    faults.released.notified().await;
                    "-READONLY You can't write against a read only replica.\r\n"
                }
                _ => "+OK\r\n",
            };
            stream.write_all(reply.as_bytes()).await.unwrap();
        }
    }
}

/// The faults of the first calls with the names `BUSY` and `LATE`.
#[derive(Debug)]
struct Faults {
    is_busy: AtomicBool,
    is_late: AtomicBool,
    /// Releases the reply to the first call `LATE`.
    released: Notify,
}

/// Returns a batcher that is connected to a server in this process.
async fn batcher() -> Batcher<Names> {
    batcher_with_faults().await.0
}

/// Returns such a batcher, and the faults of its server.
async fn batcher_with_faults() -> (Batcher<Names>, Arc<Faults>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("redis://{}", listener.local_addr().unwrap()).parse().unwrap();
    let (is_busy, is_late) = (AtomicBool::new(true), AtomicBool::new(true));
    let faults = Arc::new(Faults { is_busy, is_late, released: Notify::new() });
    let of_server = Arc::clone(&faults);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, Arc::clone(&of_server)));
        }
    });
    let limits = LinkLimits {
        connect: PATIENCE,
        proof: PATIENCE,
        heartbeat: PATIENCE,
        heartbeat_answer: PATIENCE,
        ..LinkLimits::default()
    };
    let (role, codec) = (RequiredRole::Primary, Arc::new(Names));
    let batcher = Batcher::start(vec![server], role, codec, BatcherLimits::default(), limits);
    batcher.link().up().await;
    (batcher, faults)
}

impl Batcher<Names> {
    /// Sends `names` in one call, each for a slot of its own. Returns whether the server counts as
    /// refusing after the call.
    async fn refuses_after(&self, names: &[&'static str]) -> bool {
        let (mut batch, mut answers) = (Batch::new(), Vec::new());
        for (slot, name) in (0..).zip(names) {
            let ((answer, answered), deadline) = (oneshot::channel(), Instant::now() + PATIENCE);
            let priority = Priority::default();
            batch.push(*name, Waiter::new(answer, deadline, Route::Slot(slot), priority));
            answers.push(answered);
        }
        self.dispatcher.dispatch(batch).await;
        self.link().epochs().is_refusing()
    }
}

/// The defect: the reply to a call that only reads ended an outage, although a server that rejects
/// writes answers such calls.
#[tokio::test]
async fn only_a_write_ends_an_outage() {
    let batcher = batcher().await;
    assert!(batcher.refuses_after(&["DOWN"]).await);
    assert!(batcher.refuses_after(&["READ"]).await);
    assert!(batcher.refuses_after(&["READ", "DOWN"]).await);
    assert!(!batcher.refuses_after(&["READ", "WRITE"]).await);
}

/// The defect: calls to one slot without an owner made the outage of all slots longer.
#[tokio::test]
async fn a_node_that_serves_other_slots_has_no_outage() {
    let batcher = batcher().await;
    assert!(!batcher.refuses_after(&["DOWN", "WRITE"]).await);
    assert!(!batcher.refuses_after(&["WITHOUT_OWNER"]).await);
}

/// The defect: a node that made no charge after such a reply measured the next outage from it on.
#[tokio::test]
async fn a_server_that_was_busy_serves_calls_on_the_next_connection() {
    let batcher = batcher().await;
    assert!(!batcher.refuses_after(&["BUSY"]).await);
}

/// The defect: a node that went down in the middle of a call had no outage.
#[tokio::test]
async fn a_write_before_the_refusal_in_one_call_does_not_hide_it() {
    let batcher = batcher().await;
    assert!(batcher.refuses_after(&["WRITE", "DOWN"]).await);
}

/// The defect: after a failover, a late reply of the replaced server counted as a refusal of its
/// successor.
#[tokio::test]
async fn a_late_reply_on_an_earlier_connection_is_no_refusal() {
    let (batcher, faults) = batcher_with_faults().await;
    let replaced = async {
        let mut phases = batcher.link().phases();
        let generation = match &*phases.borrow() {
            Phase::Up(connection) => connection.generation,
            Phase::Connecting | Phase::Down => panic!("there is a connection"),
        };
        while faults.is_late.load(Ordering::Relaxed) {
            tokio::task::yield_now().await;
        }
        batcher.link().report(generation, Fault::Ended);
        let is_replaced = |phase: &Phase| match phase {
            Phase::Up(connection) => connection.generation != generation,
            Phase::Connecting | Phase::Down => true,
        };
        phases.wait_for(is_replaced).await.unwrap();
        faults.released.notify_one();
    };
    let (refuses, ()) = tokio::join!(batcher.refuses_after(&["LATE"]), replaced);
    assert!(!refuses);
}
