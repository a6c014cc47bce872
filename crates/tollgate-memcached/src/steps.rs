//! Reading items, and changing them by compare-and-swap.

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

/// How often reading is tried where a connection is lost.
const READ_TRIES: u32 = 3;

/// How often one item is read and written anew because other nodes changed it in between.
pub const MAX_ATTEMPTS: u32 = 16;

/// Attempts that follow each other at once; those after them wait for a time drawn by chance.
const AT_ONCE: u32 = 3;

/// The longest of those waits.
const MAX_PAUSE: Duration = Duration::from_millis(4);

/// By how much longer the reset of a pair is kept than its count.
const RESET_LATER: Millis = Millis::from_secs(2);

/// What is done to items of one server, and how often it went wrong.
#[derive(Debug)]
pub(crate) struct Steps {
    server: Server,
    random: RandomState,
    pub(crate) counters: Counters,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Compare-and-swaps that another node outran.
    pub(crate) outrun: AtomicU64,
    /// Calls that gave up because of that.
    pub(crate) contended: AtomicU64,
    /// Takes for nothing that could not be given back.
    pub(crate) unrefunded: AtomicU64,
    /// Pairs of items of which one was found missing that should have been there.
    pub(crate) torn: AtomicU64,
}

/// A state, and the connection that it was read by: tokens are good for the server process at its
/// other end alone, for the next one numbers from 1 again.
pub(crate) struct ReadState {
    pub(crate) view: View,
    connection: Arc<Connection>,
}

/// How a job ended.
pub(crate) enum StepOutcome {
    /// It was done.
    Done(Reading),
    /// What others did since it was read leaves no room for it, as was seen then.
    NoRoom(ReadState),
}

/// Whether a change was made.
enum Swap {
    Won,
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
    /// Reading changes nothing, so it is tried again where a connection is lost.
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

    /// Does `job` on what was `seen`, or on what is there by then.
    ///
    /// Unless the error [leaves it open](MemcachedError::proves_nothing_changed), nothing was changed.
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

    /// Makes of the items of `job` what `step` makes of them, which answers something and the next
    /// cell; or nothing, and what was seen then is answered.
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
            if let Swap::Won = self.swap(job, &seen, next.as_ref(), now, deadline).await? {
                return Ok(Ok(answer));
            }
            self.counters.outrun.fetch_add(1, Ordering::Relaxed);
            self.pause(attempt, deadline).await?;
            seen = self.read_one(job, deadline).await?;
        }
        self.counters.contended.fetch_add(1, Ordering::Relaxed);
        Err(MemcachedError::Contended)
    }

    /// Puts `next` in the place of what was `seen`.
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
            match seen.connection.ask(command, deadline).await {
                Ok(Reply::Done) => {}
                Ok(Reply::Conflict | Reply::Missing) => return Ok(Swap::Conflict),
                Ok(other) => return Err(unexpected(&other)),
                // It was not sent, and what was read by it is worth nothing any more.
                Err(CallError::Closed) => return Ok(Swap::Conflict),
                Err(reason) => return Err(unanswered(reason)),
            }
        }
        Ok(Swap::Won)
    }

    /// Remembers that the refund of `job` was asked for; false if it was before.
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
        match connection.ask(&Command::Add { key, item }, deadline).await {
            Ok(Reply::Done) => Ok(true),
            Ok(Reply::Conflict) => Ok(false),
            Ok(other) => Err(unexpected(&other)),
            Err(reason) => Err(unanswered(reason)),
        }
    }

    /// Forgets what [`remember`](Self::remember) remembered, because nothing was given back.
    pub(crate) async fn forget(&self, job: &Job, now: Timestamp, deadline: Instant) {
        let Some(guard) = job.guard(now) else { return };
        let Ok(connection) = self.connection(deadline).await else { return };
        let key = &refund_name(job.names.first(), guard.id);
        // Where this fails the refund is lost, which is less than a second one.
        if let Ok(Reply::Value(stored)) = connection.ask(&Command::Get { key }, deadline).await {
            let remove = Command::Remove { key, token: stored.token };
            let _ = connection.ask(&remove, deadline).await;
        }
    }

    /// A connection whose turn it is.
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

    /// Waits a little, by chance, so that nodes that outrun each other fall out of step.
    async fn pause(&self, attempt: u32, deadline: Instant) -> Result<(), MemcachedError> {
        if attempt < AT_ONCE {
            return Ok(());
        }
        let draw = self.random.hash_one((attempt, self.counters.outrun.load(Ordering::Relaxed)));
        let longest = u64::try_from(MAX_PAUSE.as_micros()).unwrap_or(u64::MAX);
        let pause = sleep(Duration::from_micros(draw % (longest + 1)));
        timeout_at(deadline, pause).await.map_err(|_| MemcachedError::Contended)
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
