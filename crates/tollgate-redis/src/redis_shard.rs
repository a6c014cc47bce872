//! The store: limits in one shard, reached by a batcher that never makes a caller wait for long.

mod cells;
mod listing;
mod shared_blob;

use std::time::Duration;

use tokio::time::Instant;
use tollgate_core::{Charge, Millis, Readings, ReplicationEpochs, Store, StoreError, Timestamp};

use crate::batcher::{BatcherError, BatcherStatus, DEFAULT_DEADLINE, Route};
use crate::job::Job;
use crate::key::Keys;
use crate::link::LinkError;
use crate::offset::ClockOffset;
use crate::script::{RuntimeChoice, StepRuntime};
use crate::shard::{Shard, ShardSettings};
use crate::step_codec::StepCodec;
use crate::topology::DataLoss;

/// The shortest deadline that is shared by a replica and the primary, each of which has half of it.
const SHARED_FROM: Duration = Duration::from_millis(10);

/// Whose clock decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DecisionClock {
    /// The application's: the time that each call brings.
    #[default]
    Application,
    /// The shard's, as it is estimated from its replies; the call's own time until the first one.
    Shard,
}

/// Limits in one shard: a primary, and replicas of which one may become it.
///
/// Calls that wait for the primary travel together. Each is answered by its deadline, and at once
/// where the primary is known not to answer. What a caller gave up is not charged later: the
/// server refuses what comes after the deadline by its own clock.
///
/// Calls of nothing but looks and peeks are answered by replicas, if [`ShardSettings::reads`] says
/// so: with what the primary had written some seconds before ([`LAG_MAX`](crate::LAG_MAX)), judged by `now`, so that a
/// window that is over counts as over there, too. Only the primary admits.
#[derive(Debug)]
pub struct RedisShard {
    shard: Shard<StepCodec>,
    keys: Keys,
    deadline: Duration,
    clock: DecisionClock,
}

impl RedisShard {
    /// A store on the shard of `settings`, which begins to connect. Needs a tokio runtime.
    #[must_use]
    pub fn open(settings: &ShardSettings, keys: Keys, choice: RuntimeChoice) -> Self {
        Self {
            shard: Shard::open(
                settings,
                StepCodec::new(choice, settings.client_role),
                StepCodec::for_replica,
            ),
            keys,
            deadline: DEFAULT_DEADLINE,
            clock: DecisionClock::default(),
        }
    }

    /// The same store, in which a decision may take as long as `deadline`.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// The same store, deciding by `clock`.
    #[must_use]
    pub fn with_clock(self, clock: DecisionClock) -> Self {
        Self { clock, ..self }
    }

    /// The same store, which holds charges back after the primary's data has become of another
    /// history, as a failover makes it, until that is [released](ReplicationEpochs::release): for whoever
    /// joins what is missing first. The first history is held back, too; what only reads never is.
    #[must_use]
    pub fn with_paused_epochs(self) -> Self {
        self.shard.primary().pause_until_replayed();
        self
    }

    /// Waits until the primary is connected.
    ///
    /// # Errors
    /// Why it was not `within` that time. The store goes on trying, and connects when it can.
    pub async fn ready(&self, within: Duration) -> Result<(), LinkError> {
        self.shard.ready(within).await
    }

    /// How the step runs in the primary.
    #[must_use]
    pub fn runtime(&self) -> StepRuntime {
        self.shard.primary().codec().runtime()
    }

    /// How the batchers stand: the one to the primary is the first; those to the replicas that are
    /// read from follow, in the order of the settings, or of their addresses where sentinels name
    /// them.
    #[must_use]
    pub fn status(&self) -> Vec<BatcherStatus> {
        self.shard.status()
    }

    /// How often it was noticed, since the store was opened, that counters were lost and windows
    /// began anew, in part or all; and why the last time. What is lost while no primary is connected
    /// is noticed when one is again.
    #[must_use]
    pub fn windows_lost(&self) -> (u64, Option<DataLoss>) {
        self.shard.losses()
    }

    /// How far the shard's clock is ahead of the application's, which shows `now`. `None` before
    /// the first reply.
    #[must_use]
    pub fn clock_offset(&self, now: Timestamp) -> Option<ClockOffset> {
        self.shard.primary().link().clock().ahead_of(now, Instant::now())
    }

    /// As [`Store::apply`], within a time of the call's own, and with the whole reason of a failure.
    ///
    /// # Errors
    /// [`BatcherError`] says whether the call may have been charged all the same.
    pub async fn apply_within(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
        within: Duration,
    ) -> Result<Readings, BatcherError> {
        let begun = Instant::now();
        let batcher = self.shard.primary();
        let job = Job::new(&self.keys, self.moment(now, begun), charges);
        if within >= SHARED_FROM
            && job.is_read_only()
            && let Some(replica) = self.shard.replica()
            && let Ok(answer) = replica.submit(job.clone(), begun + within / 2).await
        {
            return answer.into_readings().map_err(BatcherError::Step);
        }
        let priority = batcher.priority(|| job.is_read_only());
        // A replica without an answer has charged nothing, and left half of the time.
        let answer = batcher.submit_by(Route::Any, priority, job, begun + within).await?;
        answer.into_readings().map_err(BatcherError::Step)
    }

    /// The moment of a decision that is made when the application's clock shows `now`.
    fn moment(&self, now: Timestamp, begun: Instant) -> Timestamp {
        match self.clock {
            DecisionClock::Application => now,
            DecisionClock::Shard => self.shard.primary().link().clock().time(begun).unwrap_or(now),
        }
    }
}

impl Store for RedisShard {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        Ok(self.apply_within(now, charges, self.deadline).await?)
    }
}

/// A history is one course of replication: it ends with a promotion, and with a restart. It goes on
/// when a connection is replaced, and when keys are deleted, which somebody may have wanted. Where
/// the primary may not be asked for `INFO`, each connection is taken to begin one.
impl ReplicationEpochs for RedisShard {
    fn history(&self) -> u64 {
        self.shard.primary().history()
    }

    fn holds(&self) -> bool {
        self.shard.primary().holds()
    }

    fn outage(&self) -> Millis {
        self.shard.primary().outage()
    }

    fn release(&self, history: u64) {
        self.shard.primary().release(history);
    }
}
