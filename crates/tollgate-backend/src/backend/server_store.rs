//! Several servers as one store, with the wrappers that handle outages.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate::model::{
    Cell, CellKey, CellTransfer, Charge, DecisionSource, Reading, Readings, Store, StoreError,
    StoredState, Timestamp,
};
use tollgate::store::Memory;
use tollgate_stores::failover_replay::ReplayCounts;
use tollgate_stores::quota_lease::Sweeper;
use tollgate_stores::{Deadline, DenyCache, Fallback, LocalShare, QuotaLease, QuotaRescale};

use crate::status::Counts;

/// The servers with quota leases, which are units that this node took from the servers in advance.
pub(crate) type Leases<P> = QuotaLease<Arc<P>>;

/// The servers with quota leases, with a deadline for each call.
pub(crate) type DeadlineStore<P> = Deadline<Arc<Leases<P>>>;

/// The servers with a deadline for each call. If the servers do not answer, this node's share of
/// each limit decides.
pub(crate) type Decider<P> = Fallback<Arc<DeadlineStore<P>>, LocalShare<Memory>>;

/// The deny cache, which passes calls that it does not answer to the [`Decider`].
pub(crate) type Refusals<P> = DenyCache<Arc<Decider<P>>>;

/// Servers with the wrappers around them, and a handle of each wrapper.
///
/// The deny cache answers calls for which it has a valid refusal. Calls on leased limits are
/// decided from a quota lease of this node if the lease has enough units. All other calls go to the
/// server that owns the subject, or to several servers if necessary. If there is no answer within
/// the deadline, this node's share of the limit decides. The documentation of each wrapper
/// describes its weaker guarantees and their bounds.
#[derive(Debug)]
pub(crate) struct ServerStore<P> {
    store: QuotaRescale<Arc<Refusals<P>>>,
    handles: Handles<P>,
    /// The task that refunds unused units of quota leases.
    _sweeper: Sweeper,
    discarded: AtomicU64,
}

/// The wrappers of a [`ServerStore`]. The innermost wrapper is the first.
#[derive(Debug)]
pub(crate) struct Handles<P> {
    pub(crate) servers: Arc<P>,
    pub(crate) leases: Arc<Leases<P>>,
    pub(crate) deadline_store: Arc<DeadlineStore<P>>,
    pub(crate) decider: Arc<Decider<P>>,
    pub(crate) refusals: Arc<Refusals<P>>,
}

impl<P: CellTransfer + 'static> ServerStore<P> {
    pub(crate) fn new(store: QuotaRescale<Arc<Refusals<P>>>, handles: Handles<P>) -> Self {
        let sweeper = handles.leases.start_sweeping();
        Self { store, handles, _sweeper: sweeper, discarded: AtomicU64::new(0) }
    }

    pub(crate) const fn handles(&self) -> &Handles<P> {
        &self.handles
    }

    /// Returns the counts of decisions without a server and of failures, since the store was
    /// opened. The caller passes the two counts that the servers keep and the wrappers do not:
    /// `unrefunded` and `replayed`.
    pub(crate) fn counts(&self, unrefunded: u64, replayed: ReplayCounts) -> Counts {
        let Handles { leases, deadline_store, decider, refusals, .. } = &self.handles;
        let fallback = decider.counts();
        Counts {
            deny_cache_hits: refusals.hits(),
            fallback_decisions: fallback.fallback_decisions,
            local_charges: decider.local_charges(),
            unanswered: fallback.unanswered,
            deadline_misses: deadline_store.deadline_misses(),
            unrefunded,
            discarded: self.discarded.load(Ordering::Relaxed),
            replayed,
            leases: leases.counts(),
        }
    }

    /// Refunds the unused units of this node's quota leases. Called before the process ends.
    pub(crate) async fn refund_leases(&self, now: Timestamp) {
        self.handles.leases.refund_all(now).await;
    }
}

impl<P: CellTransfer + 'static> Store for ServerStore<P> {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        let readings = self.store.apply(now, charges).await?;
        let found = |reading: &Reading| reading.found == StoredState::Discarded;
        // A refusal from the deny cache was already counted when the store returned the refusal.
        if readings.source() == DecisionSource::Store && readings.iter().any(found) {
            self.discarded.fetch_add(1, Ordering::Relaxed);
        }
        Ok(readings)
    }
}

impl<P: CellTransfer + 'static> CellTransfer for ServerStore<P> {
    async fn cells(
        &self,
        now: Timestamp,
        cell_keys: &[CellKey<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        self.store.cells(now, cell_keys).await
    }

    async fn join(&self, now: Timestamp, cells: &[(CellKey<'_>, Cell)]) -> Result<(), StoreError> {
        self.store.join(now, cells).await
    }
}
