//! Parts of a quota, taken from the store in advance and used without asking it.

mod call;
mod config;
mod counts;
mod entry;
mod sweeper;
mod table;

use std::fmt;
use std::sync::Arc;

use tollgate_core::{
    Cell, CellKey, CellTransfer, Charge, Cost, Limit, LimitMode, Operation, Readings, Store,
    StoreError, Timestamp,
};

pub use config::{
    DEFAULT_LEASES, FAST_EXHAUSTION, HOT_THRESHOLD, HOT_WINDOW, LeaseConfig, MAX_LEASE_UNITS,
};
pub use counts::LeaseCounts;
pub use sweeper::{MAX_REFUNDS_PER_SWEEP, SWEEP_PERIOD, Sweeper};
pub use table::MAX_SUBJECT_BYTES;

use counts::{Counters, add};
use table::Table;

/// Decides charges on limits that are [leased](LimitMode::Leased) out of units that this node has
/// taken from the store in advance, as far as they reach.
///
/// A limit and subject that are charged [often](HOT_THRESHOLD) are worth a lease: a take of many units,
/// which the store counts as it counts any other. Charges are then decided here, at once, until it
/// is used up; the next is twice as large where that was [soon](FAST_EXHAUSTION). One caller takes it
/// while others of the same limit and subject wait for that one answer. A lease is a part of what
/// is left ([`LeaseConfig::share`]), so that leases shrink towards the limit; where the part is no
/// more than the charge, each charge is for the store. What is not used is given back by
/// [`sweep`](Self::sweep).
///
/// # What it keeps
/// - Nothing is admitted that the store has not counted, in the window or block in which it is
///   used: a lease ends with the window of a fixed window, and with the block of a sliding one. The
///   first charge in each is the store's, so that no lease opens one.
/// - A refusal is the store's. Before it is asked, what is unused here is given back: no node is
///   refused beside its own lease.
/// - All or nothing: where another limit of a call refuses, or the store has no answer, units that
///   were used here for it are put back.
/// - Used, remaining and reset are exact where one node alone asks. Peeks, reservations,
///   settlements and refunds that may be repeated are always the store's.
/// - Limits that are not leased are passed on, and so are calls on them alone.
///
/// # What it weakens
/// - **Early refusals.** Units that other nodes have and do not use count as used:
///   [`max_early_refusal`]. They are given back within two [sweeps](SWEEP_PERIOD).
/// - **The numbers.** What is told of a charge that is decided here knows of other nodes what the
///   store knew at the last answer, all their unused units counted as used. Remaining may grow when
///   other nodes give back.
/// - **A node that dies** leaves its units used until their window is over, and so does one whose
///   store did not take them back: [`LeaseCounts::units_lost`].
/// - **Another definition.** Where the quota of a limit is changed or overridden, what this node has
///   of the one before counts as used until it is given back, within two [sweeps](SWEEP_PERIOD).
/// - **Forgetting.** A subject that is forgotten through this node has its lease forgotten. Another
///   node may use what it has of the window that was forgotten, or give it back into it: at most
///   [`max_unused_units`](Self::max_unused_units) a node.
/// - **A store that lost its state** has lost what was taken in advance, too, and it is used later
///   than it was charged: what is admitted beyond the limit after a failover is bounded by what was
///   *charged* and not replicated.
///
/// While the store has no answer leases go on being used until they are used up, or their window is
/// over; then the caller hears of it.
///
/// It belongs around the store that counts and inside of whatever stands in for it: units that a
/// stand-in admitted are no part of the quota. With a deadline around it, what a caller waits for
/// is bounded; a lease that comes late is there for the next.
pub struct QuotaLease<S> {
    shared: Arc<Shared<S>>,
}

/// What tasks that take leases share with the store.
struct Shared<S> {
    store: S,
    table: Table,
    counters: Counters,
}

/// The most units of a limit and subject that may be left when somebody is refused, with `nodes`
/// nodes of which each has `max_unused_units` at most: those that the others have.
#[must_use]
pub const fn max_early_refusal(nodes: u64, max_unused_units: u64) -> u64 {
    nodes.saturating_sub(1).saturating_mul(max_unused_units)
}

impl<S> QuotaLease<S> {
    /// `store`, of whose limits [`DEFAULT_LEASES`] at most have leases at one time, on these terms.
    #[must_use]
    pub fn new(store: S, config: LeaseConfig) -> Self {
        Self::with_leases(store, config, DEFAULT_LEASES)
    }

    /// As [`new`](Self::new), with at most so many leases, rounded up to a multiple of sixteen.
    #[must_use]
    pub fn with_leases(store: S, config: LeaseConfig, leases: usize) -> Self {
        let (table, counters) = (Table::new(leases, config), Counters::default());
        Self { shared: Arc::new(Shared { store, table, counters }) }
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &S {
        &self.shared.store
    }

    /// The most units of `limit` and one subject that this node has taken and not used; none of a
    /// limit that is not leased.
    #[must_use]
    pub fn max_unused_units(&self, limit: &Limit) -> u64 {
        match limit.mode() {
            LimitMode::Exact => 0,
            LimitMode::Leased => self.shared.table.config().max_unused_units(limit),
        }
    }

    /// What was done with leases.
    #[must_use]
    pub fn counts(&self) -> LeaseCounts {
        self.shared.counters.read()
    }

    /// Limits and subjects that have a place for a lease now.
    #[must_use]
    pub fn held(&self) -> usize {
        self.shared.table.len()
    }

    /// The most that ever have one.
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
        // Boxed, so that what waits makes no call that is decided here larger.
        Box::pin(self.shared.ask(now, charges)).await
    }
}

impl<S: Store + 'static> QuotaLease<S> {
    /// Gives back what is unused of `places`, so that their cells say what was used.
    async fn settle<'p>(
        &self,
        now: Timestamp,
        places: impl Iterator<Item = CellKey<'p>>,
    ) -> Result<(), StoreError> {
        let look = Operation::Peek { cost: Cost::PEEK };
        let charge = |place: CellKey<'p>| Charge {
            limit: place.limit,
            subject: place.subject,
            operation: look,
        };
        let table = &self.shared.table;
        let unused: Vec<_> =
            places.filter_map(|place| table.all_unused(now, &charge(place))).collect();
        self.shared.refund(now, &unused).await
    }
}

/// Who moves away leaves no lease behind.
impl<S: CellTransfer + 'static> CellTransfer for QuotaLease<S> {
    async fn cells(
        &self,
        now: Timestamp,
        places: &[CellKey<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        self.settle(now, places.iter().copied()).await?;
        self.shared.store.cells(now, places).await
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
