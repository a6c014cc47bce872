//! Many decisions, few calls: what waits for a server travels together.

mod batch;
mod call;
mod carrier;
mod counters;
mod driver;
mod error;
mod queue;
mod route;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit, oneshot};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};
use tollgate_core::Millis;

pub use self::counters::LaneCounts;
pub use self::error::LaneError;
pub(crate) use self::route::{Rank, Route};

use self::batch::{Batch, Waiter};
use self::carrier::Carrier;
use self::counters::Counters;
use self::driver::Driver;
use self::queue::{Entry, queue};
use crate::circuit::Gate;
use crate::codec::Codec;
use crate::link::{Duty, Endpoint, Fault, Link, LinkError, LinkLimits, Phase};
use crate::topology::Roster;

/// The bounds of what a lane holds and sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneLimits {
    /// Jobs that wait to be sent; one more is turned away at once.
    pub waiting: usize,
    /// Bytes of the jobs that wait to be sent.
    pub waiting_bytes: usize,
    /// Jobs in one call. The server serves nobody else while it decides them.
    pub call: usize,
    /// Bytes of the jobs in one call; a job that is larger travels alone.
    pub call_bytes: usize,
}

impl Default for LaneLimits {
    fn default() -> Self {
        Self { waiting: 8192, waiting_bytes: 8 << 20, call: 128, call_bytes: 256 << 10 }
    }
}

/// How the lane to one server stands.
#[derive(Clone, Debug)]
pub struct LaneStatus {
    /// Where it leads now, if it is connected.
    pub address: Option<String>,
    /// What its circuit lets callers do.
    pub gate: Gate,
    /// How often its circuit has opened.
    pub opened: u64,
    /// How often the server's clock was found set.
    pub clock_steps: u64,
    /// What it has carried.
    pub counts: LaneCounts,
    /// Why the last attempt to connect failed, or the last connection was lost.
    pub last_error: Option<LinkError>,
}

/// How long a decision may take unless its caller says otherwise.
pub const DEFAULT_DEADLINE: Duration = Duration::from_millis(15);

/// One connection's way to a server, shared by all who ask it.
///
/// While a call is under way, jobs gather; when it ends, they are sent in one call. A job that
/// finds the lane idle is sent at once, by its caller: no other task has to wake up. The jobs of a call are decided one after the other.
///
/// - Every job is answered by its deadline, whatever the server does.
/// - A job is sent again only if the server proved that it did not run.
/// - A caller that stops waiting takes back a job that was not sent; one that was sent is decided
///   once, or refused by the server as late.
pub(crate) struct Lane<C: Codec> {
    codec: Arc<C>,
    entry: Entry<C>,
    link: Arc<Link>,
    counters: Arc<Counters>,
    carrier: Arc<Carrier<C>>,
    /// One permit: whose turn it is to send.
    turn: Arc<Semaphore>,
    driver: AbortHandle,
}

impl<C: Codec> Lane<C> {
    /// Opens a lane to the first of `candidates` that does `duty`. Needs a tokio runtime.
    pub(crate) fn start(
        candidates: Vec<Endpoint>,
        duty: Duty,
        codec: Arc<C>,
        limits: LaneLimits,
        link_limits: LinkLimits,
    ) -> Self {
        Self::follow(Roster::of(candidates, &link_limits), duty, codec, limits, link_limits)
    }

    /// Opens a lane to the first of the servers of `roster` that does `duty`, and goes on to another
    /// where the roster says so. Needs a tokio runtime.
    pub(crate) fn follow(
        roster: Arc<Roster>,
        duty: Duty,
        codec: Arc<C>,
        limits: LaneLimits,
        link_limits: LinkLimits,
    ) -> Self {
        let link = Arc::new(Link::start(roster, duty, Arc::clone(&codec), link_limits));
        let counters = Arc::<Counters>::default();
        let (entry, exit) = queue(limits);
        let carrier = Arc::new(Carrier::new(
            Arc::clone(&codec),
            Arc::clone(&link),
            Arc::clone(&counters),
            link_limits.last_words,
        ));
        let turn = Arc::new(Semaphore::new(1));
        let driver = Driver::new(exit, Arc::clone(&carrier), Arc::clone(&turn));
        let driver = tokio::spawn(driver.run()).abort_handle();
        Self { codec, entry, link, counters, carrier, turn, driver }
    }

