//! Reads items, and changes them by compare-and-swap.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};
use tollgate_core::decide::expires_at;
use tollgate_core::{Cell, Millis, Reading, Timestamp};

use crate::error::MemcachedError;
use crate::expiry::expires;
use crate::job::{Decision, Job};
use crate::key::refund_name;
use crate::layout::{ExpiryMargin, View};
use crate::link::{CallError, Connection, Server};
use crate::wire::{Command, Item, Reply};

/// The most attempts to read when connections are lost.
const READ_TRIES: u32 = 3;

/// The most attempts to read and write one item. A further attempt is necessary if another node
/// changes the item between the read and the write.
pub const MAX_ATTEMPTS: u32 = 16;

/// The number of attempts to change an item that follow each other without a pause. A random pause
/// precedes each further attempt.
const AT_ONCE: u32 = 3;

/// The longest random pause between two attempts.
const MAX_PAUSE: Duration = Duration::from_millis(4);

/// The additional lifetime of the reset item of a fixed window, compared with its count item.
const RESET_LATER: Millis = Millis::from_secs(2);

/// The operations on items of one server, and counters of their failures.
#[derive(Debug)]
pub(crate) struct Steps {
    server: Server,
    random: RandomState,
    pub(crate) counters: Counters,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// The number of compare-and-swaps that failed because another node changed the item first.
    pub(crate) cas_conflicts: AtomicU64,
    /// The number of calls that failed after too many failed compare-and-swaps.
    pub(crate) contended: AtomicU64,
    /// The number of charges of failed calls that could not be refunded.
    pub(crate) unrefunded: AtomicU64,
    /// The number of pairs of items in which one item was missing before its expiry.
    pub(crate) torn: AtomicU64,
}

/// A state, and the connection on which the state was read. The tokens of the state are valid only
/// for the server process at that connection, because a restarted server numbers versions from 1
/// again.
pub(crate) struct ReadState {
    pub(crate) view: View,
    connection: Arc<Connection>,
}

/// The result of executing a job on the state of its items.
pub(crate) enum StepOutcome {
    /// The job was done.
    Done(Reading),
    /// The charge no longer fits, because other requests were charged since the read. The value is
    /// the newer state.
    NoRoom(ReadState),
}

/// Whether a compare-and-swap succeeded.
enum Swap {
    Stored,
    Conflict,
}

impl Steps {
    pub(crate) fn new(server: Server) -> Self {
        Self { server, random: RandomState::new(), counters: Counters::default() }
    }

    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    /// Reads the items of all `jobs` in one round trip.
    ///
    /// A read changes nothing, so the read is repeated if a connection is lost.
    pub(crate) async fn read(
        &self,
        jobs: &[Job],
        deadline: Instant,
    ) -> Result<Vec<ReadState>, MemcachedError> {
        let mut tries = 1;
        loop {
            let connection = self.connection(deadline).await?;
            match self.read_by(&connection, jobs, deadline).await {
                Err(MemcachedError::Lost) if tries < READ_TRIES => tries += 1,
                Err(MemcachedError::Lost) => return Err(MemcachedError::Unavailable),
                read => return read,
            }
        }
    }

    /// Reads the items of `job`.
    pub(crate) async fn read_one(
        &self,
        job: &Job,
        deadline: Instant,
    ) -> Result<ReadState, MemcachedError> {
        let mut seen = self.read(std::slice::from_ref(job), deadline).await?;
        seen.pop().ok_or(MemcachedError::Unavailable)
    }

    async fn read_by(
        &self,
        connection: &Arc<Connection>,
        jobs: &[Job],
        deadline: Instant,
    ) -> Result<Vec<ReadState>, MemcachedError> {
        let mut pending = Vec::with_capacity(jobs.len());
        for key in jobs.iter().flat_map(|job| job.names.in_order()) {
            pending.push(connection.put(&Command::Get { key }).map_err(unanswered)?);
        }
        let mut replies = pending.into_iter();
        let mut seen = Vec::with_capacity(jobs.len());
        for job in jobs {
            let mut stored = Vec::with_capacity(2);
            for reply in replies.by_ref().take(job.names.in_order().count()) {
                stored.push(match reply.reply(deadline).await.map_err(unanswered)? {
                    Reply::Value(stored) => Some(stored),
                    Reply::Missing => None,
                    other => return Err(unexpected(&other)),
                });
            }
            let view = job.names.view(stored);
            if view.is_torn {
                self.counters.torn.fetch_add(1, Ordering::Relaxed);
            }
            seen.push(ReadState { view, connection: Arc::clone(connection) });
        }
        Ok(seen)
    }

    /// Executes `job` on the state in `seen`. If another node changed the state since the read,
    /// executes `job` on the newer state.
    ///
    /// After an error, the items may have been changed, unless the error [proves that nothing
    /// changed](MemcachedError::proves_nothing_changed).
    pub(crate) async fn settle(
        &self,
        job: &Job,
        seen: ReadState,
        decision: Decision,
        now: Timestamp,
        deadline: Instant,
    ) -> Result<StepOutcome, MemcachedError> {
        let step = |view: &View| {
            let has_room = decision == Decision::Refused || job.fits(view, now);
            has_room.then(|| job.decide(view, decision, now))
        };
        Ok(match self.change(job, seen, now, deadline, step).await? {
            Ok(reading) => StepOutcome::Done(reading),
            Err(seen) => StepOutcome::NoRoom(seen),
        })
    }

