//! Cells pass through fleets to the servers that keep them.

use tollgate::core::{Cell, Cells, Place, StoreError, Timestamp};

use crate::memcached_fleet::MemcachedFleet;
use crate::redis_fleet::RedisFleet;

impl Cells for RedisFleet {
    async fn cells(
        &self,
        now: Timestamp,
        places: &[Place<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        self.layers().cells(now, places).await
    }

    async fn join(&self, now: Timestamp, cells: &[(Place<'_>, Cell)]) -> Result<(), StoreError> {
        self.layers().join(now, cells).await
    }
}

impl Cells for MemcachedFleet {
    async fn cells(
        &self,
        now: Timestamp,
        places: &[Place<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        self.layers().cells(now, places).await
    }

    async fn join(&self, now: Timestamp, cells: &[(Place<'_>, Cell)]) -> Result<(), StoreError> {
        self.layers().join(now, cells).await
    }
}
