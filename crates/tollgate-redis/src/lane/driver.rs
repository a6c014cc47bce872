//! The task that carries a lane's calls to the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use redis::{Cmd, ErrorKind, RedisError, ServerErrorKind, Value};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::LaneError;
use super::queue::{Exit, Jobs};
use crate::codec::{Codec, Remedy};
use crate::error::StepError;
use crate::link::{Connection, Fault, Link, Phase};
use crate::offset::Reading;

/// Carries one call at a time: what gathers meanwhile is the next one.
pub(super) struct Driver<C: Codec> {
    exit: Exit<C>,
    codec: Arc<C>,
    link: Arc<Link>,
    phases: watch::Receiver<Phase>,
    counters: Arc<Counters>,
    /// The last connection that was found to be of no use.
    left: u64,
}

/// How a call ended.
enum Outcome {
    /// The server answered.
    Reply(Value),
    /// The server or the connection failed.
    Failed(RedisError),
    /// Nobody waits for the answer any more.
    GivenUp,
    /// The link has left the connection.
    Left,
}

/// What an error reply proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proof {
    /// Nothing ran, for this server cannot serve now: another may, or this one soon.
    Unfit,
    /// The connection is gone. What ran is unknown.
    Ended,
    /// The server refuses the call, and would again. What ran is unknown.
    Refused,
}

impl<C: Codec> Driver<C> {
    pub(super) fn new(
        exit: Exit<C>,
        codec: Arc<C>,
        link: Arc<Link>,
        counters: Arc<Counters>,
    ) -> Self {
        let phases = link.phases();
        Self { exit, codec, link, phases, counters, left: 0 }
    }

    pub(super) async fn run(mut self) {
        while let Some(mut batch) = self.exit.next().await {
            // What is to be sent again is first, and alone: it has the least time left.
            while !batch.is_empty() {
                batch = self.carry(batch).await;
            }
        }
    }

    /// Has the server decide `batch`; returns what is to be sent again.
    async fn carry(&mut self, mut batch: Jobs<C>) -> Jobs<C> {
        let Some(connection) = self.connection(batch.last_deadline()).await else {
            batch.tell_all(&LaneError::Unavailable);
            return Jobs::<C>::new();
        };
        batch.drop_given_up(Instant::now());
        batch.note_sending();
        let (Some(first), Some(last)) = (batch.first_deadline(), batch.last_deadline()) else {
            return batch;
        };
        self.counters.call(batch.len());
        let command = self.codec.encode(batch.jobs(), self.link.clock().deadline(first));
        match self.call(&connection, &command, last).await {
            Outcome::Reply(reply) => self.answer(batch, reply),
            Outcome::Failed(error) => self.fail(&connection, batch, &error, last).await,
            Outcome::GivenUp => Jobs::<C>::new(),
            Outcome::Left => {
                batch.tell_all(&LaneError::Lost);
                Jobs::<C>::new()
            }
        }
    }

    /// The connection to use; waits for one, until `last` at most, if there is hope.
    async fn connection(&mut self, last: Option<Instant>) -> Option<Arc<Connection>> {
        let left = self.left;
        // A connection that was left, or has ended, is still shown until the supervisor has acted:
        // what is not sent over it is known not to have run.
        let ready = self.phases.wait_for(|phase| match phase {
            Phase::Up(connection) => connection.generation > left && !connection.has_ended(),
            Phase::Seeking => false,
            Phase::Down => true,
        });
        match timeout_at(last?, ready).await {
            Ok(Ok(phase)) => match &*phase {
                Phase::Up(connection) => Some(Arc::clone(connection)),
                Phase::Seeking | Phase::Down => None,
            },
            _ => None,
        }
    }

    /// Sends `command` and waits for the reply, until `last` at most.
    async fn call(&mut self, connection: &Connection, command: &Cmd, last: Instant) -> Outcome {
        let generation = connection.generation;
        let left = self.phases.wait_for(
            |phase| !matches!(phase, Phase::Up(current) if current.generation == generation),
        );
        let sent = Instant::now();
        let outcome = tokio::select! {
            // An answer that is there counts, however late it is looked at.
            biased;
            reply = connection.call(command) => match reply {
                Ok(reply) => Outcome::Reply(reply),
                Err(error) => Outcome::Failed(error),
            },
            _ = left => Outcome::Left,
            () = sleep_until(last) => Outcome::GivenUp,
        };
        if let Outcome::Reply(reply) = &outcome {
            self.link.circuit().answered();
            if let Some(time) = self.codec.clock(reply) {
                self.link.clock().observe(Reading::of_millis(sent, Instant::now(), time));
            }
        }
        outcome
    }

