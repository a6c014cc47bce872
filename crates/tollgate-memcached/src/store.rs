//! The store of limits in one memcached server.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};
use tollgate_core::store::CellKey;
use tollgate_core::{
    Charge, Deduplication, Limit, Operation, Readings, Store, StoreError, Timestamp,
};
use tollgate_link::LinkLimits;

use crate::address::Address;
use crate::call::execute;
use crate::error::MemcachedError;
use crate::item_locks::ItemLocks;
use crate::job::Job;
use crate::key::Keys;
use crate::layout::Layout;
use crate::link::{LinkError, Losses, Server, TIME_UNCERTAINTY};
use crate::steps::Steps;

/// The longest time for a decision if the caller sets no deadline.
pub const DEFAULT_DEADLINE: Duration = Duration::from_millis(15);

/// The default number of connections to a server.
pub const DEFAULT_CONNECTIONS: NonZeroUsize = NonZeroUsize::new(2).unwrap();

/// The default time limit of each of the two round trips that verify a new connection.
const DEFAULT_PROOF: Duration = Duration::from_millis(50);

/// The most concurrent calls that change several items. Further calls are rejected at once.
pub const MAX_SPANNING_CALLS: usize = 1_024;

/// The settings of a server and of its connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSettings {
    /// The server's address.
    pub address: Address,
    /// The number of connections. All callers share the connections.
    pub connections: NonZeroUsize,
    /// The timeouts of the connections.
    pub link: LinkLimits,
    /// The layout of limits on the server.
    pub layout: Layout,
}

impl ServerSettings {
    /// Returns settings for the server at `address`, with defaults for everything else.
    #[must_use]
    pub fn new(address: Address) -> Self {
        Self {
            address,
            connections: DEFAULT_CONNECTIONS,
            link: LinkLimits { proof: DEFAULT_PROOF, ..LinkLimits::default() },
            layout: Layout::default(),
        }
    }
}

/// The status of a server.
#[derive(Clone, Debug)]
pub struct ServerStatus {
    /// The server's address.
    pub address: Address,
    /// The configured number of connections.
    pub connections: usize,
    /// The current number of connections.
    pub connected: usize,
    /// The losses of data that the store has detected on the server.
    pub losses: Losses,
    /// The number of times that one of the two items of a fixed window was missing before its
    /// expiry. Each time, the window started again.
    pub torn: u64,
    /// The number of changes that failed because another node changed the item first, and that were
    /// tried again.
    pub cas_conflicts: u64,
    /// The number of calls that failed because other nodes changed the same item first in every
    /// attempt.
    pub contended: u64,
    /// The number of charges of failed calls that could not be refunded.
    pub unrefunded: u64,
    /// Why the last attempt to connect failed, or the last connection was lost.
    pub last_error: Option<LinkError>,
}

/// A store of limits in one memcached server. This node reads the state of a limit, evaluates the
/// charge, and writes the new state by compare-and-swap.
///
/// # Guarantees
/// - **One limit and one subject are exact.** A node reads the state, evaluates the charge, and
///   writes the new state by compare-and-swap. If another node changed the state first, the node
///   reads the state again. However many nodes charge at once, no window admits more than its
///   quota, and no charge is counted twice.
/// - Every call is answered by its deadline. While the server is known to be down, calls fail at
///   once.
/// - Every item expires `skew_max` after the end of its state. `skew_max` is a setting of the
///   limit.
///
/// # Weaknesses
/// - **Several limits in one call are several steps.** An admitted request is charged on all of its
///   limits, and a refused request on no limit. During a call that is later refused, other calls
///   can see units as used that are refunded at once, and can be refused because of these units.
///   Each reading of a call is exact, but the readings are from slightly different times. If this
///   process ends in the middle of such a call, or the server stops answering, the charges stay
///   until the window ends ([`ServerStatus::unrefunded`] counts the known charges).
/// - **memcached loses data.** After a restart, a `flush_all`, or the eviction of items, windows
///   start again: each lost subject gets one more quota. [`Losses`] counts the losses that can be
///   detected. A repeated refund is detected only while the record of the first refund exists.
/// - **Retries are limited.** If other nodes changed the item first in
///   [`MAX_ATTEMPTS`](crate::MAX_ATTEMPTS) attempts, a call fails with
///   [`MemcachedError::Contended`], and nothing was charged. Callers of one node use locks and
///   never compete with each other.
/// - If an answer does not arrive in time, the result of the call is unknown: commands that were
///   written may have been executed.
#[derive(Debug)]
pub struct Memcached {
    pub(crate) inner: Arc<Inner>,
    keys: Keys,
    layout: Layout,
    pub(crate) deadline: Duration,
    spanning: Arc<Semaphore>,
    /// Whether the application's clock is compared with the server's clock.
    is_checked: AtomicBool,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) steps: Steps,
    pub(crate) locks: ItemLocks,
}

