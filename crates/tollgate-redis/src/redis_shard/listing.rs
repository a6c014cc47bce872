//! Subjects that keys of the primary reveal.

use tokio::time::Instant;

use super::RedisShard;
use crate::listing::{self, ListError, ListFilter, ListPage};

impl RedisShard {
    /// Looks at some keys of the primary from `cursor` on, 0 being the beginning, for subjects that
    /// are `filter`. A key that is there from the first step to the last is found; one that comes or
    /// goes meanwhile may be.
    ///
    /// # Errors
    /// [`ListError`] if the primary did not say by `until`, or may not.
    pub async fn list(
        &self,
        filter: ListFilter<'_>,
        cursor: u64,
        until: Instant,
    ) -> Result<ListPage, ListError> {
        listing::list(self.shard.primary().link(), &self.keys, filter, cursor, until).await
    }
}
