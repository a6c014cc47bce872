//! Moving subjects and their usage to other shards when the shard map changes.

mod dual_write;
mod heartbeat;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use tollgate_core::{
    Cell, CellKey, CellTransfer, Charge, Cost, Limit, Readings, Store, StoreError, Subject,
    Timestamp,
};

pub use heartbeat::{HEARTBEAT_TTL, Heartbeat, HeartbeatCounts};

use super::atomic::Atomic;
use super::lazy_transfer::LazyTransfer;
use super::rollout::DEFAULT_TRANSFER_ENTRIES;
use super::sharded::Sharded;

/// The shards of one map, as a store.
pub type Shards<S> = Atomic<Sharded<Arc<S>>>;

/// The phase of a rebalance. Each node changes phase independently. Nodes may be in two
/// neighbouring phases at the same time, but not in the first and the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The old owner of a subject decides, and its admitted charges are also made at the new owner.
    /// Some nodes may still use only the old map.
    DualWrite,
    /// The new owner decides, starting from the old owner's cells. The old owner receives no more
    /// charges, only refunds and resets. No node uses only the old map.
    Cutover,
    /// Every window at the old owner has ended.
    Done,
}

/// A store over two shard maps, between which subjects move together with their usage.
///
/// Subjects with the same owner under both maps are decided as usual. For the others:
///
/// - In [`Phase::DualWrite`], the old owner decides, and its admitted charges are also made at the
///   new owner. The old owner is called first, so it alone decides between two nodes that send a
///   charge for the last unit at the same moment. If the new owner refuses (nodes in cutover may
///   have used it up), the charge is refunded at the old owner, and the call is refused. If a node
///   that calls only one of the owners opened a window there, both owners continue in that window.
/// - In [`Phase::Cutover`], the new owner decides. Before its first decision on a limit and
///   subject, once in each phase, the old owner's cells are [joined](tollgate_core::decide::join)
///   into it. Refunds and resets are sent to the old owner too, and the new owner's answer is
///   returned.
///
/// # Guarantees
/// - Calls are all or nothing. No subject gains a window, and no window ends early. While all nodes
///   are in dual write, the old owner has counted everything that the new one has. Once a node is
///   in cutover, the new owner has counted everything that the old one has. Reductions apply to
///   both. So each join is exact.
/// - A reset is complete: it fails if one of the owners does not answer.
/// - Only a fair share of the subjects moves: see [`Sharded::fair_share`].
///
/// # Limitations
/// - Latency: in dual write, a charge of a moving subject costs two round trips. In both phases, a
///   refund costs one call to each owner, in parallel. In cutover, a reset costs two round trips.
/// - A subject's cells are transferred once for each node and phase, and whenever only one owner
///   opened a window. If another node's charge is in flight during the transfer, the new owner may
///   count it twice. If another node's refund or reset is in flight, the new owner may restore the
///   old usage. See [`max_double_count`]. This can refuse too much but never admit too much.
/// - A refund that reached only one owner may still count as used until its window or permit ends.
///   The other owner did not answer or could not be called earlier ([`diverged`](Self::diverged)
///   counts this), or the refund came from a node that uses only the old map. This can refuse too
///   much but never admit too much. A reset by such a node applies only to the old owner.
/// - A reservation that is never settled may count as used until its window ends instead of being
///   released, if a node in cutover made it: the old owner does not have it. The same applies to
///   the difference between any reservation and a lower settlement, if the two owners' windows were
///   merged in between.
/// - If one owner has no record of a charge, only the other owner records that its receipt was
///   redeemed. If the receipt is redeemed again through a node that calls the former, it is
///   refunded once more, by at most its cost.
/// - If a limit counts refusals, refusals through nodes in dual write count only at the old owner.
///   If units are refunded in that window, nodes in cutover admit that many more, at most the cost
///   of the refused calls.
/// - In dual write, a charge that not both owners answered, or whose caller stopped waiting
///   earlier, is reconciled before this node's next decision on it ([`diverged`](Self::diverged)
///   counts these charges). Until then, a node that is already in cutover may admit as much again:
///   see [`max_over_admission`].
/// - In cutover, the usage at an old owner is missing while that owner does not answer: its
///   subjects count as unused, at most one additional quota for each. The next decision tries
///   again, and [`failed_transfers`](Self::failed_transfers) counts the failures.
/// - A node that uses only the old map while others are in cutover decides by itself: at most one
///   additional quota for each subject. Use [`Heartbeat`] to prevent this.
pub struct Rebalance<S> {
    /// `None` if there is one map only.
    before: Option<Shards<S>>,
    after: Shards<S>,
    phase: AtomicU8,
    transfer: LazyTransfer,
    diverged: AtomicU64,
}

/// Returns the maximum units that one subject is admitted beyond `limit` during a rebalance in
/// which its new owner does not answer for `outage`, at `rate` admitted units per second.
#[must_use]
pub fn max_over_admission(limit: &Limit, rate: u64, outage: Duration) -> u64 {
    super::rollout::max_over_admission(limit, rate, outage)
}

/// Returns the maximum units of one subject that count as used although they are free, because a
/// rebalance counted charges twice at the new owner or restored refunded charges.
///
/// This happens to each of `under_way` charges or refunds of `cost` that are in flight at another
/// node while this one transfers the subject, and to refunds that reached only one owner. The units
/// are free again when the window or permit ends.
#[must_use]
pub const fn max_double_count(under_way: u64, cost: Cost) -> u64 {
    under_way.saturating_mul(cost.get())
}

