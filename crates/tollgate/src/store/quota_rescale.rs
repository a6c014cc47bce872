//! Limits that were changed take over what was used before, in proportion.

use std::fmt;

use tollgate_core::charge::Operation;
use tollgate_core::{Cell, CellKey, CellTransfer, Charge, Readings, Store, StoreError, Timestamp};

use super::lazy_transfer::{DEFAULT_TRANSFER_ENTRIES, LazyTransfer};

/// A store in which limits that [scale](tollgate_core::OnChange::Scale) when they are changed find
/// the part that their subjects had used.
///
/// # What it keeps
/// - Before the first decision by a new definition, what the old one had counted of the subject is
///   [scaled](tollgate_core::Limit::scaled) and [joined](tollgate_core::decide::join) to what there
///   is. That costs two calls more for each limit and subject on each node, and none once the old
///   definition's windows are over.
/// - Nodes that do so one after the other change nothing more: joining twice is joining once.
///
/// # What it weakens
/// - While nodes hold two definitions each counts by its own: a subject may use what either admits,
///   at most each limit once.
/// - Who is not asked about between two changes within a window begins anew by the second one, as
///   does everybody at a node that starts with it, unless another node has brought them along.
/// - A store that does not answer leaves them behind: [`failed_transfers`](Self::failed_transfers) counts, and
///   the next decision asks again.
pub struct QuotaRescale<S> {
    store: S,
    transfer: LazyTransfer,
}

impl<S> QuotaRescale<S> {
    /// `store`, in which limits scale.
    #[must_use]
    pub fn new(store: S) -> Self {
        Self { store, transfer: LazyTransfer::new(DEFAULT_TRANSFER_ENTRIES) }
    }

    /// The store that all is kept in.
    #[must_use]
    pub const fn store(&self) -> &S {
        &self.store
    }

    /// CellTransfer that were taken over.
    #[must_use]
    pub fn transferred(&self) -> u64 {
        self.transfer.transferred()
    }

    /// Calls before which the store could not say what was used before.
    #[must_use]
    pub fn failed_transfers(&self) -> u64 {
        self.transfer.failed()
    }
}

impl<S: CellTransfer> QuotaRescale<S> {
    async fn take_over(&self, now: Timestamp, charges: &[Charge<'_>]) {
        // What is given back was charged by one definition, and goes back there.
        let decides = |charge: &&Charge<'_>| {
            let is_new = matches!(
                charge.operation,
                Operation::Charge { .. }
                    | Operation::Reserve { .. }
                    | Operation::Peek { .. }
                    | Operation::Reset
            );
            is_new && charge.limit.predecessor(now).is_some()
        };
        let charges: Vec<Charge<'_>> = charges.iter().filter(decides).copied().collect();
        let previous = PreviousQuota(&self.store);
        self.transfer.transfer(now, 0, (&previous, &self.store), &charges).await;
    }
}

impl<S: CellTransfer> Store for QuotaRescale<S> {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        if charges.iter().any(|charge| charge.limit.predecessor(now).is_some()) {
            Box::pin(self.take_over(now, charges)).await;
        }
        self.store.apply(now, charges).await
    }
}

impl<S: CellTransfer> CellTransfer for QuotaRescale<S> {
    fn cells(
        &self,
        now: Timestamp,
        places: &[CellKey<'_>],
    ) -> impl Future<Output = Result<Vec<Option<Cell>>, StoreError>> + Send {
        self.store.cells(now, places)
    }

    fn join(
        &self,
        now: Timestamp,
        cells: &[(CellKey<'_>, Cell)],
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        self.store.join(now, cells)
    }
}

/// What there was before limits were changed, as they count it now.
struct PreviousQuota<'s, S>(&'s S);

impl<S: CellTransfer> Store for PreviousQuota<'_, S> {
    fn apply(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> impl Future<Output = Result<Readings, StoreError>> + Send {
        self.0.apply(now, charges)
    }
}

impl<S: CellTransfer> CellTransfer for PreviousQuota<'_, S> {
    async fn cells(
        &self,
        now: Timestamp,
        places: &[CellKey<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        let asked: Vec<CellKey<'_>> = places
            .iter()
            .map(|place| CellKey {
                limit: place.limit.predecessor(now).unwrap_or(place.limit),
                ..*place
            })
            .collect();
        let cells = self.0.cells(now, &asked).await?;
        let both = places.iter().zip(&asked).zip(cells);
        let scaled = both.map(|((new, old), cell)| new.limit.scaled(&cell?, old.limit, now));
        Ok(scaled.collect())
    }

    fn join(
        &self,
        now: Timestamp,
        cells: &[(CellKey<'_>, Cell)],
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        self.0.join(now, cells)
    }
}

impl<S: fmt::Debug> fmt::Debug for QuotaRescale<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuotaRescale").field("store", &self.store).finish_non_exhaustive()
    }
}
