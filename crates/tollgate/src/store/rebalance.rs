//! Subjects take what they used along when the map of shards changes.

mod dual_write;
mod heartbeat;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use tollgate_core::{
    CellTransfer, Charge, Cost, Limit, Readings, Store, StoreError, Subject, Timestamp,
};

pub use heartbeat::{HEARTBEAT_TTL, Heartbeat, HeartbeatCounts};

use super::atomic::Atomic;
use super::lazy_transfer::LazyTransfer;
use super::rollout::DEFAULT_TRANSFER_ENTRIES;
use super::sharded::Sharded;

/// Shards under one map.
pub type Shards<S> = Atomic<Sharded<Arc<S>>>;

/// How far a move is. Nodes go through the phases each by itself; two neighbouring phases may be in
/// force at the same time, others may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The old owner of a subject decides; the new one is charged what it admits. Nodes that know
    /// the old map only may still be there.
    DualWrite,
    /// The new owner decides, from what the old one held on; that one is charged no more, and hears
    /// of what is given back and forgotten. No node knows the old map only.
    Cutover,
    /// Every window that the old owner held is over.
    Done,
}

/// Shards under two maps, between which subjects move with what they used.
///
/// Subjects whose owner is the same under both maps are decided as ever. Of the others
///
/// - while [`Phase::DualWrite`], the old owner's decision counts, and what it admits is charged at
///   the new one too. It is asked first: two nodes that ask for the last unit at the same moment
///   are told apart by the old owner alone. What the new one refuses (nodes that lead may have
///   used it up) is given back at the old one, and refused. Where a node that asks one of them only
///   opened a window there, both go on in that window.
/// - while [`Phase::Cutover`], the new owner decides. Before its first decision on a limit and
///   subject, and before the first one in each phase, what the old owner holds is
///   [joined](tollgate_core::decide::join) in. What is given back or forgotten is asked of the old
///   owner too, and the new one's answer is told.
///
/// # What it keeps
/// - All or nothing, and the windows: nobody gains one, none ends early. While nodes follow, the
///   old owner has counted all that the new one has; once one leads, the new one has counted all
///   that the old one has. What lowers one lowers both. So each join is exact.
/// - What was forgotten stays so: it is an error where not both owners answer.
/// - A fair share moves and nothing else: see [`Sharded::fair_share`].
///
/// # What it weakens
/// - Time: a charge of a moving subject costs two round trips while nodes follow; what is given back
///   costs a call to each owner, side by side, in both phases; forgetting two round trips once nodes
///   lead.
/// - A charge that another node has under way while a subject is carried (once for each node and
///   phase, and whenever a window opened at one owner only) may be counted twice at the new owner,
///   and what it has under way to be given back or forgotten may come back there: see
///   [`max_double_count`]. It costs refusals, never admits.
/// - What one owner alone has given back may count until its window or lease is over: because the
///   other did not answer, or could not be asked before ([`diverged`](Self::diverged) counts), or
///   because a node gave it back that knows the old map only. It costs refusals, never admits. What
///   such a node forgets, it forgets at the old owner alone.
/// - A reservation that nobody settles may stay used until its window is over, where it would have
///   been released: if a node made it that leads, so that the old owner does not know of it. So may
///   what any reservation is settled below, if with it two windows became one.
/// - A receipt that is redeemed where one owner knows nothing of its charge, and comes again, is
///   known to the other alone: a node that asks the former gives back once more, at most what it
///   cost.
/// - Of a limit that counts refusals, those that a following node hears are counted at the old owner
///   alone: where units are given back in that window, a node that leads admits as many more, at most
///   what the refused calls cost.
/// - A charge that not both owners answered while nodes follow, or whose caller left before they
///   did, is made good before this node's next decision on it ([`diverged`](Self::diverged) counts
///   them); a node that leads already may admit as much again until then: see
///   [`max_over_admission`].
/// - An old owner that does not answer while nodes lead takes what it knows with it: until it does,
///   who comes from there has used nothing. At most one more quota for each subject; the next
///   decision asks again, and [`failed_transfers`](Self::failed_transfers) counts.
/// - A node that knows the old map only when others lead decides for itself: at most one more
///   quota for each subject. [`Heartbeat`] is there to not let it come to that.
pub struct Rebalance<S> {
    before: Shards<S>,
    after: Shards<S>,
    phase: AtomicU8,
    transfer: LazyTransfer,
    diverged: AtomicU64,
}