    /// Tells the answers; returns the jobs that the server refused as late though their callers
    /// still wait: it was the deadline of another job of the call, or the shard's clock was set.
    fn answer(&self, batch: Jobs<C>, reply: Value) -> Jobs<C> {
        let answers = self.codec.decode(batch.jobs(), reply).into_iter();
        let missing = std::iter::repeat_with(|| Err(StepError::Corrupt));
        let late = LaneError::Step(StepError::Late);
        let again = batch.tell_each(
            answers.chain(missing).map(|answer| answer.map_err(LaneError::Step)),
            |error| *error == late,
        );
        self.counters.late(again.len());
        again
    }

    /// Does what an error reply asks for; returns the jobs that it proves not to have run.
    async fn fail(
        &mut self,
        connection: &Connection,
        batch: Jobs<C>,
        error: &RedisError,
        last: Instant,
    ) -> Jobs<C> {
        match self.codec.remedy(error) {
            Remedy::Reencode => return batch,
            Remedy::Load => {
                let mut handle = connection.handle();
                // If it fails, the next call will show why.
                let _ = timeout_at(last, self.codec.load(&mut handle)).await;
                return batch;
            }
            Remedy::Nothing => {}
        }
        match proof(error) {
            Proof::Unfit => {
                self.left = connection.generation;
                self.link.report(connection.generation, Fault::Unfit);
                batch
            }
            Proof::Ended => {
                self.left = connection.generation;
                self.link.report(connection.generation, Fault::Ended);
                batch.tell_all(&LaneError::Lost);
                Jobs::<C>::new()
            }
            Proof::Refused => {
                self.link.circuit().answered();
                let code = error.code().unwrap_or_else(|| error.category());
                batch.tell_all(&LaneError::Refused(code.to_owned()));
                Jobs::<C>::new()
            }
        }
    }
}

/// The table of replies that prove that nothing ran. All else is unknown, and not sent again.
fn proof(error: &RedisError) -> Proof {
    match error.kind() {
        ErrorKind::Server(
            ServerErrorKind::BusyLoading
            | ServerErrorKind::MasterDown
            | ServerErrorKind::ReadOnly
            | ServerErrorKind::ClusterDown
            | ServerErrorKind::Moved
            | ServerErrorKind::Ask
            | ServerErrorKind::TryAgain,
        ) => Proof::Unfit,
        // Codes that the client library has no name for.
        _ if matches!(error.code(), Some("NOREPLICAS" | "BUSY")) => Proof::Unfit,
        _ if tells_of_a_refused_write(error) => Proof::Unfit,
        ErrorKind::Server(_) | ErrorKind::Extension => Proof::Refused,
        _ => Proof::Ended,
    }
}

/// Whether a script's first write was refused, and so every one. Before 7.0 a server tells that in
/// the middle of an error of its own, which has no code.
fn tells_of_a_refused_write(error: &RedisError) -> bool {
    let detail = error.detail().unwrap_or_default();
    ["-READONLY ", "-NOREPLICAS "].iter().any(|code| detail.contains(code))
}

/// What a lane has done since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneCounts {
    /// Calls that were sent.
    pub calls: u64,
    /// Jobs that were sent in them; one that was sent twice counts twice.
    pub jobs: u64,
    /// Jobs that the server refused as late, and that were sent again.
    pub late: u64,
    /// Jobs that were turned away because the lane was full.
    pub overloaded: u64,
    /// Jobs that had no answer by their deadline.
    pub timed_out: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    calls: AtomicU64,
    jobs: AtomicU64,
    late: AtomicU64,
    overloaded: AtomicU64,
    timed_out: AtomicU64,
}

impl Counters {
    fn call(&self, jobs: usize) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.jobs.fetch_add(jobs as u64, Ordering::Relaxed);
    }

    fn late(&self, jobs: usize) {
        self.late.fetch_add(jobs as u64, Ordering::Relaxed);
    }

    pub(super) fn overloaded(&self) {
        self.overloaded.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn timed_out(&self) {
        self.timed_out.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn counts(&self) -> LaneCounts {
        LaneCounts {
            calls: self.calls.load(Ordering::Relaxed),
            jobs: self.jobs.load(Ordering::Relaxed),
            late: self.late.load(Ordering::Relaxed),
            overloaded: self.overloaded.load(Ordering::Relaxed),
            timed_out: self.timed_out.load(Ordering::Relaxed),
        }
    }
}
