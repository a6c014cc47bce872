//! A store that lost the end of what it had answered is told it again.

mod charge_log;
mod partitions;
mod pass;
mod recorded_state;
mod replaying;
mod single_partition;

use std::collections::BTreeMap;
use std::fmt;
use std::iter::Sum;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tollgate_core::{
    Cell, CellKey, CellTransfer, Charge, Millis, Readings, ReplicationEpochs, Store, StoreError,
    Timestamp,
};

use charge_log::ChargeLog;
use pass::{Counters, ReplayPass};
pub use recorded_state::MAX_SUBJECT_BYTES;
use recorded_state::RecordedState;
use single_partition::SinglePartition;

/// How long what was heard is remembered, unless another time is set: longer than a replica that
/// is fit to be promoted lags.
pub const DEFAULT_RETENTION: Millis = Millis::from_secs(3);

/// The longest outage that does not count: what was heard before a longer one is too old to be told
/// a store that others may have used meanwhile. Sentinels and clusters decide sooner.
pub const MAX_OUTAGE: Millis = Millis::from_secs(60);

/// The most things that are remembered of one store, unless another number is set: one for a limit
/// and a subject, or for each block, moment or lease of them. About a megabyte.
pub const DEFAULT_ENTRIES: usize = 8_192;

/// The longest that charges are held back by one repair, unless another time is set.
pub const DEFAULT_REPLAY_TIME: Duration = Duration::from_millis(250);

/// Makes a store whole after a failover, from what this node heard of it before.
///
/// A replica that takes over lacks what the old primary answered in the last moments. Each answer
/// told how a limit stood, and the newest are remembered here. When the store's
/// [history](ReplicationEpochs::history) is another one, charges wait until what is remembered has been
/// [joined](CellTransfer::join) with what is there; then they go to it. Joining gives the larger of both,
/// so that every node may do it, in any order and more than once.
///
/// # What it keeps
/// - Answers, unchanged. Calls that only read are passed on at all times.
/// - Nothing is joined that was not used: of fixed windows and token buckets it is what a reading
///   told, of leases each one by its id, of sliding windows, logs and two-bucket estimates what
///   this node itself was admitted, at its place.
/// - What is given back or forgotten through this node lowers what is remembered. Answers of calls
///   that were under way then do not raise it again.
/// - One repair at a time holds charges back for [`with_time`](Self::with_time) at most, counted
///   from when the store could be reached, and one more question to it. A caller waits within the
///   deadline around this store, and what it joined until then stays joined.
///
/// # What a failover still lets through
/// - Through one node: nothing, of what was remembered. A node's newest reading of a fixed window
///   counts what every node was admitted before, so that, once each has repaired, the window stands
///   where the last answer that any of them heard left it.
/// - Through several: [`max_lost_units`](Self::max_lost_units) for each limit and subject. A node that
///   repairs late finds charges that were made meanwhile, and the larger of both is less than their
///   sum.
/// - Token buckets are remembered to the millisecond: what arrives in one may be let through, too.
/// - Of sliding windows, logs and two-bucket estimates each node knows its own part alone: what is
///   lost of a place is less than all that was admitted there since the replica heard of it, by the
///   largest part of one node.
/// - Of several partitions: what was charged at one that was being moved to another server when that
///   server failed over. Until the move has ended the partition counts as of the server that it leaves.
/// - What was [joined](CellTransfer::join) from elsewhere, and not charged since, is not remembered.
/// - What made way for newer entries, subjects that are longer than [`MAX_SUBJECT_BYTES`], and what is
///   older than [`with_retention`](Self::with_retention) when the outage began, is not repaired.
///
/// # What it takes away
/// Units that were given back through another node since this one last heard of the limit, between
/// the last answer and the failover, may count again until their window is over.
pub struct FailoverReplay<S> {
    store: S,
    log: ChargeLog,
    remembered: Millis,
    time: Duration,
    /// What is left to do for each history whose repair has begun and not ended.
    passes: Mutex<BTreeMap<u64, ReplayPass>>,
    counters: Counters,
}

/// What was repaired since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayCounts {
    /// ReplicationEpochs that began while something was remembered, which they might lack.
    pub repairs: u64,
    /// Limits and subjects of which something was lacking, and was joined.
    pub places: u64,
    /// The units that were lacking.
    pub units: u64,
    /// Limits and subjects that could not be joined in time.
    pub abandoned: u64,
}

