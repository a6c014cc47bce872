//! Scales a subject's usage in proportion when the quota of a limit changes.

use std::fmt;

use tollgate_core::charge::Operation;
use tollgate_core::{
    Algorithm, Cell, CellKey, CellTransfer, Charge, Cost, Limit, Readings, Store, StoreError,
    Timestamp, assess,
};

use super::lazy_transfer::{DEFAULT_TRANSFER_ENTRIES, LazyTransfer};

/// A store that scales the earlier usage in proportion to the new quota when the quota of a limit
/// with [`OnChange::Scale`](tollgate_core::OnChange::Scale) changes.
///
/// # Guarantees
/// - Before the first decision with a new definition, the subject's usage under the old definition
///   is [scaled](tollgate_core::Limit::scaled) and [joined](tollgate_core::decide::join) into the
///   existing usage. The transfer costs two additional calls for each limit and subject on each
///   node, and none after the counters of the old definition have expired.
/// - If several nodes transfer the same usage one after the other, the usage counts once. The same
///   applies if a node transfers the usage again.
/// - A reset discards the usage under both definitions.
///
/// # Limitations
/// - While some nodes use the old definition and other nodes use the new definition, the two
///   definitions are counted separately. A subject may use at most the quota of the old definition
///   and the quota of the new definition.
/// - The usage is counted at the time of the first transfer. If the new window is so much shorter
///   than the old one that this usage has expired before another node's first decision on the
///   subject, the usage that is left of the old window counts once more. The same applies if the
///   subject was charged under the old definition meanwhile. The store may then refuse a charge that
///   fits, but never admits a charge beyond the limit.
/// - If a limit is changed twice in one window, a subject without a decision between the two
///   changes starts with an unused limit after the second change. On a node that starts after the
///   second change, every subject starts with an unused limit. Subjects that another node has
///   transferred keep their usage in both cases.
/// - While the store does not answer, earlier usage is not transferred.
///   [`failed_transfers`](Self::failed_transfers) counts the calls concerned, and the subject's
///   next decision tries the transfer again.
pub struct QuotaRescale<S> {
    store: S,
    transfer: LazyTransfer,
}

impl<S> QuotaRescale<S> {
    /// Wraps `store` and scales the usage of changed limits.
    #[must_use]
    pub fn new(store: S) -> Self {
        // The scaled usage depends on the quota.
        Self { store, transfer: LazyTransfer::new(DEFAULT_TRANSFER_ENTRIES).by_quota() }
    }

    /// Returns the inner store, which keeps all counters.
    #[must_use]
    pub const fn store(&self) -> &S {
        &self.store
    }

    /// Returns the number of cells that were scaled.
    #[must_use]
    pub fn transferred(&self) -> u64 {
        self.transfer.transferred()
    }

    /// Returns the number of calls for which the subjects' earlier usage could not be transferred.
    #[must_use]
    pub fn failed_transfers(&self) -> u64 {
        self.transfer.failed()
    }
}

impl<S: CellTransfer> QuotaRescale<S> {
    /// Resets the usage under the previous definitions of the limits that `charges` reset. If only
    /// the usage under the current definition was reset, the next transfer through another node
    /// would undo the reset.
    async fn reset_previous(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> Result<(), StoreError> {
        let resets = charges.iter().filter(|charge| charge.operation == Operation::Reset);
        let previous: Vec<_> = resets
            .filter_map(|charge| Some(Charge { limit: charge.limit.predecessor(now)?, ..*charge }))
            .collect();
        if !previous.is_empty() {
            self.store.apply(now, &previous).await?;
        }
        Ok(())
    }

    async fn adopt_usage(&self, now: Timestamp, charges: &[Charge<'_>]) {
        // Refunds and settlements are excluded, because they apply to the definition under which
        // the charge was made.
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
        // A definition that is restored replaces the other definition once more, and its subjects
        // are transferred once more.
        let epoch =
            |charge: &Charge<'_>| charge.limit.replaced_at().map_or(0, Timestamp::as_millis);
        self.transfer.transfer(now, epoch, (&previous, &self.store), &charges).await;
    }
}

impl<S: CellTransfer> Store for QuotaRescale<S> {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        if has_replaced(now, charges) {
            Box::pin(self.reset_previous(now, charges)).await?;
            Box::pin(self.adopt_usage(now, charges)).await;
        }
        self.store.apply(now, charges).await
    }

    fn apply_at_once(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> Option<Result<Readings, StoreError>> {
        if has_replaced(now, charges) { None } else { self.store.apply_at_once(now, charges) }
    }
}

/// Transfers the usage under the previous definitions before the cells are read, so the cells contain
/// this usage.
impl<S: CellTransfer> CellTransfer for QuotaRescale<S> {
    async fn cells(
        &self,
        now: Timestamp,
        cell_keys: &[CellKey<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        if cell_keys.iter().any(|cell_key| cell_key.limit.predecessor(now).is_some()) {
            let peeks: Vec<_> = cell_keys.iter().map(CellKey::peek).collect();
            Box::pin(self.adopt_usage(now, &peeks)).await;
        }
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

/// Returns whether at least one limit of `charges` replaced another definition, whose usage may
/// have to be transferred at `now`.
fn has_replaced(now: Timestamp, charges: &[Charge<'_>]) -> bool {
    charges.iter().any(|charge| charge.limit.predecessor(now).is_some())
}

/// The usage under the previous definitions of the limits, scaled to the current definitions.
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
        cell_keys: &[CellKey<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        let keys: Vec<CellKey<'_>> = cell_keys
            .iter()
            .map(|cell_key| CellKey {
                limit: cell_key.limit.predecessor(now).unwrap_or(cell_key.limit),
                ..*cell_key
            })
            .collect();
        // One call reads the cells of both definitions.
        let both: Vec<CellKey<'_>> = keys.iter().chain(cell_keys).copied().collect();
        let mut cells = self.0.cells(now, &both).await?;
        let current = cells.split_off(keys.len().min(cells.len()));
        let definitions = cell_keys.iter().zip(&keys).map(|(new, old)| (new.limit, old.limit));
        let scaled = definitions.zip(cells).zip(current).map(|(((new, old), cell), current)| {
            let scaled = new.scaled(&cell?, old, now)?;
            (!is_counted(current.as_ref(), &scaled, (new, old), now)).then_some(scaled)
        });
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

/// Returns whether `current`, the cell under the definition `new`, already contains the usage
/// `scaled`, because another node has transferred this usage.
///
/// A transfer counts the usage as used at the time of the transfer. The join of two windows or of
/// two buckets keeps the larger usage, so a repeated transfer changes nothing. The other algorithms
/// record the time of each charge, so their joins would add up the usage of two transfers.
fn is_counted(
    current: Option<&Cell>,
    scaled: &Cell,
    (new, old): (&Limit, &Limit),
    now: Timestamp,
) -> bool {
    let adds_up = matches!(
        new.algorithm(),
        Algorithm::SlidingWindow(_) | Algorithm::TwoBucket(_) | Algorithm::SlidingLog(_)
    );
    let used = |cell| assess(cell, new, Cost::PEEK, now).used;
    // The usage under the definition `old` was rounded up to whole units.
    let rounding = new.capacity().div_ceil(old.capacity()) - 1;
    adds_up && used(current).saturating_add(rounding) >= used(Some(scaled))
}

impl<S: fmt::Debug> fmt::Debug for QuotaRescale<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuotaRescale").field("store", &self.store).finish_non_exhaustive()
    }
}
