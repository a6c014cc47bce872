//! The application's clock, set by the shards'.

use std::fmt;
use std::sync::Arc;

use tollgate::Clock;
use tollgate::core::Timestamp;

use crate::shard_map::ShardMap;

/// A clock that is set by the first shard of which the time is known, and shows the application's
/// time until there is one.
///
/// Where the shards' clocks decide, what a node says of them (when to come again, how long its own
/// share of a window lasts) has to be told by them as well. It takes no round trip: how far a shard
/// is ahead is estimated from its replies. Shards that differ among themselves each decide by their
/// own clock all the same.
pub struct StoreClock<C> {
    clock: C,
    shards: Arc<ShardMap>,
}

impl<C> StoreClock<C> {
    pub(crate) const fn new(clock: C, shards: Arc<ShardMap>) -> Self {
        Self { clock, shards }
    }
}

impl<C: Clock> Clock for StoreClock<C> {
    fn now(&self) -> Timestamp {
        let now = self.clock.now();
        let mut shards = self.shards.shards();
        match shards.find_map(|shard| shard.store.store().clock_offset(now)) {
            Some(offset) => {
                Timestamp::from_millis(now.as_millis().saturating_add_signed(offset.millis))
            }
            None => now,
        }
    }
}

impl<C: fmt::Debug> fmt::Debug for StoreClock<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreClock").field("clock", &self.clock).finish_non_exhaustive()
    }
}
