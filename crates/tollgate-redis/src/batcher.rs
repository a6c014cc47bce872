//! The batcher: jobs that wait for a server are sent together in one call.

mod batch;
mod call;
mod counters;
mod dispatcher;
mod driver;
mod error;
mod pacing;
mod queue;
mod route;
#[cfg(all(test, shuttle))]
mod schedules;
mod sync;

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout, timeout_at};
use tollgate_core::Millis;
use tollgate_link::{CircuitState, Fault, LinkLimits, Progress};

pub use self::counters::BatcherCounts;
pub use self::error::BatcherError;
pub(crate) use self::route::{Priority, Route};

use self::batch::{Batch, Waiter};
use self::counters::Counters;
use self::dispatcher::Dispatcher;
use self::driver::Driver;
use self::pacing::{Pacing, Slot};
use self::queue::{QueueSender, queue};
use crate::codec::Codec;
use crate::connection::{Endpoint, LinkError};
use crate::link::{Link, MAX_CONNECTIONS, Phase, RequiredRole};
use crate::members::Members;

/// The limits of a batcher's queue and calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatcherLimits {
    /// The most jobs in the queue. Further jobs are rejected at once.
    pub waiting: usize,
    /// The most bytes of the jobs in the queue.
    pub waiting_bytes: usize,
    /// The most jobs in one call. The server serves no other client while it executes them.
    pub call: usize,
    /// The most bytes of the jobs in one call. A job with more bytes is sent in a call of its own.
    pub call_bytes: usize,
    /// The shortest time after which a call in flight is overdue. A call is overdue when it has
    /// taken longer than this time and longer than twice the estimated round trip. An overdue call
    /// no longer delays other calls.
    pub overdue_after: Duration,
    /// The longest time that a call on a connection waits for its reply after the batcher has
    /// started to replace the connection. The deadline of the call can end the wait earlier. The
    /// wait is useful because a demoted server still reports which calls it did not execute. During
    /// the wait, the batcher sends no other call to the shard.
    pub disconnect_grace: Duration,
}

impl Default for BatcherLimits {
    fn default() -> Self {
        Self {
            waiting: 8192,
            waiting_bytes: 8 << 20,
            call: 128,
            call_bytes: 256 << 10,
            overdue_after: Duration::from_millis(1),
            disconnect_grace: Duration::from_millis(250),
        }
    }
}

/// The status of a batcher and of its connections to one server.
#[derive(Clone, Debug)]
pub struct BatcherStatus {
    /// The address of the server that the batcher is connected to, or `None` without a connection.
    pub address: Option<String>,
    /// The state of the batcher's circuit breaker.
    pub circuit_state: CircuitState,
    /// How often the batcher's circuit breaker has opened.
    pub opened: u64,
    /// How often the batcher detected that the server's clock was set to another time.
    pub clock_steps: u64,
    /// The counts of calls and jobs since the batcher was opened.
    pub counts: BatcherCounts,
    /// The estimated round trip of a call, without the time for which the call waits in the
    /// batcher, the network or the server. `None` before the first reply.
    pub round_trip: Option<Duration>,
    /// The reason why the last attempt to connect failed or the last connection was lost. `None` if
    /// no attempt has failed and no connection was lost.
    pub last_error: Option<LinkError>,
}

/// The longest time for a decision if the caller sets no deadline.
pub const DEFAULT_DEADLINE: Duration = Duration::from_millis(15);

/// The maximum number of calls in flight of one batcher. The maximum applies separately to the
/// calls that callers send themselves and to the calls with queued jobs.
pub(crate) const CALLS_IN_FLIGHT: usize = MAX_CONNECTIONS;

/// Sends the jobs of all callers to one server.
///
/// If the limits on calls in flight permit another call, the caller of a job sends the job itself
/// at once, and no other task has to wake up. If the limits do not permit another call, the job is
/// queued. The queued jobs are sent in one call when a call ends or is overdue. A distant server
/// has up to [`CALLS_IN_FLIGHT`] calls in flight, a near server has a single call. Each call uses a
/// connection of its own if possible, so a delayed reply delays no other call. The server decides
/// the jobs of a call one after the other, but may decide the calls in flight in any order.
///
/// - Every job is answered by its deadline, whatever the server does.
/// - A job is sent again only if the server proved that the job did not run.
/// - If a caller stops waiting, its job is dropped if it has not been sent. A job that has been
///   sent is decided once, or the server refuses it as late.
pub(crate) struct Batcher<C: Codec> {
    codec: Arc<C>,
    entry: QueueSender<C>,
    link: Arc<Link>,
    counters: Arc<Counters>,
    dispatcher: Arc<Dispatcher<C>>,
    pacing: Arc<Pacing>,
    driver: AbortHandle,
}

