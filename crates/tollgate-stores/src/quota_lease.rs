//! Quota leases: units that a node takes from the store in advance and spends without a call.

mod call;
mod config;
mod counts;
mod entry;
mod sweeper;
mod table;

use std::fmt;
use std::sync::Arc;

use tollgate_core::{
    Cell, CellKey, CellTransfer, Charge, Limit, LimitMode, Readings, Store, StoreError, Timestamp,
};

pub use config::{
    DEFAULT_LEASES, FAST_EXHAUSTION, HOT_THRESHOLD, HOT_WINDOW, LeaseConfig, MAX_LEASE_UNITS,
};
pub use counts::LeaseCounts;
pub use sweeper::{MAX_REFUNDS_PER_SWEEP, SWEEP_PERIOD, Sweeper};
pub use table::MAX_SUBJECT_BYTES;

use counts::{Counters, add};
use table::Table;

/// A store that decides charges on [leased](LimitMode::Leased) limits from units that this node
/// took from the inner store in advance.
///
/// A limit and subject that are charged [often](HOT_THRESHOLD) get a lease: one charge of many
/// units, which the store counts like any other charge. Later charges are decided locally and
/// immediately until the lease is used up. If a lease is used up [quickly](FAST_EXHAUSTION), the
/// next lease is twice as large. One caller takes the lease while other callers for the same limit
/// and subject wait for the store's answer. A lease is at most a part of the remaining units
/// ([`LeaseConfig::share`]), so leases shrink as the remaining units become few. If this part is
/// not larger than the charge, each charge is sent to the store. [`sweep`](Self::sweep) refunds
/// unused units.
///
/// # Guarantees
/// - The store has counted every unit that is admitted, in the window or block in which the unit is
///   used. To ensure this, a lease ends with the window of a fixed window and with the block of a
///   sliding window. The first charge in each window or block is sent to the store, so a lease
///   never opens a window or block.
/// - Only the store refuses. This node's unused units are refunded before the store is called, so a
///   node is never refused because of its own lease.
/// - Calls are all or nothing: if another limit of a call refuses, or the store does not answer,
///   units that the call used from leases are returned to the leases.
/// - Used, remaining and reset are exact if only one node is charged, apart from units of calls in
///   flight. If another limit refuses a call, the units of the call count until the refusal. If the
///   store decides a charge while another caller takes a lease, the status of the charge includes
///   that lease. Reservations, settlements, peeks with zero cost and refunds that need
///   deduplication are always sent to the store.
/// - Calls on limits that are not leased are passed to the store unchanged.
///
/// # Limitations
/// - **Early refusals.** Unused units of other nodes count as used: [`max_early_refusal`] is the
///   bound. These units are refunded within two [sweeps](SWEEP_PERIOD).
/// - **Reported numbers.** The status of a locally decided charge includes the other nodes' usage
///   as of the store's last answer, and counts the unused units of their leases as used. Remaining
///   may grow when other nodes refund units. If the store decides a call with a peek, and then does
///   not answer the call that corrects the peek's reading, this node's unused units count as used in
///   that reading.
/// - **Node failure.** The unused units of a node that dies stay used until their window ends. The
///   same applies to units if the store did not accept their refund, and to units of a lease if the
///   answer to the lease did not arrive. [`LeaseCounts::units_lost`] counts the units of these two
///   cases.
/// - **Changed definitions.** If the quota of a limit is changed or overridden, this node's units
///   of the previous definition count as used until they are refunded, within two
///   [sweeps](SWEEP_PERIOD).
/// - **Resets.** A reset through this node also discards the subject's lease. Another node may
///   still use or refund the units that it leased in the discarded window: at most
///   [`max_unused_units`](Self::max_unused_units) for each node.
/// - **Failovers.** A store that lost its state also lost the charges for leases, and leased units
///   are used later than they were charged. The units admitted beyond the limit after a failover
///   are bounded by the units that were *charged* and not replicated.
///
/// While the store does not answer, leases remain usable until they are used up or their window
/// ends. After that, callers receive the store's error.
///
/// Put this wrapper around the store that counts and inside the fallback, because units that a
/// fallback admits must not come from a lease. A deadline around this wrapper bounds the time that
/// a caller waits. A lease that arrives late is used for later charges.
pub struct QuotaLease<S> {
    shared: Arc<Shared<S>>,
}

