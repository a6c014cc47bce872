//! The store: limits in the slots of a cluster, each reached by the batcher to the node that keeps it.

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
use super::slot::{SLOTS, Slot};
use super::slot_map::SlotMap;
use super::status::RedirectCounters;
use super::{ClusterError, ClusterSettings, ClusterStatus, GroupStatus};
use crate::batcher::{BatcherError, DEFAULT_DEADLINE, Priority, Route};
use crate::job::Job;
use crate::key::Keys;
use crate::offset::ClockOffset;
use crate::redis_shard::DecisionClock;
use crate::script::RuntimeChoice;

/// The shortest deadline that is shared by a replica and the primary, each of which has half of it.
const SHARED_FROM: Duration = Duration::from_millis(10);

/// Limits in a Redis Cluster.
///
/// What shares a [`Tag`](crate::Tag) shares a slot: a call on it is one command at the node that
/// keeps the slot, exact, in one round trip. Calls that wait for the same node travel in one write,
/// as a command for each slot. While slots move and primaries change, calls follow within their
/// deadlines: a job is sent again only where a node proved that it did not run.
///
/// A call over several slots is several steps. By itself this is no
/// [`Store`](tollgate_core::Store): it has partitions, the slots, and what makes calls over several
/// partitions all or nothing makes a store of it.
///
/// # What it weakens
/// - While a slot is on its way, a call on several keys of it, of which some are there already,
///   waits until they have followed, within its deadline; a look at a replica can miss what has
///   gone ahead.
/// - Replication in a cluster is not synchronous: what a failed primary had not passed on can be
///   admitted once more, unless charges are [held](AfterFailover::Pause) until whoever heard of it
///   has told the new one.
#[derive(Debug)]
pub struct RedisCluster {
    known: Arc<SharedMap>,
    keys: Keys,
    deadline: Duration,
    clock: DecisionClock,
    redirects: RedirectCounters,
    discovery: AbortHandle,
}

impl RedisCluster {
    /// A store on the cluster of `settings`, which begins to look for it. Needs a tokio runtime.
    #[must_use]
    pub fn open(settings: ClusterSettings, keys: Keys, choice: RuntimeChoice) -> Self {
        let keys = keys.with_tag(settings.tag.clone());
        let known = Arc::new(SharedMap::new(settings, choice));
        let discovery = tokio::spawn(Discovery::new(Arc::clone(&known)).run()).abort_handle();
        Self {
            known,
            keys,
            deadline: DEFAULT_DEADLINE,
            clock: DecisionClock::default(),
            redirects: RedirectCounters::default(),
            discovery,
        }
    }

    /// The same store, in which a decision may take as long as `deadline`.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// The same store, deciding by `clock`: with [`DecisionClock::Shard`], that of the node which
    /// keeps the slot.
    #[must_use]
    pub fn with_clock(mut self, clock: DecisionClock) -> Self {
        self.clock = clock;
        self
    }

    /// Waits until every slot has a primary that is connected.
    ///
    /// # Errors
    /// Why it was not so `within` that time. The store goes on trying.
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

    /// The number of the partition of what `subject` uses: its slot, below 16,384.
    #[must_use]
    pub fn partition(&self, subject: &Subject) -> usize {
        self.keys.slot(subject).index()
    }

    /// Carries `charges` out, whose subjects all have this `partition`, as
    /// [`Store::apply`](tollgate_core::Store::apply) does.
    ///
    /// # Errors
    /// [`StoreError`] if the node that keeps the slot could not say. [`StoreError::Corrupt`] if the
    /// subjects have other partitions.
    pub async fn apply_at(
        &self,
        partition: usize,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> Result<Readings, StoreError> {
        let slot = u16::try_from(partition).ok().and_then(Slot::new).ok_or(StoreError::Corrupt)?;
        Ok(self.carry(slot, now, charges, self.deadline).await?)
    }

    /// As [`Self::apply_at`] the partition of the first of `charges`, within a time of the call's own,
    /// and with the whole reason of a failure.
    ///
    /// # Errors
    /// [`BatcherError`] says whether the call may have been charged all the same; it is
    /// [`BatcherError::Refused`] with `CROSSSLOT`, and was not, if the partitions differ.
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
        let begun = Instant::now();
        let deadline = begun + within;
        let map = self.known.map(deadline).await.ok_or(BatcherError::Unavailable)?;
        let Some(owner) = map.owner(slot) else {
            self.known.request_refresh();
            return Err(BatcherError::Unavailable);
        };
        let now = self.time(owner, now, begun);
        let job = || Job::new(&self.keys, now, charges);
        let first = job();
        // What a node would refuse, and so would all others.
        if first.asks.iter().any(|operation| Slot::of(&operation.key) != slot) {
            return Err(BatcherError::Refused("CROSSSLOT".into()));
        }
        if within >= SHARED_FROM
            && first.is_read_only()
            && let Some(replica) = owner.replica()
        {
            let route = Route::Slot(slot.number());
            let until = begun + within / 2;
            let answer = replica.submit_by(route, Priority::Normal, first.clone(), until).await;
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

    fn time(&self, owner: &Group, now: Timestamp, at: Instant) -> Timestamp {
        match self.clock {
            DecisionClock::Application => now,
            DecisionClock::Shard => owner.primary().link().clock().time(at).unwrap_or(now),
        }
    }

    /// How far the clock of the first node that told its time is ahead of the application's, which
    /// shows `now`. `None` before the first reply.
    #[must_use]
    pub fn clock_offset(&self, now: Timestamp) -> Option<ClockOffset> {
        self.known.current()?.groups().iter().find_map(|group| offset(group, now))
    }

    /// How the cluster stands, when the application's clock shows `now`.
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
