//! The listing of the subjects that keys of a primary contain in clear text.

use tokio::time::Instant;
use tollgate_core::StoreError;

use super::RedisCluster;
use crate::listing::{self, ListError, ListFilter, ListPage};

impl RedisCluster {
    /// Lists subjects of one primary, like [`RedisShard::list`](crate::RedisShard::list). The
    /// number of the primary, from 0 on, counts the primaries in the order of their first slots.
    /// Returns `None` if no primary has this number. A key that moves between primaries during the
    /// listing may be found twice, or not at all.
    ///
    /// # Errors
    /// The errors of [`RedisShard::list`](crate::RedisShard::list). An error is also returned
    /// before the cluster was discovered.
    pub async fn list(
        &self,
        primary: usize,
        filter: ListFilter<'_>,
        cursor: u64,
        until: Instant,
    ) -> Option<Result<ListPage, ListError>> {
        let Some(map) = self.known.map(until).await else {
            return Some(Err(ListError::Store(StoreError::Unavailable)));
        };
        let group = map.groups().get(primary)?;
        Some(listing::list(group.primary().link(), &self.keys, filter, cursor, until).await)
    }
}