impl<C: Codec> Batcher<C> {
    /// Opens a batcher to the first server in `candidates` that has the role `required_role`. Needs
    /// a tokio runtime.
    pub(crate) fn start(
        candidates: Vec<Endpoint>,
        required_role: RequiredRole,
        codec: Arc<C>,
        limits: BatcherLimits,
        link_limits: LinkLimits,
    ) -> Self {
        Self::follow(
            Members::of(candidates, &link_limits),
            required_role,
            codec,
            limits,
            link_limits,
        )
    }

    /// Opens a batcher to the first server of `members` that has the role `required_role`. The
    /// batcher moves to another server when the member list requires that. Needs a tokio runtime.
    pub(crate) fn follow(
        members: Arc<Members>,
        required_role: RequiredRole,
        codec: Arc<C>,
        limits: BatcherLimits,
        link_limits: LinkLimits,
    ) -> Self {
        let link = Arc::new(Link::start(members, required_role, Arc::clone(&codec), link_limits));
        let counters = Arc::<Counters>::default();
        let (entry, exit) = queue(limits);
        let pacing = Arc::new(Pacing::new(limits.overdue_after));
        let dispatcher = Arc::new(Dispatcher::new(
            Arc::clone(&codec),
            Arc::clone(&link),
            Arc::clone(&counters),
            Arc::clone(&pacing),
            limits.disconnect_grace,
        ));
        let driver = Driver::new(exit, Arc::clone(&dispatcher), Arc::clone(&pacing));
        let driver = tokio::spawn(driver.run()).abort_handle();
        Self { codec, entry, link, counters, dispatcher, pacing, driver }
    }

    /// Sends `job` to the server, and returns the answer or an error by `deadline`.
    ///
    /// # Errors
    /// [`BatcherError`], which says whether the job may have been executed. If the server is known
    /// to be down, or the queue is full, the error is returned at once.
    pub(crate) async fn submit(
        &self,
        job: C::Job,
        deadline: Instant,
    ) -> Result<C::Answer, BatcherError> {
        self.submit_by(Route::Any, Priority::Normal, job, deadline).await
    }

    /// Submits a job like [`Self::submit`], with a route and a priority. `route` determines which
    /// other jobs may share a command with this job. `priority` determines whether this job is
    /// rejected while charges are held back.
    ///
    /// # Errors
    /// The errors of [`Self::submit`], and [`BatcherError::Redirected`], which is returned at once.
    pub(crate) async fn submit_by(
        &self,
        route: Route,
        priority: Priority,
        job: C::Job,
        deadline: Instant,
    ) -> Result<C::Answer, BatcherError> {
        let circuit = self.link.circuit();
        if circuit.circuit_state() == CircuitState::Open {
            return Err(BatcherError::Unavailable);
        }
        let submitted = circuit.progress();
        let (answer, mut answered) = oneshot::channel();
        let waiter = Waiter::new(answer, deadline, route, priority);
        let answer = if let Some(mut slot) = self.slot() {
            let mut call = pin!(self.dispatcher.dispatch(Batch::of(job, waiter)));
            if timeout(slot.overdue_after(), call.as_mut()).await.is_err() {
                slot.overdue();
                call.await;
            }
            answered.try_recv().ok()
        } else {
            self.put(job, waiter)?;
            timeout_at(deadline, answered).await.ok().and_then(Result::ok)
        };
        answer.unwrap_or_else(|| Err(self.unanswered(submitted, deadline)))
    }

