//! The store for a Redis Cluster. Each node has a batcher, which sends the jobs for the slots of
//! the node.

mod cells;
mod listing;
mod redirects;
mod replication_epochs;
mod shared_blob;

use std::sync::Arc;
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};
use tollgate_core::{Charge, Readings, StoreError, Subject, Timestamp};

use self::redirects::RedirectFollower;
#[cfg(doc)]
use super::AfterFailover;
use super::discovery::{Discovery, SharedMap};
use super::group::Group;
use super::slot_map::SlotMap;
use super::status::RedirectCounters;
use super::{ClusterError, ClusterSettings, ClusterStatus, GroupStatus};
use crate::batcher::{BatcherError, DEFAULT_DEADLINE, Priority, Route};
use crate::decision_time::{DecisionClock, DecisionTime};
use crate::job::Job;
use crate::key::Keys;
use crate::offset::ClockOffset;
use crate::script::RuntimeChoice;
use crate::slot::{SLOTS, Slot};

/// The shortest deadline with which a read-only call is sent to a replica first. The replica must
/// answer within half of the deadline, and the primary gets the remaining time if no replica
/// answers. A call with a shorter deadline is sent only to the primary.
const SHARED_FROM: Duration = Duration::from_millis(10);

/// The counters of limits, in a Redis Cluster.
///
/// Subjects with the same [`Tag`](crate::Tag) share a slot. A call on these subjects is one command
/// to the node that owns the slot. The decision is exact and needs one round trip. Calls that wait
/// for the same node are sent in one write, with a command for each slot. While slots move and
/// primaries change, calls follow redirects within their deadlines. A job is sent again only if a
/// node proved that the job was not executed.
///
/// A call on subjects of several slots needs several steps, which are not atomic together. A
/// cluster by itself is therefore not a [`Store`](tollgate_core::Store): its slots are partitions.
/// A wrapper that makes calls over several partitions all or nothing turns the cluster into a
/// store.
///
/// # Weaknesses
/// - While a slot is being moved, a call on several of its keys, some of which have already moved,
///   waits within its deadline until all of its keys have moved. A read from a replica can miss
///   keys that have moved.
/// - Replication in a cluster is asynchronous. If a primary fails before it has replicated a
///   charge, the charged units can be admitted again. [`AfterFailover::Pause`] prevents that:
///   charges are held back until the Tollgate nodes that received the decisions have replayed the
///   missing charges.
#[derive(Debug)]
pub struct RedisCluster {
    known: Arc<SharedMap>,
    keys: Keys,
    deadline: Duration,
    time: DecisionTime,
    redirects: RedirectCounters,
    discovery: AbortHandle,
}

impl RedisCluster {
    /// Opens a store on the cluster of `settings` and starts to discover the slot layout of the
    /// cluster. Needs a tokio runtime.
    #[must_use]
    pub fn open(settings: ClusterSettings, keys: Keys, choice: RuntimeChoice) -> Self {
        let keys = keys.with_tag(settings.tag.clone());
        let known = Arc::new(SharedMap::new(settings, choice));
        let discovery = tokio::spawn(Discovery::new(Arc::clone(&known)).run()).abort_handle();
        Self {
            known,
            keys,
            deadline: DEFAULT_DEADLINE,
            time: DecisionTime::default(),
            redirects: RedirectCounters::default(),
            discovery,
        }
    }

    /// Returns the same store with `deadline` as the longest time for a decision.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Returns the same store with `clock` as the clock that decides. [`DecisionClock::Shard`]
    /// selects the clock of the node that owns the subject's slot.
    #[must_use]
    pub fn with_clock(mut self, clock: DecisionClock) -> Self {
        self.time.set_clock(clock);
        self
    }

    /// Waits until every slot has a connected primary.
    ///
    /// # Errors
    /// [`ClusterError`] with the reason, if a slot still has no connected primary after the time
    /// `within`. The store continues to connect.
    pub async fn ready(&self, within: Duration) -> Result<(), ClusterError> {
        let until = Instant::now() + within;
        let left = || until.saturating_duration_since(Instant::now());
        let nothing = || self.known.last_error().unwrap_or(ClusterError::Unserved { slots: SLOTS });
        timeout(within, self.known.first()).await.map_err(|_| nothing())?;
        let map = self.known.current().ok_or_else(nothing)?;
        for group in map.groups() {
            group.shard().ready(left()).await?;
        }
        match map.spread() {
            (_, 0) => Ok(()),
            (_, slots) => Err(ClusterError::Unserved { slots }),
        }
    }

    /// Returns the number of the partition of `subject`. The number is the subject's slot, below
    /// 16,384.
    #[must_use]
    pub fn partition(&self, subject: &Subject) -> usize {
        self.keys.slot(subject).index()
    }