    /// Has the server decide `job` by `deadline`.
    ///
    /// # Errors
    /// [`LaneError`] says whether the job may have been carried out all the same. Where the server
    /// is known not to answer, or the lane is full, the error comes at once.
    pub(crate) async fn submit(
        &self,
        job: C::Job,
        deadline: Instant,
    ) -> Result<C::Answer, LaneError> {
        self.submit_by(Route::Any, Rank::Usual, job, deadline).await
    }

    /// As [`Self::submit`], of a job that goes by `route`, to a node of a cluster perhaps, and is
    /// held back as `rank` says.
    ///
    /// # Errors
    /// Also [`LaneError::Redirected`], at once.
    pub(crate) async fn submit_by(
        &self,
        route: Route,
        rank: Rank,
        job: C::Job,
        deadline: Instant,
    ) -> Result<C::Answer, LaneError> {
        let circuit = self.link.circuit();
        if circuit.gate() == Gate::Open {
            return Err(LaneError::Unavailable);
        }
        let generation = circuit.generation();
        let (answer, mut answered) = oneshot::channel();
        let waiter = Waiter::new(answer, deadline, route, rank);
        let answer = if let Some(_turn) = self.idle_turn() {
            self.carrier.carry(Batch::of(job, waiter)).await;
            answered.try_recv().ok()
        } else {
            self.put(job, waiter)?;
            timeout_at(deadline, answered).await.ok().and_then(Result::ok)
        };
        answer.unwrap_or_else(|| Err(self.unanswered(generation, deadline)))
    }

    /// The turn to send, if nobody else has it or waits for it. While the lane is not connected,
    /// the driver waits for all.
    fn idle_turn(&self) -> Option<SemaphorePermit<'_>> {
        if self.link.circuit().gate() != Gate::Closed || !self.entry.is_empty() {
            return None;
        }
        self.turn.try_acquire().ok()
    }

    fn put(&self, job: C::Job, waiter: Waiter<C::Answer>) -> Result<(), LaneError> {
        let bytes = self.codec.job_bytes(&job);
        self.entry.put(job, bytes, waiter).inspect_err(|error| {
            if *error == LaneError::Overloaded {
                self.counters.overloaded();
            }
        })
    }

    /// Why a job was told nothing.
    fn unanswered(&self, generation: u64, deadline: Instant) -> LaneError {
        if Instant::now() < deadline {
            return LaneError::Unavailable;
        }
        self.counters.timed_out();
        self.link.missed(generation);
        LaneError::TimedOut
    }

    /// Leaves the server at `address` for another candidate, if the lane leads there: it has told
    /// that it is not the primary any more.
    pub(crate) fn leave(&self, address: &str) {
        if let Phase::Up(connection) = &*self.link.phases().borrow()
            && connection.address() == address
        {
            self.carrier.leave(connection);
            self.link.report(connection.generation, Fault::Unfit);
        }
    }

    /// Holds what is not [ahead](Rank::Ahead) back from now on, with
    /// [`LaneError::Unavailable`], while the data is of a history that was not released.
    pub(crate) fn hold_until_released(&self) {
        self.link.histories().hold_until_released();
    }

    /// Whether what is not ahead is held back now.
    pub(crate) fn holds(&self) -> bool {
        self.link.histories().holds()
    }

    /// The rank of a job: what only reads decides nothing, so nobody holds it back; alone then, and
    /// else with others.
    pub(crate) fn rank(&self, only_reads: impl FnOnce() -> bool) -> Rank {
        if self.holds() && only_reads() { Rank::Ahead } else { Rank::Usual }
    }

    /// The number of the history that the server's data is of.
    pub(crate) fn history(&self) -> u64 {
        self.link.histories().number()
    }

    /// For how long no server was connected when that history began.
    pub(crate) fn outage(&self) -> Millis {
        self.link.histories().outage()
    }

    /// Lets jobs go to data of `history`.
    pub(crate) fn release(&self, history: u64) {
        self.link.histories().release(history);
    }

    /// The link below.
    pub(crate) fn link(&self) -> &Link {
        &self.link
    }

    /// The codec of the lane's commands.
    pub(crate) fn codec(&self) -> &C {
        &self.codec
    }

    /// How the lane stands.
    pub(crate) fn status(&self) -> LaneStatus {
        LaneStatus {
            address: self.link.address(),
            gate: self.link.circuit().gate(),
            opened: self.link.circuit().opened(),
            clock_steps: self.link.clock().steps(),
            counts: self.counters.counts(),
            last_error: self.link.last_error(),
        }
    }
}

impl<C: Codec> Drop for Lane<C> {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl<C: Codec> fmt::Debug for Lane<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane")
            .field("entry", &self.entry)
            .field("link", &self.link)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}
