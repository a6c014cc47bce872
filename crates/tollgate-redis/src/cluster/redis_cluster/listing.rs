//! Subjects that keys of the cluster's primaries reveal.

use tokio::time::Instant;
use tollgate_core::StoreError;

use super::RedisCluster;
use crate::listing::{self, ListError, ListFilter, ListPage};

impl RedisCluster {
    /// As [`RedisShard::list`](crate::RedisShard::list), at the primary of this number in the order
    /// of the first slots; `None` where there are fewer. What moves from one to another meanwhile
    /// may be found twice, or not at all.
    ///
    /// # Errors
    /// As of a shard; also before the cluster was found.
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
