//! The application's clock, corrected by the shards'.

use std::fmt;
use std::sync::Arc;

use tollgate::Clock;
use tollgate::core::Timestamp;

use crate::shard_map::ShardMap;

/// A clock with the time of the first shard that has reported one. Until then it shows the
/// application's time.
///
/// If the shards' clocks decide, a node must use the same clock for retry times and for the windows
/// of its own share. Reading it takes no round trip, because the offset of a shard's clock is
/// estimated from its replies. If shards' clocks differ from each other, each shard still decides
/// by its own clock.
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