impl ReplayCounts {
    /// Nothing yet.
    pub const NOTHING: Self = Self { repairs: 0, places: 0, units: 0, abandoned: 0 };
}

impl Sum for ReplayCounts {
    fn sum<I: Iterator<Item = Self>>(each: I) -> Self {
        each.fold(Self::default(), |all, one| Self {
            repairs: all.repairs.saturating_add(one.repairs),
            places: all.places.saturating_add(one.places),
            units: all.units.saturating_add(one.units),
            abandoned: all.abandoned.saturating_add(one.abandoned),
        })
    }
}

impl<S> FailoverReplay<S> {
    /// `store`, of which is remembered what was heard in [`DEFAULT_RETENTION`].
    #[must_use]
    pub fn new(store: S) -> Self {
        Self {
            store,
            log: ChargeLog::new(DEFAULT_ENTRIES),
            remembered: DEFAULT_RETENTION,
            time: DEFAULT_REPLAY_TIME,
            passes: Mutex::default(),
            counters: Counters::default(),
        }
    }

    /// Sets for how long what was heard is remembered before an [outage](ReplicationEpochs::outage), of
    /// which up to [`MAX_OUTAGE`] do not count; zero for what is heard in the same
    /// millisecond.
    #[must_use]
    pub fn with_retention(self, remembered: Millis) -> Self {
        Self { remembered, ..self }
    }

    /// Sets how many things are remembered, rounded up to a power of two.
    #[must_use]
    pub fn with_entries(self, entries: usize) -> Self {
        Self { log: ChargeLog::new(entries), ..self }
    }

    /// Sets how long one repair may hold charges back.
    #[must_use]
    pub fn with_time(self, time: Duration) -> Self {
        Self { time, ..self }
    }

    /// The most units of one limit and subject that are admitted above it because of one failover:
    /// the smaller of what was admitted through `elsewhere`, other nodes, after this node's last
    /// reading of it and before the failover, and what was admitted `meanwhile`, on the new history
    /// before those nodes had repaired it.
    ///
    /// Without a repair it is all that was admitted after the replica last heard from the primary.
    #[must_use]
    pub const fn max_lost_units(elsewhere: u64, meanwhile: u64) -> u64 {
        if elsewhere < meanwhile { elsewhere } else { meanwhile }
    }

    /// The most bytes that what is remembered takes, besides the definitions of the limits.
    #[must_use]
    pub fn max_bytes(&self) -> usize {
        // Each set of entries has its lock, and each entry its key.
        self.log.capacity() * (size_of::<Option<(u128, RecordedState)>>() + size_of::<usize>())
    }

    /// What was repaired.
    #[must_use]
    pub fn repaired(&self) -> ReplayCounts {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ReplayCounts {
            repairs: count(&self.counters.repairs),
            places: count(&self.counters.places),
            units: count(&self.counters.units),
            abandoned: count(&self.counters.abandoned),
        }
    }

    /// The store.
    #[must_use]
    pub const fn store(&self) -> &S {
        &self.store
    }
}

impl<S: ReplicationEpochs> FailoverReplay<S> {
    /// Repairs the history in force, if it was not; answers which one is. A node that nobody asks
    /// for anything should have this called now and then: what it remembers may be what others
    /// lack.
    ///
    /// # Errors
    /// Why the store did not take what is remembered. It will be tried again.
    pub async fn replay(&self, now: Timestamp) -> Result<u64, StoreError> {
        self.replay_at(&SinglePartition(&self.store), 0, now).await
    }
}

impl<S: ReplicationEpochs> Store for FailoverReplay<S> {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        self.apply_replayed(&SinglePartition(&self.store), 0, now, charges).await
    }
}

impl<S: ReplicationEpochs> CellTransfer for FailoverReplay<S> {
    /// What is read out has what this node remembers, so that who moves away takes it along.
    async fn cells(
        &self,
        now: Timestamp,
        places: &[CellKey<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        // Where it fails, the store says so, or what it lacks is joined before its next charge.
        let _ = self.replay(now).await;
        self.store.cells(now, places).await
    }

    fn join(
        &self,
        now: Timestamp,
        cells: &[(CellKey<'_>, Cell)],
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        self.store.join(now, cells)
    }
}

impl<S: fmt::Debug> fmt::Debug for FailoverReplay<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FailoverReplay")
            .field("store", &self.store)
            .field("memory", &self.log)
            .field("repaired", &self.repaired())
            .finish_non_exhaustive()
    }
}