    /// Returns a [`Slot`] if the caller may send its job itself. The caller may send the job if no
    /// other job is queued and the limits on calls in flight permit another call. Without a
    /// connection, the caller must queue its job, and the [driver](Driver) waits for the connection
    /// on behalf of all callers.
    fn slot(&self) -> Option<Slot> {
        let is_connected = self.link.circuit().circuit_state() == CircuitState::Closed;
        if is_connected && self.entry.is_empty() { self.pacing.try_begin() } else { None }
    }

    fn put(&self, job: C::Job, waiter: Waiter<C::Answer>) -> Result<(), BatcherError> {
        let bytes = self.codec.job_bytes(&job);
        self.entry.put(job, bytes, waiter).inspect_err(|error| {
            if *error == BatcherError::Overloaded {
                self.counters.overloaded();
            }
        })
    }

    /// Returns the error for a job that got no answer: [`BatcherError::Unavailable`] before
    /// `deadline`, and [`BatcherError::TimedOut`] after it. In the second case, also counts the
    /// missed deadline and reports it to the link. `submitted` is the progress of the server at the
    /// time when the job was submitted.
    fn unanswered(&self, submitted: Progress, deadline: Instant) -> BatcherError {
        if Instant::now() < deadline {
            return BatcherError::Unavailable;
        }
        self.counters.timed_out();
        self.link.record_miss(submitted);
        BatcherError::TimedOut
    }

    /// Drops the connection to the server at `address`, if the batcher uses that connection, and
    /// connects to another candidate. Called when the server has reported that it is no longer the
    /// primary.
    pub(crate) fn leave(&self, address: &str) {
        if let Phase::Up(connection) = &*self.link.phases().borrow()
            && connection.address() == address
        {
            self.dispatcher.leave(connection);
            self.link.report(connection.generation, Fault::Unfit);
        }
    }

    /// Holds back charges from now on. Until the current replication epoch is
    /// [released](Self::release), the batcher rejects every job that does not have
    /// [`Priority::Replay`] with [`BatcherError::Unavailable`].
    pub(crate) fn pause_until_replayed(&self) {
        self.link.epochs().pause_until_replayed();
    }

    /// Returns whether the batcher rejects charges now, because the current replication epoch is
    /// not [released](Self::release).
    pub(crate) fn holds(&self) -> bool {
        self.link.epochs().holds()
    }

    /// Returns the priority of a job. While charges are held back, a job that only reads has the
    /// priority of replay jobs, because such a job decides nothing. Every other job has the normal
    /// priority. `is_read_only` returns whether the job only reads.
    pub(crate) fn priority(&self, is_read_only: impl FnOnce() -> bool) -> Priority {
        if self.holds() && is_read_only() { Priority::Replay } else { Priority::Normal }
    }

    /// Returns the number of the replication epoch of the server's data.
    pub(crate) fn epoch(&self) -> u64 {
        self.link.epochs().number()
    }

    /// Returns the time since the start of the outage before the current replication epoch.
    pub(crate) fn outage(&self) -> Millis {
        self.link.epochs().outage(Instant::now())
    }

    /// Takes over the start of the outage of `before`, the batcher that sent jobs to the same data
    /// until now.
    pub(crate) fn take_over(&self, before: &Self) {
        self.link.epochs().take_over(before.link.epochs(), Instant::now());
    }

    /// Permits charges in the replication epoch with the number `epoch`, after missing charges
    /// were replayed.
    pub(crate) fn release(&self, epoch: u64) {
        self.link.epochs().release(epoch);
    }

    /// Returns the link to the server.
    pub(crate) fn link(&self) -> &Link {
        &self.link
    }

    /// Returns the codec of the commands.
    pub(crate) fn codec(&self) -> &C {
        &self.codec
    }

    /// Returns the status of the batcher.
    pub(crate) fn status(&self) -> BatcherStatus {
        BatcherStatus {
            address: self.link.address(),
            circuit_state: self.link.circuit().circuit_state(),
            opened: self.link.circuit().opened(),
            clock_steps: self.link.clock().steps(),
            counts: self.counters.counts(),
            round_trip: self.pacing.round_trip(),
            last_error: self.link.last_error(),
        }
    }
}

impl<C: Codec> Drop for Batcher<C> {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl<C: Codec> fmt::Debug for Batcher<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batcher")
            .field("entry", &self.entry)
            .field("link", &self.link)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}
