//! The store: limits in one memcached server.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};
use tollgate_core::store::CellKey;
use tollgate_core::{Charge, Deduplication, Operation, Readings, Store, StoreError, Timestamp};

use crate::address::Address;
use crate::call::execute;
use crate::error::MemcachedError;
use crate::item_locks::ItemLocks;
use crate::job::Job;
use crate::key::Keys;
use crate::layout::Layout;
use crate::link::{LinkError, LinkLimits, Losses, Server};
use crate::steps::Steps;

/// How long a decision may take unless its caller says otherwise.
pub const DEFAULT_DEADLINE: Duration = Duration::from_millis(15);

/// The connections to a server unless it is said otherwise.
pub const DEFAULT_CONNECTIONS: NonZeroUsize = NonZeroUsize::new(2).unwrap();

/// The most calls at one time that change several items; one more is turned away at once.
pub const MAX_SPANNING_CALLS: usize = 1_024;

/// A server, and how it is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSettings {
    /// Where it listens.
    pub address: Address,
    /// How many connections are made to it. Commands of all callers share them.
    pub connections: NonZeroUsize,
    /// The bounds of their waits.
    pub link: LinkLimits,
    /// How limits lie in it.
    pub layout: Layout,
}

impl ServerSettings {
    /// The server at `address`, with the defaults of everything else.
    #[must_use]
    pub fn new(address: Address) -> Self {
        Self {
            address,
            connections: DEFAULT_CONNECTIONS,
            link: LinkLimits::default(),
            layout: Layout::default(),
        }
    }
}

/// How a server stands.
#[derive(Clone, Debug)]
pub struct ServerStatus {
    /// Where it is.
    pub address: Address,
    /// How many connections to it there are to be.
    pub connections: usize,
    /// How many there are.
    pub connected: usize,
    /// What it lost, as far as that can be noticed.
    pub losses: Losses,
    /// Pairs of items of which one was found missing before its time: windows that began anew.
    pub torn: u64,
    /// Changes that were outrun by another node, and tried again.
    pub outrun: u64,
    /// Calls that gave up because they were outrun again and again.
    pub contended: u64,
    /// Charges that were taken for nothing and could not be given back.
    pub unrefunded: u64,
    /// Why the last attempt to connect failed, or the last connection was lost.
    pub last_error: Option<LinkError>,
}

/// Limits in one memcached server: decided by this node, written back by compare-and-swap.
///
/// # What it keeps
/// - **One limit, one subject: exact.** A charge is read, decided and swapped in; whoever was
///   outrun by another node reads anew. However many nodes charge at once, no window admits more
///   than its quota, and no charge is counted twice.
/// - Every call is answered by its deadline, and at once while the server is known not to answer.
/// - Every item ends, later than what it keeps by the limit's skew.
///
/// # What it weakens
/// - **Several limits in one call are several steps.** A take that is admitted was charged to all,
///   one that is refused to none. In between others can see units in use that are given back at
///   once, and be refused for them. Readings of one call are each exact, of moments a little apart.
///   If this process ends in the middle of such a call, or the server stops answering, what was
///   taken stays taken until its window is over ([`ServerStatus::unrefunded`] counts what is known).
/// - **memcached forgets.** A restart, a `flush_all`, or items dropped for want of memory begin
///   windows anew: one more quota for each subject that was lost. [`Losses`] counts what can be
///   noticed. A repetition of a refund is recognised only while its item is there.
/// - **Contention has an end.** After [`MAX_ATTEMPTS`](crate::MAX_ATTEMPTS) lost swaps a call has
///   no answer ([`MemcachedError::Contended`]), and nothing was charged. Callers of one node take
///   locks and never outrun each other.
/// - An answer that did not come in time is unknown: what was written may count.
#[derive(Debug)]
pub struct Memcached {
    pub(crate) inner: Arc<Inner>,
    keys: Keys,
    layout: Layout,
    pub(crate) deadline: Duration,
    spanning: Arc<Semaphore>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) steps: Steps,
    pub(crate) locks: ItemLocks,
}