impl<S: Store> Rebalance<S> {
    /// Creates a rebalance from one map to another. Shards of the same name must be the same store
    /// in both.
    #[must_use]
    pub fn new(before: Sharded<Arc<S>>, after: Sharded<Arc<S>>) -> Self {
        Self {
            before: Some(Atomic::new(before)),
            after: Atomic::new(after),
            phase: AtomicU8::new(Phase::DualWrite as u8),
            transfer: LazyTransfer::new(DEFAULT_TRANSFER_ENTRIES),
            diverged: AtomicU64::new(0),
        }
    }

    /// Creates a store over one map, in which no subject moves. Its phase is [`Phase::Done`].
    #[must_use]
    pub fn fixed(map: Sharded<Arc<S>>) -> Self {
        Self {
            before: None,
            after: Atomic::new(map),
            phase: AtomicU8::new(Phase::Done as u8),
            transfer: LazyTransfer::new(0),
            diverged: AtomicU64::new(0),
        }
    }

    /// Sets two bounds: `entries`, the number of limits and subjects that the node remembers as
    /// transferred, rounded up to a power of two, and `within`, the longest time of a transfer.
    #[must_use]
    pub fn with_transfer_entries(mut self, entries: usize, within: Duration) -> Self {
        self.transfer = LazyTransfer::new(entries).with_time(within);
        self
    }

    /// Returns whether there is an old map, from which subjects move.
    #[must_use]
    pub const fn has_previous(&self) -> bool {
        self.before.is_some()
    }

    /// The shards under the old map. If there is one map only, those of this map.
    #[must_use]
    pub fn before(&self) -> &Shards<S> {
        self.before.as_ref().unwrap_or(&self.after)
    }

    /// The shards under the new map.
    #[must_use]
    pub const fn after(&self) -> &Shards<S> {
        &self.after
    }

    /// Returns the phase of this node.
    #[must_use]
    pub fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Relaxed) {
            0 => Phase::DualWrite,
            1 => Phase::Cutover,
            _ => Phase::Done,
        }
    }

    /// Advances to `phase`; never goes back.
    ///
    /// Enter [`Phase::Cutover`] only when no node uses only the old map, and [`Phase::Done`] only
    /// after the longest window has passed since then.
    pub fn enter(&self, phase: Phase) {
        self.phase.fetch_max(phase as u8, Ordering::Relaxed);
    }

    /// Returns whether `subject` has another owner under the new map.
    #[must_use]
    pub fn moves(&self, subject: &Subject) -> bool {
        let (before, after) = (self.before().partitions(), self.after.partitions());
        before.shard_for(subject).name != after.shard_for(subject).name
    }

    /// Returns the number of cells that were transferred with their subjects.
    #[must_use]
    pub fn transferred(&self) -> u64 {
        self.transfer.transferred()
    }

    /// Returns the number of calls before which an old owner's cells could not be read.
    #[must_use]
    pub fn failed_transfers(&self) -> u64 {
        self.transfer.failed()
    }

    /// Returns the number of charges of failed calls over several shards that could not be refunded.
    #[must_use]
    pub fn unrefunded(&self) -> u64 {
        self.before.as_ref().map_or(0, Atomic::unrefunded) + self.after.unrefunded()
    }

    /// Returns the number of charges in dual write, and of refunds in any phase, that are not known
    /// to have reached both owners.
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
        // Boxed, because the future of a move would make every other call larger.
        Box::pin(self.apply_moving(phase, now, charges)).await
    }
}

impl<S: CellTransfer + 'static> Rebalance<S> {
    async fn apply_moving(
        &self,
        phase: Phase,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> Result<Readings, StoreError> {
        let is_moving = |place: &usize| self.moves(charges[*place].subject);
        let moving: Vec<_> = (0..charges.len()).filter(is_moving).collect();
        if moving.is_empty() {
            return self.after.apply(now, charges).await;
        }
        if phase == Phase::DualWrite {
            return self.dual_write(now, charges, &moving).await;
        }
        let told: Vec<_> = moving.iter().map(|place| charges[*place]).collect();
        let owners = (self.before(), &self.after);
        self.transfer.decide(now, phase as u64, owners, &told, charges).await
    }
}

/// During a rebalance, cells are read from the deciding owners and joined into all owners.
impl<S: CellTransfer + 'static> CellTransfer for Rebalance<S> {
    async fn cells(
        &self,
        now: Timestamp,
        places: &[CellKey<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        let phase = self.phase();
        if phase == Phase::Done {
            return self.after.cells(now, places).await;
        }
        let before = self.before().cells(now, places).await?;
        if phase == Phase::DualWrite {
            return Ok(before);
        }
        // A cell that has not been transferred yet is still at its previous owner.
        let after = self.after.cells(now, places).await?;
        Ok(after.into_iter().zip(before).map(|(after, before)| after.or(before)).collect())
    }

    async fn join(&self, now: Timestamp, cells: &[(CellKey<'_>, Cell)]) -> Result<(), StoreError> {
        if self.phase() == Phase::DualWrite {
            self.before().join(now, cells).await?;
        }
        self.after.join(now, cells).await
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