/// The units that one subject is admitted beyond `limit` in a move during which its new owner did
/// not answer for `outage`, at `rate` admitted units per second.
#[must_use]
pub fn max_over_admission(limit: &Limit, rate: u64, outage: Duration) -> u64 {
    super::rollout::max_over_admission(limit, rate, outage)
}

/// The units of one subject that a move may count twice at its new owner, or once more after they
/// were given back, and so refuse although they are left: where each of `under_way` charges or
/// refunds of `cost` is under way at another node while this one carries the subject, or a refund
/// was heard of by one owner alone. They come back with the end of the window, or of the lease.
#[must_use]
pub const fn max_double_count(under_way: u64, cost: Cost) -> u64 {
    under_way.saturating_mul(cost.get())
}

impl<S: Store> Rebalance<S> {
    /// The move from one map to another. A shard of the same name is the same store in both.
    #[must_use]
    pub fn new(before: Sharded<Arc<S>>, after: Sharded<Arc<S>>) -> Self {
        Self {
            before: Atomic::new(before),
            after: Atomic::new(after),
            phase: AtomicU8::new(Phase::DualWrite as u8),
            transfer: LazyTransfer::new(DEFAULT_TRANSFER_ENTRIES),
            diverged: AtomicU64::new(0),
        }
    }

    /// Sets how many limits and subjects are remembered to have arrived, rounded up to a power of
    /// two, and how long bringing one along may take.
    #[must_use]
    pub fn with_transfer_entries(mut self, entries: usize, within: Duration) -> Self {
        self.transfer = LazyTransfer::new(entries).with_time(within);
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
            0 => Phase::DualWrite,
            1 => Phase::Cutover,
            _ => Phase::Done,
        }
    }

    /// Goes on to `phase`; never back. To [`Phase::Cutover`] only when no node knows the old map
    /// only, to [`Phase::Done`] the longest window later.
    pub fn enter(&self, phase: Phase) {
        self.phase.fetch_max(phase as u8, Ordering::Relaxed);
    }

    /// Whether `subject` has another owner under the map that comes.
    #[must_use]
    pub fn moves(&self, subject: &Subject) -> bool {
        let (before, after) = (self.before.partitions(), self.after.partitions());
        before.shard_for(subject).name != after.shard_for(subject).name
    }

    /// CellTransfer that moved along with their subjects.
    #[must_use]
    pub fn transferred(&self) -> u64 {
        self.transfer.transferred()
    }

    /// Calls before which an old owner could not be asked what its subjects had used there.
    #[must_use]
    pub fn failed_transfers(&self) -> u64 {
        self.transfer.failed()
    }

    /// Charges of subjects that move which not both owners are known to have counted while nodes
    /// followed, and what was given back and not both are known to have heard of.
    #[must_use]
    pub fn diverged(&self) -> u64 {
        self.diverged.load(Ordering::Relaxed) + self.transfer.unconfirmed()
    }
}

impl<S: CellTransfer + 'static> Store for Rebalance<S> {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        let phase = self.phase();
        if phase == Phase::Done {
            return self.after.apply(now, charges).await;
        }
        let is_moving = |place: &usize| self.moves(charges[*place].subject);
        let moving: Vec<_> = (0..charges.len()).filter(is_moving).collect();
        if moving.is_empty() {
            return self.after.apply(now, charges).await;
        }
        if phase == Phase::DualWrite {
            return self.dual_write(now, charges, &moving).await;
        }
        let told: Vec<_> = moving.iter().map(|place| charges[*place]).collect();
        let owners = (&self.before, &self.after);
        self.transfer.decide(now, phase as u64, owners, &told, charges).await
    }
}

impl<S: Store> fmt::Debug for Rebalance<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rebalance")
            .field("before", &self.before)
            .field("after", &self.after)
            .field("phase", &self.phase())
            .finish_non_exhaustive()
    }
}
