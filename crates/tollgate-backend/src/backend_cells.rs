//! Transfer of cells through backends to their stores.

use tollgate::model::{Cell, CellKey, CellTransfer, StoreError, Timestamp};

use crate::memcached_backend::MemcachedBackend;
use crate::redis_backend::RedisBackend;

impl CellTransfer for RedisBackend {
    async fn cells(
        &self,
        now: Timestamp,
        places: &[CellKey<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        self.layers().cells(now, places).await
    }

    async fn join(&self, now: Timestamp, cells: &[(CellKey<'_>, Cell)]) -> Result<(), StoreError> {
        self.layers().join(now, cells).await
    }
}

impl CellTransfer for MemcachedBackend {
    async fn cells(
        &self,
        now: Timestamp,
        places: &[CellKey<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        self.layers().cells(now, places).await
    }

    async fn join(&self, now: Timestamp, cells: &[(CellKey<'_>, Cell)]) -> Result<(), StoreError> {
        self.layers().join(now, cells).await
    }
}