    /// Executes `charges` like [`Store::apply`](tollgate_core::Store::apply). The subjects of all
    /// charges must belong to `partition`.
    ///
    /// # Errors
    /// [`StoreError`] if the node that owns the slot did not answer. [`StoreError::Corrupt`] if a
    /// subject belongs to another partition.
    pub async fn apply_at(
        &self,
        partition: usize,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> Result<Readings, StoreError> {
        let slot = u16::try_from(partition).ok().and_then(Slot::new).ok_or(StoreError::Corrupt)?;
        Ok(self.carry(slot, now, charges, self.deadline).await?)
    }

    /// Applies `charges` like [`Self::apply_at`], within a time limit for this call, and returns
    /// the detailed error. The subjects of all charges must belong to the same partition.
    ///
    /// # Errors
    /// [`BatcherError`], which says whether the call may have been charged. If the subjects belong
    /// to different partitions, the error is [`BatcherError::Refused`] with `CROSSSLOT`, and
    /// nothing was charged.
    pub async fn apply_within(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
        within: Duration,
    ) -> Result<Readings, BatcherError> {
        match charges.first() {
            Some(first) => self.carry(self.keys.slot(first.subject), now, charges, within).await,
            None => Ok(Readings::new()),
        }
    }

    async fn carry(
        &self,
        slot: Slot,
        now: Timestamp,
        charges: &[Charge<'_>],
        within: Duration,
    ) -> Result<Readings, BatcherError> {
        let started = Instant::now();
        let deadline = started + within;
        let map = self.known.map(deadline).await.ok_or(BatcherError::Unavailable)?;
        let Some(owner) = map.owner(slot) else {
            self.known.request_refresh();
            return Err(BatcherError::Unavailable);
        };
        let skews = charges.iter().map(|charge| charge.limit.skew_max());
        let time = self.time.of_job(owner.primary().link().clock(), now, started, skews);
        let job = || Job::new(&self.keys, time, charges);
        let first = job();
        // If this job were sent, the node would reject the command with all of its other jobs.
        if first.charges.iter().any(|operation| Slot::of(&operation.key) != slot) {
            return Err(BatcherError::Refused("CROSSSLOT".into()));
        }
        if within >= SHARED_FROM
            && first.is_read_only()
            && let Some(replica) = owner.replica()
        {
            let route = Route::Slot(slot.number());
            let until = started + within / 2;
            let answer = replica.submit_by(route, Priority::Normal, first.timed(), until).await;
            if let Ok(answer) = answer {
                return answer.into_readings().map_err(BatcherError::Step);
            }
        }
        let priority = owner.primary().priority(|| first.is_read_only());
        RedirectFollower::new(&self.known, &self.redirects, slot, Arc::clone(owner), priority)
            .follow(first, job, deadline)
            .await?
            .into_readings()
            .map_err(BatcherError::Step)
    }

    /// From now on, compares the application's clock with the clock of the node that owns the
    /// subject's slot, like [`RedisShard::check_clock`](crate::RedisShard::check_clock).
    pub fn check_clock(&self) {
        self.time.check();
    }

    /// Returns the offset of a cluster node's clock from the application's clock, which shows
    /// `now`. The offset is that of the first node with a known clock. Returns `None` if no node
    /// has replied yet.
    #[must_use]
    pub fn clock_offset(&self, now: Timestamp) -> Option<ClockOffset> {
        self.known.current()?.groups().iter().find_map(|group| offset(group, now))
    }

    /// Returns the status of the cluster at the time when the application's clock shows `now`.
    #[must_use]
    pub fn status(&self, now: Timestamp) -> ClusterStatus {
        let map = self.known.current();
        let (kept, unowned) = map.as_deref().map_or((Vec::new(), SLOTS), SlotMap::spread);
        let groups = map.iter().flat_map(|map| map.groups()).zip(kept);
        let status = |(group, slots): (&Arc<Group>, u16)| {
            let (windows_lost, last_loss) = group.shard().losses();
            GroupStatus {
                slots,
                runs: group.runtime(),
                batchers: group.status(),
                clock_offset: offset(group, now),
                windows_lost,
                last_loss,
            }
        };
        ClusterStatus {
            groups: groups.map(status).collect(),
            unowned,
            redirects: self.redirects.counts(),
            last_error: self.known.last_error(),
        }
    }
}

fn offset(group: &Group, now: Timestamp) -> Option<ClockOffset> {
    group.primary().link().clock().ahead_of(now, Instant::now())
}

impl Drop for RedisCluster {
    fn drop(&mut self) {
        self.discovery.abort();
    }
}
