//! How a store stands, for whoever operates it.

use std::time::Duration;

use tollgate::store::Shard;
use tollgate::{Clock, SystemClock};
use tollgate_redis::{ClockOffset, Gate, LaneStatus, Loss, RedisShard, Runs};

/// How one shard stands.
#[derive(Clone, Debug)]
pub struct ShardStatus {
    /// Its name in the settings.
    pub name: Box<str>,
    /// How the step runs in its primary.
    pub runs: Runs,
    /// The lanes to its servers: the primary's is the first; those of the replicas that are read
    /// from follow, in the order of the settings.
    pub lanes: Vec<LaneStatus>,
    /// How far its clock is ahead of this machine's. `None` before the first reply.
    pub clock_offset: Option<ClockOffset>,
    /// How often, since the store was opened, counters of it were found lost, so that windows began
    /// anew.
    pub windows_lost: u64,
    /// Why they were lost the last time.
    pub last_loss: Option<Loss>,
}

/// What was decided without a shard, and what went wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls that were refused without asking, because they had been refused until a later time.
    pub remembered: u64,
    /// Calls that this node's share answered.
    pub stood_in: u64,
    /// Calls that nothing answered.
    pub unanswered: u64,
    /// Calls that were given up at the deadline of the whole decision.
    pub missed: u64,
    /// Charges that were taken for nothing and could not be given back.
    pub stranded: u64,
    /// Calls that met stored state that counts as none: of another type, junk, or of a time that
    /// no clock within the limit's skew can have shown.
    pub discarded: u64,
}

impl ShardStatus {
    /// How `shard` stands now.
    pub(crate) fn of(shard: &Shard<RedisShard>) -> Self {
        let (windows_lost, last_loss) = shard.store.windows_lost();
        Self {
            name: shard.name.clone(),
            runs: shard.store.runs(),
            lanes: shard.store.status(),
            clock_offset: shard.store.clock_offset(SystemClock.now()),
            windows_lost,
            last_loss,
        }
    }

    /// Where its primary is, if one answers.
    #[must_use]
    pub fn primary(&self) -> Option<&str> {
        self.lanes.first().and_then(reached)
    }

    /// By how much its clock surely differs from this machine's; nothing before the first reply.
    #[must_use]
    pub fn skew(&self) -> Duration {
        let surely = self
            .clock_offset
            .map_or(0, |offset| offset.millis.unsigned_abs().saturating_sub(offset.uncertainty));
        Duration::from_millis(surely)
    }
}

/// Where `lane` leads, if the server there answers.
pub(crate) fn reached(lane: &LaneStatus) -> Option<&str> {
    lane.address.as_deref().filter(|_| lane.gate == Gate::Closed)
}
