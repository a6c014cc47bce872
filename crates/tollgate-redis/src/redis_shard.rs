//! The store: limits in one shard, reached by a lane that never makes a caller wait for long.

mod cells;
mod document;
mod listing;

use std::time::Duration;

use tokio::time::Instant;
use tollgate_core::{Charge, Histories, Millis, Readings, Store, StoreError, Timestamp};

use crate::job::Job;
use crate::key::Keys;
use crate::lane::{DEFAULT_DEADLINE, LaneError, LaneStatus, Route};
use crate::link::LinkError;
use crate::offset::ClockOffset;
use crate::script::{Choice, Runs};
use crate::shard::{Shard, ShardSettings};
use crate::step_codec::StepCodec;
use crate::topology::Loss;

/// The shortest deadline that is shared by a replica and the primary, each of which has half of it.
const SHARED_FROM: Duration = Duration::from_millis(10);

/// Whose clock decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DecidingClock {
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
    clock: DecidingClock,
}

impl RedisShard {
    /// A store on the shard of `settings`, which begins to connect. Needs a tokio runtime.
    #[must_use]
    pub fn open(settings: &ShardSettings, keys: Keys, choice: Choice) -> Self {
        Self {
            shard: Shard::open(
                settings,
                StepCodec::new(choice, settings.presence),
                StepCodec::for_replica,
            ),
            keys,
            deadline: DEFAULT_DEADLINE,
            clock: DecidingClock::default(),
        }
    }

    /// The same store, in which a decision may take as long as `deadline`.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// The same store, deciding by `clock`.
    #[must_use]
    pub fn with_clock(self, clock: DecidingClock) -> Self {
        Self { clock, ..self }
    }

    /// The same store, which holds charges back after the primary's data has become of another
    /// history, as a failover makes it, until that is [released](Histories::release): for whoever
    /// joins what is missing first. The first history is held back, too; what only reads never is.
    #[must_use]
    pub fn with_held_histories(self) -> Self {
        self.shard.primary().hold_until_released();
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
    pub fn runs(&self) -> Runs {
        self.shard.primary().codec().runs()
    }

    /// How the lanes stand: the one to the primary is the first; those to the replicas that are
    /// read from follow, in the order of the settings, or of their addresses where sentinels name
    /// them.
    #[must_use]
    pub fn status(&self) -> Vec<LaneStatus> {
        self.shard.status()
    }

    /// How often it was noticed, since the store was opened, that counters were lost and windows
    /// began anew, in part or all; and why the last time. What is lost while no primary is connected
    /// is noticed when one is again.
    #[must_use]
    pub fn windows_lost(&self) -> (u64, Option<Loss>) {
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
    /// [`LaneError`] says whether the call may have been charged all the same.
    pub async fn apply_within(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
        within: Duration,
    ) -> Result<Readings, LaneError> {
        let begun = Instant::now();
        let lane = self.shard.primary();
        let job = Job::new(&self.keys, self.moment(now, begun), charges);
        if within >= SHARED_FROM
            && job.only_reads()
            && let Some(replica) = self.shard.replica()
            && let Ok(answer) = replica.submit(job.clone(), begun + within / 2).await
        {
            return answer.into_readings().map_err(LaneError::Step);
        }
        let rank = lane.rank(|| job.only_reads());
        // A replica without an answer has charged nothing, and left half of the time.
        let answer = lane.submit_by(Route::Any, rank, job, begun + within).await?;
        answer.into_readings().map_err(LaneError::Step)
    }

    /// The moment of a decision that is made when the application's clock shows `now`.
    fn moment(&self, now: Timestamp, begun: Instant) -> Timestamp {
        match self.clock {
            DecidingClock::Application => now,
            DecidingClock::Shard => self.shard.primary().link().clock().time(begun).unwrap_or(now),
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
impl Histories for RedisShard {
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
