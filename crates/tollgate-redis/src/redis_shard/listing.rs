//! The listing of the subjects that keys of the primary contain in clear text.

use tokio::time::Instant;

use super::RedisShard;
use crate::listing::{self, ListError, ListFilter, ListPage};

impl RedisShard {
    /// Scans some keys of the primary for subjects that match `filter`. The scan starts at
    /// `cursor`. The cursor 0 selects the beginning. A key that exists during the whole listing is
    /// found. A key that is created or deleted during the listing may be missed.
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
