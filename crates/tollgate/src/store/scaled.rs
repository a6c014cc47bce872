//! Limits that were changed take over what was used before, in proportion.

use std::fmt;

use tollgate_core::charge::Ask;
use tollgate_core::{Cell, Cells, Charge, Place, Readings, Store, StoreError, Timestamp};

use super::arrivals::{Arrivals, DEFAULT_ARRIVALS};

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
/// - A store that does not answer leaves them behind: [`left_behind`](Self::left_behind) counts, and
///   the next decision asks again.
pub struct Scaled<S> {
    store: S,
    arrivals: Arrivals,
}

impl<S> Scaled<S> {
    /// `store`, in which limits scale.
    #[must_use]
    pub fn new(store: S) -> Self {
        Self { store, arrivals: Arrivals::new(DEFAULT_ARRIVALS) }
    }

    /// The store that all is kept in.
    #[must_use]
    pub const fn store(&self) -> &S {
        &self.store
    }

    /// Cells that were taken over.
    #[must_use]
    pub fn carried(&self) -> u64 {
        self.arrivals.carried()
    }

    /// Calls before which the store could not say what was used before.
    #[must_use]
    pub fn left_behind(&self) -> u64 {
        self.arrivals.failed()
    }
}

impl<S: Cells> Scaled<S> {
    async fn take_over(&self, now: Timestamp, charges: &[Charge<'_>]) {
        // What is given back was charged by one definition, and goes back there.
        let decides = |charge: &&Charge<'_>| {
            let is_new = matches!(
                charge.ask,
                Ask::Take { .. } | Ask::Reserve { .. } | Ask::Look { .. } | Ask::Forget
            );
            is_new && charge.limit.former(now).is_some()
        };
        let charges: Vec<Charge<'_>> = charges.iter().filter(decides).copied().collect();
        let former = Former(&self.store);
        self.arrivals.bring(now, 0, (&former, &self.store), &charges).await;
    }
}

impl<S: Cells> Store for Scaled<S> {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        if charges.iter().any(|charge| charge.limit.former(now).is_some()) {
            Box::pin(self.take_over(now, charges)).await;
        }
        self.store.apply(now, charges).await
    }
}

impl<S: Cells> Cells for Scaled<S> {
    fn cells(
        &self,
        now: Timestamp,
        places: &[Place<'_>],
    ) -> impl Future<Output = Result<Vec<Option<Cell>>, StoreError>> + Send {
        self.store.cells(now, places)
    }

    fn join(
        &self,
        now: Timestamp,
        cells: &[(Place<'_>, Cell)],
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        self.store.join(now, cells)
    }
}

/// What there was before limits were changed, as they count it now.
struct Former<'s, S>(&'s S);

impl<S: Cells> Store for Former<'_, S> {
    fn apply(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> impl Future<Output = Result<Readings, StoreError>> + Send {
        self.0.apply(now, charges)
    }
}

impl<S: Cells> Cells for Former<'_, S> {
    async fn cells(
        &self,
        now: Timestamp,
        places: &[Place<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        let asked: Vec<Place<'_>> = places
            .iter()
            .map(|place| Place { limit: place.limit.former(now).unwrap_or(place.limit), ..*place })
            .collect();
        let cells = self.0.cells(now, &asked).await?;
        let both = places.iter().zip(&asked).zip(cells);
        let scaled = both.map(|((new, old), cell)| new.limit.scaled(&cell?, old.limit, now));
        Ok(scaled.collect())
    }

    fn join(
        &self,
        now: Timestamp,
        cells: &[(Place<'_>, Cell)],
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        self.0.join(now, cells)
    }
}

impl<S: fmt::Debug> fmt::Debug for Scaled<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scaled").field("store", &self.store).finish_non_exhaustive()
    }
}