impl Memcached {
    /// A store on the server of `settings`, which begins to connect. Needs a tokio runtime.
    #[must_use]
    pub fn open(settings: &ServerSettings, keys: Keys) -> Self {
        let ServerSettings { address, connections, link, layout } = settings.clone();
        let server = Server::start(address, connections, link);
        let inner = Inner { steps: Steps::new(server), locks: ItemLocks::default() };
        Self {
            inner: Arc::new(inner),
            keys,
            layout,
            deadline: DEFAULT_DEADLINE,
            spanning: Arc::new(Semaphore::new(MAX_SPANNING_CALLS)),
        }
    }

    /// The same store, in which a decision may take as long as `deadline`.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// Waits until every connection is made.
    ///
    /// # Errors
    /// Why that was not so `within` that time. The store goes on trying, and connects when it can.
    pub async fn ready(&self, within: Duration) -> Result<(), LinkError> {
        let server = self.inner.steps.server();
        timeout(within, server.ready()).await.map_err(|_| {
            let slow = || LinkError::Slow { address: server.address().clone(), within };
            server.last_error().unwrap_or_else(slow)
        })
    }

    /// How the server stands.
    #[must_use]
    pub fn status(&self) -> ServerStatus {
        let Inner { steps, .. } = &*self.inner;
        let (connections, connected) = steps.server().connections();
        let counters = &steps.counters;
        ServerStatus {
            address: steps.server().address().clone(),
            connections,
            connected,
            losses: steps.server().losses(),
            torn: counters.torn.load(Ordering::Relaxed),
            outrun: counters.outrun.load(Ordering::Relaxed),
            contended: counters.contended.load(Ordering::Relaxed),
            unrefunded: counters.unrefunded.load(Ordering::Relaxed),
            last_error: steps.server().last_error(),
        }
    }

    /// As [`Store::apply`], within a time of the call's own, and with the whole reason of a failure.
    ///
    /// # Errors
    /// [`MemcachedError`] says whether the call may have been charged all the same.
    pub async fn apply_within(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
        within: Duration,
    ) -> Result<Readings, MemcachedError> {
        let deadline = Instant::now() + within;
        let jobs = self.jobs(charges);
        if charges.iter().filter(|charge| !charge.operation.is_read_only()).count() <= 1
            && !charges.iter().any(is_guarded)
        {
            return self.inner.apply(now, &jobs, deadline).await;
        }
        let Ok(permit) = Arc::clone(&self.spanning).try_acquire_owned() else {
            return Err(MemcachedError::Overloaded);
        };
        // On a task of its own, so that a caller who leaves does not leave half a call behind.
        let inner = Arc::clone(&self.inner);
        let spanning = async move {
            let _held_until_done = permit;
            inner.apply(now, &jobs, deadline).await
        };
        match Handle::try_current() {
            Ok(runtime) => match timeout_at(deadline, runtime.spawn(spanning)).await {
                Ok(done) => done.unwrap_or(Err(MemcachedError::Lost)),
                Err(_) => Err(MemcachedError::TimedOut),
            },
            Err(_) => spanning.await,
        }
    }

    /// The job of looking at what is kept at `place`.
    pub(crate) fn look_at(&self, place: &CellKey<'_>) -> Job {
        Job::at(&self.keys, self.layout, place)
    }

    fn jobs(&self, charges: &[Charge<'_>]) -> Vec<Job> {
        charges.iter().map(|charge| Job::new(&self.keys, self.layout, charge)).collect()
    }
}

impl Inner {
    async fn apply(
        &self,
        now: Timestamp,
        jobs: &[Job],
        deadline: Instant,
    ) -> Result<Readings, MemcachedError> {
        if jobs.is_empty() {
            return Ok(Readings::new());
        }
        let changing = jobs.iter().filter(|job| !job.operation.is_read_only());
        let locks = self.locks.at(changing.map(|job| job.names.first()));
        // Who waits for a turn was charged nothing yet.
        let _turns = timeout_at(deadline, locks).await.map_err(|_| MemcachedError::Overloaded)?;
        execute(&self.steps, jobs, now, deadline).await
    }
}

impl Store for Memcached {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        Ok(self.apply_within(now, charges, self.deadline).await?)
    }
}

/// Whether it writes two items: what remembers it, and the limit.
fn is_guarded(charge: &Charge<'_>) -> bool {
    matches!(charge.operation, Operation::Refund { deduplication: Deduplication::ById, .. })
}
