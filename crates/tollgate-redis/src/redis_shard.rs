//! The store for one shard. A batcher sends the calls of the store, and each call has a deadline.

mod cells;
mod listing;
mod shared_blob;

use std::time::Duration;

use tokio::time::Instant;
use tollgate_core::{
    Charge, Limit, Millis, Readings, ReplicationEpochs, Store, StoreError, Timestamp,
};

use crate::batcher::{BatcherError, BatcherStatus, DEFAULT_DEADLINE, Route};
use crate::connection::LinkError;
use crate::decision_time::{DecisionClock, DecisionTime, JobTime};
use crate::job::Job;
use crate::key::Keys;
use crate::members::DataLoss;
use crate::offset::ClockOffset;
use crate::script::{RuntimeChoice, StepRuntime};
use crate::shard::{PrimaryChoice, Shard, ShardSettings};
use crate::step_codec::StepCodec;

/// The shortest deadline with which a read-only call is sent to a replica first. The replica must
/// answer within half of the deadline, and the primary gets the remaining time if no replica
/// answers. A call with a shorter deadline is sent only to the primary.
const SHARED_FROM: Duration = Duration::from_millis(10);

/// A store that keeps the counters of limits in one shard: a primary, and replicas that may be
/// promoted.
///
/// Calls that wait for the primary are sent as a batch. Each call is answered by its deadline.
/// While the primary is known to be down, each call gets an error at once. A call that timed out is
/// not charged after its deadline: the server compares the deadline with its own clock, and rejects
/// commands that arrive later.
///
/// Replicas answer read-only calls if [`ShardSettings::reads`] selects replicas. The data of a
/// replica may be some seconds old ([`LAG_MAX`](crate::LAG_MAX)), but a replica evaluates the data
/// at the time of the call. So a window that has ended counts as ended on a replica too. Only the
/// primary charges.
#[derive(Debug)]
pub struct RedisShard {
    shard: Shard<StepCodec>,
    keys: Keys,
    deadline: Duration,
    time: DecisionTime,
}

impl RedisShard {
    /// Opens a store on the shard of `settings` and starts to connect. Needs a tokio runtime.
    #[must_use]
    pub fn open(settings: &ShardSettings, keys: Keys, choice: RuntimeChoice) -> Self {
        Self {
            shard: Shard::open(
                settings,
                StepCodec::new(choice, settings.client_role),
                StepCodec::for_replica,
                PrimaryChoice::ByMark,
            ),
            keys,
            deadline: DEFAULT_DEADLINE,
            time: DecisionTime::default(),
        }
    }

    /// Returns the same store with `deadline` as the longest time for a decision.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// Returns the same store with `clock` as the clock that decides.
    #[must_use]
    pub fn with_clock(mut self, clock: DecisionClock) -> Self {
        self.time.set_clock(clock);
        self
    }

    /// From now on, compares the time of each call with the shard's clock. If a call's time differs
    /// from the shard's clock by more than half of a limit's
    /// [`skew_max`](tollgate_core::Limit::skew_max), the shard's clock decides the call. Do not use
    /// this setting if the caller chooses the times of its calls freely.
    ///
    /// If the user may send `TIME` to the server, no call is sent before the shard's clock is
    /// known.
    pub fn check_clock(&self) {
        self.time.check();
    }

    /// Returns the same store, which holds back charges after the primary's replication epoch has
    /// changed, for example in a failover. Charges are rejected until the new epoch is
    /// [released](ReplicationEpochs::release). The first epoch must be released too. Until the
    /// release, missing charges can be replayed. Read-only calls are never rejected.
    #[must_use]
    pub fn with_paused_epochs(self) -> Self {
        self.shard.primary().pause_until_replayed();
        self
    }

    /// Waits until the primary is connected.
    ///
    /// # Errors
    /// [`LinkError`] with the reason, if the primary is not connected after the time `within`. The
    /// store continues to connect.
    pub async fn ready(&self, within: Duration) -> Result<(), LinkError> {
        self.shard.ready(within).await
    }

    /// Returns how the step runs in the primary: as a module, a function or a script.
    #[must_use]
    pub fn runtime(&self) -> StepRuntime {
        self.shard.primary().codec().runtime()
    }

    /// Returns the status of the batchers. The batcher to the primary is the first. The batchers to
    /// the replicas that serve reads follow, in the order of the settings. If sentinels name the
    /// replicas, the order is the order of their addresses.
    #[must_use]
    pub fn status(&self) -> Vec<BatcherStatus> {
        self.shard.status()
    }

    /// Returns how often lost counters were detected since the store was opened, and the cause of
    /// the last loss. After each loss, some or all windows started again. A loss that happens while
    /// no primary is connected is detected at the next connection.
    #[must_use]
    pub fn windows_lost(&self) -> (u64, Option<DataLoss>) {
        self.shard.losses()
    }

    /// Returns the reachable servers that report themselves as primary. If the shard has several
    /// servers and this function returns more than one of them, the shard is split: all nodes
    /// charge the same primary, and the counters of the other primaries are lost.
    #[must_use]
    pub fn primaries(&self) -> Vec<String> {
        self.shard.leaders()
    }

    /// Returns how far the shard's clock is ahead of the application's clock, which shows `now`.
    /// Returns `None` before the first reply.
    #[must_use]
    pub fn clock_offset(&self, now: Timestamp) -> Option<ClockOffset> {
        self.shard.primary().link().clock().ahead_of(now, Instant::now())
    }

    /// Applies charges like [`Store::apply`], within a time limit for this call, and returns the
    /// detailed error.
    ///
    /// # Errors
    /// [`BatcherError`], which says whether the call may have been charged.
    pub async fn apply_within(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
        within: Duration,
    ) -> Result<Readings, BatcherError> {
        let started = Instant::now();
        let batcher = self.shard.primary();
        let time = self.time(now, started, charges.iter().map(|charge| charge.limit));
        let job = Job::new(&self.keys, time, charges);
        if within >= SHARED_FROM
            && job.is_read_only()
            && let Some(replica) = self.shard.replica()
            && let Ok(answer) = replica.submit(job.timed(), started + within / 2).await
        {
            return answer.into_readings().map_err(BatcherError::Step);
        }
        let priority = batcher.priority(|| job.is_read_only());
        // The replica did not answer. The replica has charged nothing, and half of the time has
        // passed.
        let answer = batcher.submit_by(Route::Any, priority, job, started + within).await?;
        answer.into_readings().map_err(BatcherError::Step)
    }

    /// Returns the time for a job on `limits`. The job is created when the application's clock
    /// shows `now`.
    fn time<'l>(
        &self,
        now: Timestamp,
        started: Instant,
        limits: impl Iterator<Item = &'l Limit>,
    ) -> JobTime {
        let clock = self.shard.primary().link().clock();
        self.time.of_job(clock, now, started, limits.map(Limit::skew_max))
    }
}

impl Store for RedisShard {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        Ok(self.apply_within(now, charges, self.deadline).await?)
    }
}

/// A replication epoch ends with a promotion or a restart of the primary. The epoch continues when
/// a connection is replaced. The epoch also continues when keys are deleted, because the deletion
/// may be intended. If the user may not send `INFO` to the primary, each connection counts as a new
/// epoch.
impl ReplicationEpochs for RedisShard {
    fn epoch(&self) -> u64 {
        self.shard.primary().epoch()
    }

    fn holds(&self) -> bool {
        self.shard.primary().holds()
    }

    fn outage(&self) -> Millis {
        self.shard.primary().outage()
    }

    fn release(&self, epoch: u64) {
        self.shard.primary().release(epoch);
    }
}
