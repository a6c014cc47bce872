//! Shards whose map changes once.

use std::sync::{Arc, OnceLock};

use tollgate::core::{Cell, Cells, Charge, Place, Readings, Store, StoreError, Timestamp};
use tollgate::store::carry::{Carry, Phase, Shards};
use tollgate::store::rollout::DEFAULT_ARRIVALS;
use tollgate::store::{Atomic, Sharded};
use tollgate_redis::RedisShard;

use super::stores::CARRIED_WITHIN;

/// Shards under the map that a node began with, and under another one as soon as it is told.
#[derive(Debug)]
pub(super) struct Moving {
    before: Shards<RedisShard>,
    carry: OnceLock<Carry<RedisShard>>,
}

impl Moving {
    /// Shards under this map.
    pub(super) fn new(before: Sharded<Arc<RedisShard>>) -> Self {
        Self { before: Atomic::new(before), carry: OnceLock::new() }
    }

    /// Begins to move from `before`, the map so far, to `after`. Once: a second move is not made.
    pub(super) fn follow(&self, before: Sharded<Arc<RedisShard>>, after: Sharded<Arc<RedisShard>>) {
        self.carry.get_or_init(|| {
            Carry::new(before, after).with_arrivals(DEFAULT_ARRIVALS, CARRIED_WITHIN)
        });
    }

    /// Lets the new owners decide.
    pub(super) fn lead(&self) {
        if let Some(carry) = self.carry.get() {
            carry.enter(Phase::Leading);
        }
    }

    /// Cells that moved along with their subjects.
    pub(super) fn carried(&self) -> u64 {
        self.carry.get().map_or(0, Carry::carried)
    }

    /// The shards that decide. What arrives from elsewhere is given to them; the other owner has
    /// it by the move, before the next decision.
    fn deciding(&self) -> &Shards<RedisShard> {
        match self.carry.get() {
            None => &self.before,
            Some(carry) if carry.phase() == Phase::Following => carry.before(),
            Some(carry) => carry.after(),
        }
    }
}

impl Store for Moving {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        match self.carry.get() {
            None => self.before.apply(now, charges).await,
            Some(carry) => carry.apply(now, charges).await,
        }
    }
}

impl Cells for Moving {
    async fn cells(
        &self,
        now: Timestamp,
        places: &[Place<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        self.deciding().cells(now, places).await
    }

    async fn join(&self, now: Timestamp, cells: &[(Place<'_>, Cell)]) -> Result<(), StoreError> {
        self.deciding().join(now, cells).await
    }
}
