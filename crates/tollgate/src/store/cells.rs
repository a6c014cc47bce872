//! Cells pass through wrappers to the stores that keep them.

use tollgate_core::{Cell, Cells, Place, StoreError, Timestamp};

use super::atomic::{Atomic, HomesOfCells};
use super::deadline::Deadline;
use super::fallback::{Fallback, StandIn};
use super::join::join_all;
use super::refused::Refused;
use super::sharded::Sharded;

impl<S: Cells> HomesOfCells for Sharded<S> {
    fn cells_at(
        &self,
        home: usize,
        now: Timestamp,
        places: &[Place<'_>],
    ) -> impl Future<Output = Result<Vec<Option<Cell>>, StoreError>> + Send {
        self.shards()[home].store.cells(now, places)
    }

    fn join_at(
        &self,
        home: usize,
        now: Timestamp,
        cells: &[(Place<'_>, Cell)],
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        self.shards()[home].store.join(now, cells)
    }
}

impl<H: HomesOfCells + 'static> Cells for Atomic<H> {
    async fn cells(
        &self,
        now: Timestamp,
        places: &[Place<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        let homes = self.homes();
        let alone = places.iter().map(std::slice::from_ref);
        let reads = alone.map(|place| homes.cells_at(homes.home(place[0].subject), now, place));
        let mut cells = Vec::with_capacity(places.len());
        for read in join_all(reads.collect()).await {
            cells.extend(read?);
        }
        Ok(cells)
    }

    async fn join(&self, now: Timestamp, cells: &[(Place<'_>, Cell)]) -> Result<(), StoreError> {
        let homes = self.homes();
        let alone = cells.iter().map(std::slice::from_ref);
        let joins = alone.map(|cell| homes.join_at(homes.home(cell[0].0.subject), now, cell));
        join_all(joins.collect()).await.into_iter().collect()
    }
}

impl<S: Cells> Cells for Deadline<S> {
    async fn cells(
        &self,
        now: Timestamp,
        places: &[Place<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        self.in_time(self.store().cells(now, places)).await
    }

    async fn join(&self, now: Timestamp, cells: &[(Place<'_>, Cell)]) -> Result<(), StoreError> {
        self.in_time(self.store().join(now, cells)).await
    }
}

/// What stands in for a store keeps no cells of its own that could move.
impl<A: Cells, B: StandIn> Cells for Fallback<A, B> {
    fn cells(
        &self,
        now: Timestamp,
        places: &[Place<'_>],
    ) -> impl Future<Output = Result<Vec<Option<Cell>>, StoreError>> + Send {
        self.store().cells(now, places)
    }

    fn join(
        &self,
        now: Timestamp,
        cells: &[(Place<'_>, Cell)],
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        self.store().join(now, cells)
    }
}

/// A join only makes refusals truer that are remembered.
impl<S: Cells> Cells for Refused<S> {
    fn cells(
        &self,
        now: Timestamp,
        places: &[Place<'_>],
    ) -> impl Future<Output = Result<Vec<Option<Cell>>, StoreError>> + Send {
        self.store().cells(now, places)
    }

    fn join(
        &self,
        now: Timestamp,
        cells: &[(Place<'_>, Cell)],
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        self.store().join(now, cells)
    }
}
