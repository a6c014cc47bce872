//! Replay of recent charges to a store that lost its newest data in a failover.

mod charge_log;
mod definitions;
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

/// The default retention of recorded answers. The retention is longer than the replication lag of a
/// replica that is fit for promotion.
pub const DEFAULT_RETENTION: Millis = Millis::from_secs(3);

/// The longest outage that is added to the retention. If an outage was longer, the answers from
/// before the outage are too old: other nodes may have used the store since the answers. Sentinel
/// and Redis Cluster fail over sooner.
pub const MAX_OUTAGE: Millis = Millis::from_secs(60);

/// The default maximum number of entries recorded for one store. Depending on the algorithm of the
/// limit, there is one entry for each limit and subject, or one entry for each block, charge time
/// or permit of a limit and subject. The entries take about a megabyte.
pub const DEFAULT_ENTRIES: usize = 8_192;

/// The default maximum time for which one replay pauses charges.
pub const DEFAULT_REPLAY_TIME: Duration = Duration::from_millis(250);

/// A store that replays recent charges to the inner store after a failover.
///
/// A promoted replica lacks the last charges of the old primary. Each answer of the store reports
/// the status of a limit, and this wrapper records the newest statuses. When the store's
/// [replication epoch](ReplicationEpochs::epoch) changes, charges are paused until the recorded
/// state is [joined](CellTransfer::join) into the store. After the replay, the paused charges are
/// sent to the store. A join keeps the larger of the recorded and the stored value, so every node
/// may replay, in any order and more than once.
///
/// # Guarantees
/// - Answers are returned unchanged. Calls that only read are never paused.
/// - Only actual usage is joined. For fixed windows and token buckets, the usage comes from a
///   reading. For permits, each permit is joined by its id. For sliding windows, logs and
///   two-bucket estimates, this node's own counted charges are joined, each at its position.
/// - Refunds and resets through this node lower the recorded state. Answers to calls that were in
///   flight during a refund or reset do not raise the recorded state again. A token bucket has a
///   record for each quota of a subject, and a refund lowers only the record of its own quota.
/// - A replay pauses charges for at most [`with_time`](Self::with_time), counted from the time at
///   which the store could be reached, plus the time of one more query to the store. Replays run
///   one at a time. A caller waits at most until the deadline around this store, and state that was
///   joined before this deadline stays joined.
///
/// # Limitations: units that a failover still loses
/// - If only one node charges a limit and subject, no recorded units are lost. A node's newest
///   reading of a fixed window includes the earlier charges of all nodes. After each node has
///   replayed, the window has the usage of the last answer that any node received.
/// - If several nodes charge a limit and subject, at most [`max_lost_units`](Self::max_lost_units)
///   units are lost. If a node replays late, other charges have already been made in the new epoch.
///   A join keeps the larger of the two values, which is less than their sum.
/// - Token buckets are recorded with a precision of one millisecond: the units refilled in one
///   millisecond may be admitted too.
/// - For sliding windows, logs and two-bucket estimates, each node records only its own charges. In
///   each window or block, the loss is at most the charges of all nodes since the replica's last
///   update, minus the charges of the node that made the most of these charges.
/// - With several partitions: charges at a partition are lost if the partition was moving to
///   another server when that server failed over. Until the move ends, the partition still belongs
///   to its old server.
/// - State that was [joined](CellTransfer::join) from another store is not recorded until the limit
///   and subject are charged again.
/// - Evicted entries, subjects longer than [`MAX_SUBJECT_BYTES`] and entries older than
///   [`with_retention`](Self::with_retention) at the start of the outage are not replayed.
///
/// # Limitations: units that count twice
/// Another node may have refunded units after this node's last reading of the limit and before the
/// failover. After the failover, these units may count as used again until their window ends.
pub struct FailoverReplay<S> {
    store: S,
    log: ChargeLog,
    retention: Millis,
    time: Duration,
    /// The remaining work of each replay that has started and not finished, by epoch.
    passes: Mutex<BTreeMap<u64, ReplayPass>>,
    counters: Counters,
}

/// Counts of replays since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayCounts {
    /// The number of replication epochs that began while this node had recorded state. Each of
    /// these epochs may lack some of the state.
    pub replays: u64,
    /// The number of limits and subjects whose usage was incomplete in the new epoch and was
    /// completed from the records.
    pub limits: u64,
    /// The number of units that were missing in new epochs and were joined from the records.
    pub units: u64,
    /// The number of limits and subjects with recorded state that could not be joined within the
    /// time of a replay.
    pub abandoned: u64,
}

