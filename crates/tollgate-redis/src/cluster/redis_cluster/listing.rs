//! The listing of subjects that keys of the cluster's primaries reveal.

use tokio::time::Instant;
use tollgate_core::StoreError;

use super::RedisCluster;
use crate::listing::{self, ListError, ListFilter, ListPage};

impl RedisCluster {
    /// Lists subjects like [`RedisShard::list`](crate::RedisShard::list), at one primary, numbered
    /// in the order of the first slots. Returns `None` if there are fewer primaries. A key that
    /// moves between primaries during the listing may be found twice, or not at all.
    ///
    /// # Errors
    /// The same as for a shard; also before the cluster was discovered.
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