    /// Changes the items of `job` by compare-and-swap to the state that `step` computes, and
    /// returns the first value that `step` returns. If `step` returns `None`, changes nothing and
    /// returns the state on which `step` was called.
    pub(crate) async fn change<T>(
        &self,
        job: &Job,
        mut seen: ReadState,
        now: Timestamp,
        deadline: Instant,
        step: impl Fn(&View) -> Option<(T, Option<Cell>)>,
    ) -> Result<Result<T, ReadState>, MemcachedError> {
        for attempt in 1..=MAX_ATTEMPTS {
            let Some((answer, next)) = step(&seen.view) else { return Ok(Err(seen)) };
            if next == seen.view.cell {
                return Ok(Ok(answer));
            }
            if let Swap::Stored = self.swap(job, &seen, next.as_ref(), now, deadline).await? {
                return Ok(Ok(answer));
            }
            self.counters.cas_conflicts.fetch_add(1, Ordering::Relaxed);
            self.pause(attempt, deadline).await?;
            seen = self.read_one(job, deadline).await?;
        }
        self.counters.contended.fetch_add(1, Ordering::Relaxed);
        Err(MemcachedError::Contended)
    }

    /// Replaces the state in `seen` by `next`, by compare-and-swap.
    async fn swap(
        &self,
        job: &Job,
        seen: &ReadState,
        next: Option<&Cell>,
        now: Timestamp,
        deadline: Instant,
    ) -> Result<Swap, MemcachedError> {
        let expires_at = next.map_or(now, |next| expires_at(next, &job.limit));
        let expires = |kept| self.expires(expires_at, now, job, kept);
        let commands = seen.view.changes(&job.names, next, expires).ok_or(MemcachedError::Full)?;
        for command in &commands {
            match seen.connection.call(command, deadline).await {
                Ok(Reply::Done) => {}
                Ok(Reply::Conflict | Reply::Missing) => return Ok(Swap::Conflict),
                Ok(other) => return Err(unexpected(&other)),
                // The command was not sent, and the tokens that were read on the closed connection
                // are no longer valid.
                Err(CallError::Closed) => return Ok(Swap::Conflict),
                Err(reason) => return Err(unanswered(reason)),
            }
        }
        Ok(Swap::Stored)
    }

    /// Records that the refund of `job` was requested. Returns false if an earlier call recorded
    /// the same refund.
    pub(crate) async fn remember(
        &self,
        job: &Job,
        now: Timestamp,
        deadline: Instant,
    ) -> Result<bool, MemcachedError> {
        let Some(guard) = job.guard(now) else { return Ok(true) };
        let key = &refund_name(job.names.first(), guard.id);
        let expires = self.expires(guard.until, now, job, ExpiryMargin::None);
        let item = Item { value: Vec::new(), flags: 0, expires };
        let connection = self.connection(deadline).await?;
        match connection.call(&Command::Add { key, item }, deadline).await {
            Ok(Reply::Done) => Ok(true),
            Ok(Reply::Conflict) => Ok(false),
            Ok(other) => Err(unexpected(&other)),
            Err(reason) => Err(unanswered(reason)),
        }
    }

    /// Removes the record that [`remember`](Self::remember) made, because nothing was refunded.
    pub(crate) async fn forget(&self, job: &Job, now: Timestamp, deadline: Instant) {
        let Some(guard) = job.guard(now) else { return };
        let Ok(connection) = self.connection(deadline).await else { return };
        let key = &refund_name(job.names.first(), guard.id);
        // If this removal fails, the refund cannot be repeated and is lost. A lost refund is better
        // than a refund that is made twice.
        if let Ok(Reply::Value(stored)) = connection.call(&Command::Get { key }, deadline).await {
            let remove = Command::Remove { key, token: stored.token };
            let _ = connection.call(&remove, deadline).await;
        }
    }

    /// Returns the next connection in rotation, or an error if no connection is open before
    /// `deadline`.
    pub(crate) async fn connection(
        &self,
        deadline: Instant,
    ) -> Result<Arc<Connection>, MemcachedError> {
        self.server.connection(deadline).await.ok_or(MemcachedError::Unavailable)
    }

    fn expires(&self, expires_at: Timestamp, now: Timestamp, job: &Job, kept: ExpiryMargin) -> i32 {
        let expires_at = match kept {
            ExpiryMargin::None => expires_at,
            ExpiryMargin::Longer => expires_at.after(RESET_LATER),
        };
        expires(expires_at, now, job.limit.skew_max(), self.server.time())
    }

    /// Waits for a short random time before the attempt with the number `attempt`, except before
    /// the first attempts. The pause separates nodes that compete for the same item. Returns an
    /// error if `deadline` passes.
    async fn pause(&self, attempt: u32, deadline: Instant) -> Result<(), MemcachedError> {
        if attempt < AT_ONCE {
            return Ok(());
        }
        let draw = self.draw(attempt);
        let longest = u64::try_from(MAX_PAUSE.as_micros()).unwrap_or(u64::MAX);
        let pause = sleep(Duration::from_micros(draw % (longest + 1)));
        timeout_at(deadline, pause).await.map_err(|_| MemcachedError::Contended)
    }

    /// Returns a random number. In a simulation, the number is derived from the seed of the
    /// simulation.
    fn draw(&self, attempt: u32) -> u64 {
        #[cfg(feature = "simulation")]
        if let Some(number) = tollgate_link::simulation::draw() {
            return number;
        }
        self.random.hash_one((attempt, self.counters.cas_conflicts.load(Ordering::Relaxed)))
    }
}

pub(crate) fn unanswered(reason: CallError) -> MemcachedError {
    match reason {
        CallError::Overloaded => MemcachedError::Overloaded,
        CallError::Closed | CallError::Lost => MemcachedError::Lost,
        CallError::TimedOut => MemcachedError::TimedOut,
    }
}

pub(crate) fn unexpected(reply: &Reply) -> MemcachedError {
    match reply {
        Reply::Full => MemcachedError::Full,
        _ => MemcachedError::Refused,
    }
}
