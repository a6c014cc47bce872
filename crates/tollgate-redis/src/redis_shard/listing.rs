//! The listing of subjects that keys of the primary reveal.

use tokio::time::Instant;

use super::RedisShard;
use crate::listing::{self, ListError, ListFilter, ListPage};

impl RedisShard {
    /// Scans some keys of the primary from `cursor` on, 0 being the beginning, for subjects that
    /// match `filter`. A key that exists from the first step to the last is found. One that is
    /// created or deleted in between may be found.
    ///
    /// # Errors
    /// [`ListError`] if the primary did not answer by `until`, or does not permit the scan.
    pub async fn list(
        &self,
        filter: ListFilter<'_>,
        cursor: u64,
        until: Instant,
    ) -> Result<ListPage, ListError> {
        listing::list(self.shard.primary().link(), &self.keys, filter, cursor, until).await
    }
}
