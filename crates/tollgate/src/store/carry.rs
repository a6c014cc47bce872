//! Subjects take what they used along when the map of shards changes.

mod census;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use tollgate_core::{
    Ask, Cells, Charge, Cost, Fit, Limit, Readings, Repeats, Store, StoreError, Subject, Timestamp,
};

pub use census::{Attendance, Census, LEASE};

use super::arrivals::Arrivals;
use super::atomic::Atomic;
use super::rollout::DEFAULT_ARRIVALS;
use super::sharded::Sharded;

/// Shards under one map.
pub type Shards<S> = Atomic<Sharded<Arc<S>>>;

/// How far a move is. Nodes go through the phases each by itself; two neighbouring phases may be in
/// force at the same time, others may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The old owner of a subject decides; the new one is charged what it admits. Nodes that know
    /// the old map only may still be there.
    Following,
    /// The new owner decides, from what the old one held on; that one is charged no more. No node
    /// knows the old map only.
    Leading,
    /// Every window that the old owner held is over.
    Over,
}

/// Shards under two maps, between which subjects move with what they used.
///
/// Subjects whose owner is the same under both maps are decided as ever. Of the others
///
/// - while [`Phase::Following`], the old owner's decision counts, and what it admits is charged at
///   the new one too. It is asked first: two nodes that ask for the last unit at the same moment
///   are told apart by the old owner alone. What the new one refuses (nodes that lead may have
///   used it up) is given back at the old one, and refused.
/// - while [`Phase::Leading`], the new owner decides. Before its first decision on a limit and
///   subject, and before the first one in each phase, what the old owner holds is
///   [joined](tollgate_core::decide::join) in.
///
/// # What it keeps
/// - All or nothing, and the windows: nobody gains one, nobody loses quota. While nodes follow, the
///   old owner has counted all that the new one has; once one leads, the new one has counted all
///   that the old one has. So each join is exact.
/// - A fair share moves and nothing else: see [`Sharded::fair_share`].
///
/// # What it weakens
/// - Time: a moving subject costs two round trips while nodes follow.
/// - A charge that the new owner did not answer while nodes follow is made good before this node's
///   next decision on it ([`lagging`](Self::lagging) counts them); a node that leads already may
///   admit as much again until then: see [`over_admitted_at_most`].
/// - A node that knows the old map only when others lead decides for itself: at most one more
///   quota for each subject. [`Census`] is there to not let it come to that.
pub struct Carry<S> {
    before: Shards<S>,
    after: Shards<S>,
    phase: AtomicU8,
    arrivals: Arrivals,
    lagging: AtomicU64,
}

/// The units that one subject is admitted beyond `limit` in a move during which its new owner did
/// not answer for `outage`, at `rate` admitted units per second.
#[must_use]
pub fn over_admitted_at_most(limit: &Limit, rate: u64, outage: Duration) -> u64 {
    super::rollout::over_admitted_at_most(limit, rate, outage)
}

impl<S: Store> Carry<S> {
    /// The move from one map to another. A shard of the same name is the same store in both.
    #[must_use]
    pub fn new(before: Sharded<Arc<S>>, after: Sharded<Arc<S>>) -> Self {
        Self {
            before: Atomic::new(before),
            after: Atomic::new(after),
            phase: AtomicU8::new(Phase::Following as u8),
            arrivals: Arrivals::new(DEFAULT_ARRIVALS),
            lagging: AtomicU64::new(0),
        }
    }

    /// Sets how many limits and subjects are remembered to have arrived, rounded up to a power of
    /// two, and how long bringing one along may take.
    #[must_use]
    pub fn with_arrivals(mut self, entries: usize, within: Duration) -> Self {
        self.arrivals = Arrivals::new(entries).with_time(within);
        self
    }

    /// The shards under the map that is left.
    #[must_use]
    pub const fn before(&self) -> &Shards<S> {
        &self.before
    }

    /// The shards under the map that comes.
    #[must_use]
    pub const fn after(&self) -> &Shards<S> {
        &self.after
    }