impl Memcached {
    /// Opens a store on the server of `settings` and starts to connect. Needs a tokio runtime.
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
            is_checked: AtomicBool::new(false),
        }
    }

    /// Returns the same store with `deadline` as the longest time for a decision.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// From now on, compares the time of each call with the server's clock. If a call's time
    /// differs from the server's clock by more than half of a limit's
    /// [`skew_max`](tollgate_core::Limit::skew_max), the server's clock decides the call. Do not
    /// call this function if callers pass times of their own choice.
    ///
    /// The server reports its time in whole seconds, and the estimates of two nodes can differ by
    /// 2.25 s. So the `skew_max` of each limit must be at least 2.25 s. With a smaller value, two
    /// nodes may discard each other's state.
    ///
    /// The estimate is up to 2.13 s ahead of or behind the clock of the server's machine. With a
    /// `skew_max` of at least 6.5 s, a call with the time of that clock is never decided by the
    /// estimate. With a smaller value it can be, and its time then changes by that difference.
    ///
    /// No call is decided before the server's clock is known.
    pub fn check_clock(&self) {
        self.is_checked.store(true, Ordering::Relaxed);
    }

    /// Returns the number of milliseconds by which the server's clock is ahead of a clock that
    /// shows `now`, and the maximum error of this number in milliseconds. The error exists because
    /// the server returns its time in whole seconds. The server's clock, in this sense, is up to 1 s
    /// ahead of or behind the clock of its machine, because the server rounds the time of its start.
    /// Returns `None` before the server has reported its time.
    #[must_use]
    pub fn clock_offset(&self, now: Timestamp) -> Option<(i64, u64)> {
        let time = self.inner.steps.server().millis()?;
        let ahead = i64::try_from(i128::from(time) - i128::from(now.as_millis()));
        Some((ahead.unwrap_or(i64::MAX), TIME_UNCERTAINTY))
    }

    /// Returns the time that decides a call. The call is made when the application's clock shows
    /// `now`.
    pub(crate) async fn time<'l>(
        &self,
        now: Timestamp,
        limits: impl Iterator<Item = &'l Limit>,
        deadline: Instant,
    ) -> Timestamp {
        if !self.is_checked.load(Ordering::Relaxed) {
            return now;
        }
        if self.clock_offset(now).is_none() {
            // This wait is enough, because every verified connection has received the server's
            // time.
            let _ = self.inner.steps.server().connection(deadline).await;
        }
        let skew_max = limits.map(|limit| limit.skew_max().get()).min().unwrap_or_default();
        self.clock_offset(now).map_or(now, |offset| corrected(now, offset, skew_max))
    }

    /// Waits until every connection is open.
    ///
    /// # Errors
    /// [`LinkError`] with the last connection error, if not all connections are open after the time
    /// `within`. The store continues to connect.
    pub async fn ready(&self, within: Duration) -> Result<(), LinkError> {
        let server = self.inner.steps.server();
        timeout(within, server.ready()).await.map_err(|_| {
            let slow = || LinkError::Slow { address: server.address().clone(), within };
            server.last_error().unwrap_or_else(slow)
        })
    }

    /// Returns the status of the server.
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
            cas_conflicts: counters.cas_conflicts.load(Ordering::Relaxed),
            contended: counters.contended.load(Ordering::Relaxed),
            unrefunded: counters.unrefunded.load(Ordering::Relaxed),
            last_error: steps.server().last_error(),
        }
    }

    /// Applies charges like [`Store::apply`], with a time limit for this call, and returns the
    /// detailed error.
    ///
    /// # Errors
    /// [`MemcachedError`]. The variant shows whether the call may have been charged.
    pub async fn apply_within(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
        within: Duration,
    ) -> Result<Readings, MemcachedError> {
        let deadline = Instant::now() + within;
        let now = self.time(now, charges.iter().map(|charge| charge.limit), deadline).await;
        let jobs = self.jobs(charges);
        if charges.iter().filter(|charge| !charge.operation.is_read_only()).count() <= 1
            && !charges.iter().any(is_guarded)
        {
            return self.inner.apply(now, &jobs, deadline).await;
        }
        let Ok(permit) = Arc::clone(&self.spanning).try_acquire_owned() else {
            return Err(MemcachedError::Overloaded);
        };
        // The call runs in its own task, so the call is completed even if the caller is cancelled.
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

    /// Returns a job that reads the state of the limit and subject in `cell_key`.
    pub(crate) fn peek_job(&self, cell_key: &CellKey<'_>) -> Job {
        Job::at(&self.keys, self.layout, cell_key)
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
        // A call that times out while it waits for its locks has charged nothing.
        let _turns = timeout_at(deadline, locks).await.map_err(|_| MemcachedError::Overloaded)?;
        execute(&self.steps, jobs, now, deadline).await
    }
}

