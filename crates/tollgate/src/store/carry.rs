//! Subjects take what they used along when the map of shards changes.

mod census;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use tollgate_core::algo::fixed_window;
use tollgate_core::{
    Algorithm, Ask, Cell, Cells, Charge, Cost, Fit, Limit, Place, Reading, Readings, Repeats,
    Store, StoreError, Subject, Timestamp, assess,
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
///   used it up) is given back at the old one, and refused. Where a node that asks one of them only
///   opened a window there, both go on in that window.
/// - while [`Phase::Leading`], the new owner decides. Before its first decision on a limit and
///   subject, and before the first one in each phase, what the old owner holds is
///   [joined](tollgate_core::decide::join) in.
///
/// # What it keeps
/// - All or nothing, and the windows: nobody gains one, none ends early. While nodes follow, the
///   old owner has counted all that the new one has; once one leads, the new one has counted all
///   that the old one has. So each join is exact.
/// - A fair share moves and nothing else: see [`Sharded::fair_share`].
///
/// # What it weakens
/// - Time: a moving subject costs two round trips while nodes follow.
/// - A charge that another node has under way while a subject is carried (once for each node and
///   phase, and whenever a window opened at one owner only) may be counted twice at the new owner:
///   see [`held_back_at_most`]. It costs refusals, never admits.
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

/// The units of one subject that a move may count twice at its new owner, and so refuse although
/// they are left, where each of `under_way` charges of `cost` is under way at another node while
/// this one carries the subject. They come back with the end of the window.
#[must_use]
pub const fn held_back_at_most(under_way: u64, cost: Cost) -> u64 {
    under_way.saturating_mul(cost.get())
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
            self.look_at_both(now, &told, moving, &mut readings).await;
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
        }
        let mut apart = Vec::new();
        for ((place, charge), follows) in moving.iter().zip(&told).zip(followed.iter()) {
            let led = readings[*place];
            readings[*place] = match window_of_both(charge, &led, follows) {
                _ if is_refused => *follows,
                Some(window) => {
                    apart.push((Place { limit: charge.limit, subject: charge.subject }, window));
                    reading_of(charge, &apart[apart.len() - 1].1, now)
                }
                None if heard_more(charge, follows, &led) => *follows,
                None => led,
            };
        }
        self.make_one(now, &apart, &told).await;
        Ok(readings)
    }

    /// Has what nothing was charged for tell what the new owner has heard and the old one has not.
    async fn look_at_both(
        &self,
        now: Timestamp,
        told: &[Charge<'_>],
        moving: &[usize],
        readings: &mut Readings,
    ) {
        let looks: Vec<_> = told.iter().map(look_of).collect();
        if looks.iter().any(|charge| !charge.ask.only_reads()) {
            return;
        }
        let Ok(seen) = self.after.apply(now, &looks).await else { return };
        for ((place, charge), seen) in moving.iter().zip(told).zip(seen.iter()) {
            let led = &mut readings[*place];
            if heard_more(charge, seen, led) {
                *led = *seen;
            }
        }
    }

    /// Has both owners go on in the same windows.
    async fn make_one(&self, now: Timestamp, windows: &[(Place<'_>, Cell)], told: &[Charge<'_>]) {
        if windows.is_empty() {
            return;
        }
        let (before, after) = (self.before.join(now, windows), self.after.join(now, windows));
        if before.await.and(after.await).is_err() {
            self.lagging.fetch_add(windows.len() as u64, Ordering::Relaxed);
            self.arrivals.forget(told);
        }
    }

    /// Gives back at the old owners what they admitted and a new one did not.
    async fn give_back(&self, now: Timestamp, charges: &[Charge<'_>], readings: &Readings) {
        let refunds: Vec<_> = charges
            .iter()
            .zip(readings.iter())
            .filter_map(|(charge, reading)| match charge.ask {
                // A window that was opened for nothing is none. Who refuses knows all that was used.
                Ask::Take { cost, .. } if cost != Cost::PEEK && reading.used == cost.get() => {
                    Some(Charge { ask: Ask::Forget, ..*charge })
                }
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

/// The fixed window that is both owners', where they opened one each: a node that knows one owner
/// only opened it there first, and its clients were told when it ends.
fn window_of_both(charge: &Charge<'_>, led: &Reading, follows: &Reading) -> Option<Cell> {
    let is_taken = matches!(charge.ask, Ask::Take { cost, .. } if cost != Cost::PEEK);
    let is_fixed = matches!(charge.limit.algorithm(), Algorithm::FixedWindow(_));
    if !is_taken || !is_fixed || led.whole_at == follows.whole_at {
        return None;
    }
    let resets_at = led.whole_at.min(follows.whole_at);
    let used = led.used.max(follows.used);
    Some(Cell::FixedWindow(fixed_window::State { used, resets_at }))
}

/// Whether one owner knows of more than the other. Each may have heard what the other has not: nodes
/// that know the old map only, and nodes that lead, are never there at the same time.
fn heard_more(charge: &Charge<'_>, one: &Reading, other: &Reading) -> bool {
    if one.used != other.used {
        return one.used > other.used;
    }
    match charge.limit.algorithm() {
        // The window that opened first is the one that its clients were told of.
        Algorithm::FixedWindow(_) => one.used > 0 && one.whole_at < other.whole_at,
        _ => one.whole_at > other.whole_at,
    }
}

/// The same question, without the taking.
fn look_of<'a>(charge: &Charge<'a>) -> Charge<'a> {
    match charge.ask {
        Ask::Take { cost, .. } => Charge { ask: Ask::Look { cost }, ..*charge },
        _ => *charge,
    }
}

/// What an admitted take is told of `cell`, in which it is counted.
fn reading_of(charge: &Charge<'_>, cell: &Cell, now: Timestamp) -> Reading {
    let Ask::Take { cost, .. } = charge.ask else { return Reading::default() };
    Reading { fit: Fit::Now, ..assess(Some(cell), charge.limit, cost, now) }
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