impl ReplayCounts {
    /// The counts before any replay, which are all zero.
    pub const NOTHING: Self = Self { replays: 0, limits: 0, units: 0, abandoned: 0 };
}

impl Sum for ReplayCounts {
    fn sum<I: Iterator<Item = Self>>(each: I) -> Self {
        each.fold(Self::default(), |all, one| Self {
            replays: all.replays.saturating_add(one.replays),
            limits: all.limits.saturating_add(one.limits),
            units: all.units.saturating_add(one.units),
            abandoned: all.abandoned.saturating_add(one.abandoned),
        })
    }
}

impl<S> FailoverReplay<S> {
    /// Wraps `store` and records its answers for [`DEFAULT_RETENTION`].
    #[must_use]
    pub fn new(store: S) -> Self {
        Self {
            store,
            log: ChargeLog::new(DEFAULT_ENTRIES),
            retention: DEFAULT_RETENTION,
            time: DEFAULT_REPLAY_TIME,
            passes: Mutex::default(),
            counters: Counters::default(),
        }
    }

    /// Sets the retention: how old a recorded answer may be at the start of an
    /// [outage](ReplicationEpochs::outage) to be replayed after it.
    ///
    /// The length of the outage, up to [`MAX_OUTAGE`], is added to this retention. With a retention
    /// of zero, only answers from the millisecond in which the outage began are replayed.
    #[must_use]
    pub fn with_retention(self, retention: Millis) -> Self {
        Self { retention, ..self }
    }

    /// Sets the maximum number of recorded entries, rounded up to a power of two.
    #[must_use]
    pub fn with_entries(self, entries: usize) -> Self {
        Self { log: ChargeLog::new(entries), ..self }
    }

    /// Sets how long one replay may pause charges.
    #[must_use]
    pub fn with_time(self, time: Duration) -> Self {
        Self { time, ..self }
    }

    /// Returns the maximum units of one limit and subject that are admitted beyond the limit
    /// because of one failover.
    ///
    /// The result is the smaller of two numbers. `elsewhere` is the number of units that other
    /// nodes admitted after this node's last reading and before the failover. `meanwhile` is the
    /// number of units that were admitted in the new epoch before those nodes had replayed. Units
    /// that nodes admitted by their fallback during the outage, and charged in the new epoch, are
    /// part of `meanwhile`.
    ///
    /// Without a replay, all units admitted after the replica's last update from the primary would
    /// be lost.
    #[must_use]
    pub const fn max_lost_units(elsewhere: u64, meanwhile: u64) -> u64 {
        if elsewhere < meanwhile { elsewhere } else { meanwhile }
    }

    /// Returns the maximum memory of the recorded state in bytes, without the definitions of the
    /// limits, of which there are at most 1,024 more than entries.
    #[must_use]
    pub fn max_bytes(&self) -> usize {
        // Each set of entries has a lock, and each entry has a key.
        self.log.capacity() * (size_of::<Option<(u128, RecordedState)>>() + size_of::<usize>())
    }

    /// Returns the counts of replays.
    #[must_use]
    pub fn replayed(&self) -> ReplayCounts {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ReplayCounts {
            replays: count(&self.counters.replays),
            limits: count(&self.counters.limits),
            units: count(&self.counters.units),
            abandoned: count(&self.counters.abandoned),
        }
    }

    /// Returns the inner store.
    #[must_use]
    pub const fn store(&self) -> &S {
        &self.store
    }
}

impl<S: ReplicationEpochs> FailoverReplay<S> {
    /// Replays the recorded state to the current replication epoch, unless the epoch has already
    /// got this state. Returns the number of the epoch.
    ///
    /// Call this function periodically on a node without traffic, because the other nodes may not
    /// have the recorded state of this node.
    ///
    /// # Errors
    /// The error of the store if it did not accept the recorded state. The next call tries the
    /// replay again.
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
    /// Replays the recorded state before the cells are read, so a transfer includes this state.
    async fn cells(
        &self,
        now: Timestamp,
        cell_keys: &[CellKey<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        // If the replay fails, the read fails too, or the missing state is joined before the
        // store's next charge.
        let _ = self.replay(now).await;
        self.store.cells(now, cell_keys).await
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
            .field("log", &self.log)
            .field("replayed", &self.replayed())
            .finish_non_exhaustive()
    }
}
