//! The store: limits in the slots of a cluster, each reached by the lane to the node that keeps it.

mod cells;
mod document;
mod histories;
mod listing;
mod way;

use std::sync::Arc;
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};
use tollgate_core::{Charge, Readings, StoreError, Subject, Timestamp};

use self::way::Way;
#[cfg(doc)]
use super::AfterFailover;
use super::discovery::{Discovery, Known};
use super::group::Group;
use super::slot::{SLOTS, Slot};
use super::slot_map::SlotMap;
use super::status::RedirectCounters;
use super::{ClusterError, ClusterSettings, ClusterStatus, GroupStatus};
use crate::job::Job;
use crate::key::Keys;
use crate::lane::{DEFAULT_DEADLINE, LaneError, Rank, Route};
use crate::offset::ClockOffset;
use crate::redis_shard::DecidingClock;
use crate::script::Choice;

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
/// [`Store`](tollgate_core::Store): it has homes, the slots, and what makes calls over several
/// homes all or nothing makes a store of it.
///
/// # What it weakens
/// - While a slot is on its way, a call on several keys of it, of which some are there already,
///   waits until they have followed, within its deadline; a look at a replica can miss what has
///   gone ahead.
/// - Replication in a cluster is not synchronous: what a failed primary had not passed on can be
///   admitted once more, unless charges are [held](AfterFailover::Hold) until whoever heard of it
///   has told the new one.
#[derive(Debug)]
pub struct RedisCluster {
    known: Arc<Known>,
    keys: Keys,
    deadline: Duration,
    clock: DecidingClock,
    redirects: RedirectCounters,
    discovery: AbortHandle,
}

impl RedisCluster {
    /// A store on the cluster of `settings`, which begins to look for it. Needs a tokio runtime.
    #[must_use]
    pub fn open(settings: ClusterSettings, keys: Keys, choice: Choice) -> Self {
        let keys = keys.with_tag(settings.tag.clone());
        let known = Arc::new(Known::new(settings, choice));
        let discovery = tokio::spawn(Discovery::new(Arc::clone(&known)).run()).abort_handle();
        Self {
            known,
            keys,
            deadline: DEFAULT_DEADLINE,
            clock: DecidingClock::default(),
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

    /// The same store, deciding by `clock`: with [`DecidingClock::Shard`], that of the node which
    /// keeps the slot.
    #[must_use]
    pub fn with_clock(mut self, clock: DecidingClock) -> Self {
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

    /// The number of the home of what `subject` uses: its slot, below 16,384.
    #[must_use]
    pub fn home(&self, subject: &Subject) -> usize {
        self.keys.slot(subject).index()
    }

    /// Carries `charges` out, whose subjects all have this `home`, as
    /// [`Store::apply`](tollgate_core::Store::apply) does.
    ///
    /// # Errors
    /// [`StoreError`] if the node that keeps the slot could not say. [`StoreError::Corrupt`] if the
    /// subjects have other homes.
    pub async fn apply_at(
        &self,
        home: usize,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> Result<Readings, StoreError> {
        let slot = u16::try_from(home).ok().and_then(Slot::new).ok_or(StoreError::Corrupt)?;
        Ok(self.carry(slot, now, charges, self.deadline).await?)
    }

    /// As [`Self::apply_at`] the home of the first of `charges`, within a time of the call's own,
    /// and with the whole reason of a failure.
    ///
    /// # Errors
    /// [`LaneError`] says whether the call may have been charged all the same; it is
    /// [`LaneError::Refused`] with `CROSSSLOT`, and was not, if the homes differ.
    pub async fn apply_within(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
        within: Duration,
    ) -> Result<Readings, LaneError> {
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
    ) -> Result<Readings, LaneError> {
        let begun = Instant::now();
        let deadline = begun + within;
        let map = self.known.map(deadline).await.ok_or(LaneError::Unavailable)?;
        let Some(owner) = map.owner(slot) else {
            self.known.doubt();
            return Err(LaneError::Unavailable);
        };
        let now = self.time(owner, now, begun);
        let job = || Job::new(&self.keys, now, charges);
        let first = job();
        // What a node would refuse, and so would all others.
        if first.asks.iter().any(|ask| Slot::of(&ask.key) != slot) {
            return Err(LaneError::Refused("CROSSSLOT".into()));
        }
        if within >= SHARED_FROM
            && first.only_reads()
            && let Some(replica) = owner.replica()
        {
            let route = Route::Slot(slot.number());
            let until = begun + within / 2;
            let answer = replica.submit_by(route, Rank::Usual, first.clone(), until).await;
            if let Ok(answer) = answer {
                return answer.into_readings().map_err(LaneError::Step);
            }
        }
        let rank = owner.primary().rank(|| first.only_reads());
        Way::new(&self.known, &self.redirects, slot, Arc::clone(owner), rank)
            .follow(first, job, deadline)
            .await?
            .into_readings()
            .map_err(LaneError::Step)
    }

    fn time(&self, owner: &Group, now: Timestamp, at: Instant) -> Timestamp {
        match self.clock {
            DecidingClock::Application => now,
            DecidingClock::Shard => owner.primary().link().clock().time(at).unwrap_or(now),
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
                runs: group.runs(),
                lanes: group.status(),
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
