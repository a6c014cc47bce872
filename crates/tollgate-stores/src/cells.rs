//! Cell transfer through wrappers to the stores that keep the cells.

use tollgate_core::{Cell, CellKey, CellTransfer, StoreError, Timestamp};

use super::atomic::{Atomic, PartitionedCells};
use super::call_timer::CallTimer;
use super::deadline::Deadline;
use super::deny_cache::DenyCache;
use super::join::join_all;
use super::rollout::{NEW_STORE, Rollout};
use super::sharded::Sharded;

impl<S: CellTransfer> PartitionedCells for Sharded<S> {
    fn cells_at(
        &self,
        partition: usize,
        now: Timestamp,
        cell_keys: &[CellKey<'_>],
    ) -> impl Future<Output = Result<Vec<Option<Cell>>, StoreError>> + Send {
        self.shards()[partition].store.cells(now, cell_keys)
    }

    fn join_at(
        &self,
        partition: usize,
        now: Timestamp,
        cells: &[(CellKey<'_>, Cell)],
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        self.shards()[partition].store.join(now, cells)
    }
}

impl<H: PartitionedCells + 'static> CellTransfer for Atomic<H> {
    async fn cells(
        &self,
        now: Timestamp,
        cell_keys: &[CellKey<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        let partitions = self.partitions();
        let each = cell_keys.iter().map(std::slice::from_ref);
        let reads = each.map(|cell_key| {
            partitions.cells_at(partitions.partition(cell_key[0].subject), now, cell_key)
        });
        let mut cells = Vec::with_capacity(cell_keys.len());
        for read in join_all(reads.collect()).await {
            cells.extend(read?);
        }
        Ok(cells)
    }

    async fn join(&self, now: Timestamp, cells: &[(CellKey<'_>, Cell)]) -> Result<(), StoreError> {
        let partitions = self.partitions();
        let each = cells.iter().map(std::slice::from_ref);
        let joins =
            each.map(|cell| partitions.join_at(partitions.partition(cell[0].0.subject), now, cell));
        join_all(joins.collect()).await.into_iter().collect()
    }
}

impl<S: CellTransfer> CellTransfer for Deadline<S> {
    async fn cells(
        &self,
        now: Timestamp,
        cell_keys: &[CellKey<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        self.in_time(self.store().cells(now, cell_keys)).await
    }

    async fn join(&self, now: Timestamp, cells: &[(CellKey<'_>, Cell)]) -> Result<(), StoreError> {
        self.in_time(self.store().join(now, cells)).await
    }
}

/// Implements [`CellTransfer`] for a wrapper that does not change the cells of its inner store.
macro_rules! pass_cells_through {
    ($($(#[$docs:meta])* impl<$($name:ident: $bound:ident),+> for $wrapper:ty;)+) => {$(
        $(#[$docs])*
        impl<$($name: $bound),+> CellTransfer for $wrapper {
            fn cells(
                &self,
                now: Timestamp,
                cell_keys: &[CellKey<'_>],
            ) -> impl Future<Output = Result<Vec<Option<Cell>>, StoreError>> + Send {
                self.store().cells(now, cell_keys)
            }

            fn join(
                &self,
                now: Timestamp,
                cells: &[(CellKey<'_>, Cell)],
            ) -> impl Future<Output = Result<(), StoreError>> + Send {
                self.store().join(now, cells)
            }
        }
    )+};
}

pass_cells_through! {
    /// Transfers the cells of the inner store. A join only raises usage, so the cached refusals
    /// stay valid.
    impl<S: CellTransfer> for DenyCache<S>;
    /// Transfers the cells of the inner store, and does not measure the transfers, because no
    /// client waits for them.
    impl<S: CellTransfer> for CallTimer<S>;
}

/// Reads and joins cells at the stores to which the subjects belong now.
impl<A: CellTransfer, B: CellTransfer> PartitionedCells for Rollout<A, B> {
    async fn cells_at(
        &self,
        partition: usize,
        now: Timestamp,
        cell_keys: &[CellKey<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        if partition == NEW_STORE {
            self.new_store().cells(now, cell_keys).await
        } else {
            self.old().cells(now, cell_keys).await
        }
    }

    async fn join_at(
        &self,
        partition: usize,
        now: Timestamp,
        cells: &[(CellKey<'_>, Cell)],
    ) -> Result<(), StoreError> {
        if partition == NEW_STORE {
            self.new_store().join(now, cells).await
        } else {
            self.old().join(now, cells).await
        }
    }
}