impl Store for Memcached {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        Ok(self.apply_within(now, charges, self.deadline).await?)
    }
}

/// Returns whether the operation writes two items. A refund that may arrive twice writes a record
/// of the refund and the item of the limit.
fn is_guarded(charge: &Charge<'_>) -> bool {
    matches!(charge.operation, Operation::Refund { deduplication: Deduplication::ById, .. })
}

/// Returns the time that decides a call that was made at `now`, if the server's clock is ahead by
/// `ahead` ms with an error of up to `uncertainty` ms.
fn corrected(now: Timestamp, (ahead, uncertainty): (i64, u64), skew_max: u64) -> Timestamp {
    if ahead.unsigned_abs().saturating_add(uncertainty) <= skew_max / 2 {
        return now;
    }
    Timestamp::from_millis(now.as_millis().saturating_add_signed(ahead))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The differences between the clocks of nodes and the server's clock that the test combines.
    const APART: std::ops::RangeInclusive<i64> = -6_000..=6_000;

    /// A node that decides by a time that is more than `skew_max` behind discards live state.
    #[test]
    fn two_nodes_never_decide_by_times_that_differ_by_more_than_skew_max() {
        let server = 1_700_000_000_000_i64;
        let error = TIME_UNCERTAINTY.cast_signed();
        for skew_max in [2_250, 2_251, 4_000, 5_000, 7_000] {
            let mut times = Vec::new();
            for apart in APART.step_by(125).chain([-1, 1]) {
                for error in [-error, -error / 2, 0, error / 2, error] {
                    let now = Timestamp::from_millis((server + apart).cast_unsigned());
                    let time = corrected(now, (error - apart, TIME_UNCERTAINTY), skew_max);
                    times.push(time.as_millis());
                }
            }
            let (first, last) = (times.iter().min().unwrap(), times.iter().max().unwrap());
            assert!(last - first <= skew_max, "{skew_max}: {first} to {last}");
        }
    }
}