/// The state that the wrapper shares with the tasks that take leases.
struct Shared<S> {
    store: S,
    table: Table,
    counters: Counters,
}

/// Returns the maximum units of a limit and subject that may remain unused when a charge is
/// refused. The result is the number of unused units of the other nodes, if each of `nodes` nodes
/// has at most `max_unused_units`.
#[must_use]
pub const fn max_early_refusal(nodes: u64, max_unused_units: u64) -> u64 {
    nodes.saturating_sub(1).saturating_mul(max_unused_units)
}

impl<S> QuotaLease<S> {
    /// Wraps `store` with leases according to `config`, with at most [`DEFAULT_LEASES`] leases at
    /// one time.
    #[must_use]
    pub fn new(store: S, config: LeaseConfig) -> Self {
        Self::with_leases(store, config, DEFAULT_LEASES)
    }

    /// Wraps `store` as [`new`](Self::new) does, with another maximum number of leases, rounded up
    /// to a multiple of sixteen.
    #[must_use]
    pub fn with_leases(store: S, config: LeaseConfig, leases: usize) -> Self {
        let (table, counters) = (Table::new(leases, config), Counters::default());
        Self { shared: Arc::new(Shared { store, table, counters }) }
    }

    /// Returns the inner store.
    #[must_use]
    pub fn store(&self) -> &S {
        &self.shared.store
    }

    /// Returns the maximum units of `limit` and one subject that this node has taken and not used.
    /// The result is zero for limits that are not leased.
    #[must_use]
    pub fn max_unused_units(&self, limit: &Limit) -> u64 {
        match limit.mode() {
            LimitMode::Exact => 0,
            LimitMode::Leased => self.shared.table.config().max_unused_units(limit),
        }
    }

    /// Returns the counts of leases, units and local decisions.
    #[must_use]
    pub fn counts(&self) -> LeaseCounts {
        self.shared.counters.read()
    }

    /// Returns the number of limits and subjects that have an entry for a lease now.
    #[must_use]
    pub fn held(&self) -> usize {
        self.shared.table.len()
    }

    /// Returns the maximum number of limits and subjects that can have a lease.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.shared.table.capacity()
    }
}

impl<S: Store + 'static> Store for QuotaLease<S> {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        if charges.iter().all(|charge| charge.limit.mode() == LimitMode::Exact) {
            return self.shared.store.apply(now, charges).await;
        }
        if let [charge] = charges
            && let Some(reading) = self.shared.table.answer(now, charge)
        {
            add(&self.shared.counters.decided, 1);
            return Ok(Readings::one(reading));
        }
        // The future is boxed because store calls must not make the futures of local decisions
        // larger.
        Box::pin(self.shared.decide(now, charges)).await
    }
}

impl<S: Store + 'static> QuotaLease<S> {
    /// Refunds the unused leased units of the limits and subjects in `cell_keys`. The cells of
    /// these limits and subjects then contain only actual usage.
    async fn settle<'p>(
        &self,
        now: Timestamp,
        cell_keys: impl Iterator<Item = CellKey<'p>>,
    ) -> Result<(), StoreError> {
        let table = &self.shared.table;
        let unused: Vec<_> =
            cell_keys.flat_map(|cell_key| table.all_unused(now, &cell_key.peek())).collect();
        self.shared.refund(now, &unused).await
    }
}

/// Refunds the leases of the subjects before their cells are read for a transfer.
impl<S: CellTransfer + 'static> CellTransfer for QuotaLease<S> {
    async fn cells(
        &self,
        now: Timestamp,
        cell_keys: &[CellKey<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        self.settle(now, cell_keys.iter().copied()).await?;
        self.shared.store.cells(now, cell_keys).await
    }

    fn join(
        &self,
        now: Timestamp,
        cells: &[(CellKey<'_>, Cell)],
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        self.shared.store.join(now, cells)
    }
}

impl<S: fmt::Debug> fmt::Debug for QuotaLease<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuotaLease")
            .field("store", &self.shared.store)
            .field("leases", &self.shared.table)
            .field("counts", &self.counts())
            .finish()
    }
}