    /// How far this node is.
    #[must_use]
    pub fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Relaxed) {
            0 => Phase::Following,
            1 => Phase::Leading,
            _ => Phase::Over,
        }
    }

    /// Goes on to `phase`; never back. To [`Phase::Leading`] only when no node knows the old map
    /// only, to [`Phase::Over`] the longest window later.
    pub fn enter(&self, phase: Phase) {
        self.phase.fetch_max(phase as u8, Ordering::Relaxed);
    }

    /// Whether `subject` has another owner under the map that comes.
    #[must_use]
    pub fn moves(&self, subject: &Subject) -> bool {
        let (before, after) = (self.before.homes(), self.after.homes());
        before.home_of(subject).name != after.home_of(subject).name
    }

    /// Cells that moved along with their subjects.
    #[must_use]
    pub fn carried(&self) -> u64 {
        self.arrivals.carried()
    }

    /// Charges that a new owner did not answer while it followed.
    #[must_use]
    pub fn lagging(&self) -> u64 {
        self.lagging.load(Ordering::Relaxed)
    }
}

impl<S: Cells + 'static> Carry<S> {
    /// Charges the old owners, and what they admit the new owners of `moving` too.
    async fn follow(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
        moving: &[usize],
    ) -> Result<Readings, StoreError> {
        let told: Vec<_> = moving.iter().map(|place| charges[*place]).collect();
        self.bring(now, Phase::Following, &told).await;
        let mut readings = self.before.apply(now, charges).await?;
        let refused = |(charge, fit): (&Charge<'_>, Fit)| takes(charge) && fit != Fit::Now;
        let is_refused =
            charges.iter().zip(readings.iter()).any(|(charge, it)| refused((charge, it.fit)));
        let changes = told.iter().any(|charge| !charge.ask.only_reads());
        if is_refused || !changes {
            return Ok(readings);
        }
        let Ok(followed) = self.after.apply(now, &told).await else {
            self.lagging.fetch_add(told.len() as u64, Ordering::Relaxed);
            self.arrivals.forget(&told);
            return Ok(readings);
        };
        let is_refused =
            told.iter().zip(followed.iter()).any(|(charge, it)| refused((charge, it.fit)));
        if is_refused {
            self.give_back(now, charges, &readings).await;
            for (place, reading) in moving.iter().zip(followed.iter()) {
                readings[*place] = *reading;
            }
        }
        Ok(readings)
    }

    /// Gives back at the old owners what they admitted and a new one did not.
    async fn give_back(&self, now: Timestamp, charges: &[Charge<'_>], readings: &Readings) {
        let refunds: Vec<_> = charges
            .iter()
            .zip(readings.iter())
            .filter_map(|(charge, reading)| match charge.ask {
                Ask::Take { cost, id } if cost != Cost::PEEK => {
                    let (mark, repeats) = (reading.mark, Repeats::Impossible);
                    Some(Charge { ask: Ask::Refund { cost, mark, id, repeats }, ..*charge })
                }
                _ => None,
            })
            .collect();
        if self.before.apply(now, &refunds).await.is_err() {
            self.lagging.fetch_add(refunds.len() as u64, Ordering::Relaxed);
        }
    }

    async fn bring(&self, now: Timestamp, phase: Phase, charges: &[Charge<'_>]) {
        self.arrivals.bring(now, phase as u64, (&self.before, &self.after), charges).await;
    }
}

impl<S: Cells + 'static> Store for Carry<S> {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        let phase = self.phase();
        if phase == Phase::Over {
            return self.after.apply(now, charges).await;
        }
        let is_moving = |place: &usize| self.moves(charges[*place].subject);
        let moving: Vec<_> = (0..charges.len()).filter(is_moving).collect();
        if moving.is_empty() {
            return self.after.apply(now, charges).await;
        }
        if phase == Phase::Following {
            return self.follow(now, charges, &moving).await;
        }
        let told: Vec<_> = moving.iter().map(|place| charges[*place]).collect();
        self.bring(now, phase, &told).await;
        self.after.apply(now, charges).await
    }
}

fn takes(charge: &Charge<'_>) -> bool {
    matches!(charge.ask, Ask::Take { .. })
}

impl<S: Store> fmt::Debug for Carry<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Carry")
            .field("before", &self.before)
            .field("after", &self.after)
            .field("phase", &self.phase())
            .finish_non_exhaustive()
    }
}
