//! Lists the subjects that the keys of a primary contain in clear text.

use tokio::time::Instant;
use tollgate_core::StoreError;

use super::RedisCluster;
use crate::listing::{self, ListError, ListFilter, ListPage};

impl RedisCluster {
    /// Lists subjects of one primary, like [`RedisShard::list`](crate::RedisShard::list). `primary`
    /// is the index of the primary, from 0 on, in the order of the primaries' first slots. Returns
    /// `None` if the cluster has no primary with this index. A key that moves between primaries
    /// during the listing may be found twice, or not at all.
    ///
    /// # Errors
    /// The errors of [`RedisShard::list`](crate::RedisShard::list). [`ListError::Store`] also if
    /// the cluster is not discovered by `until`.
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
