//! Moving subjects and their usage to other shards when the shard map changes.

mod dual_write;
mod heartbeat;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use tollgate_core::{
    Cell, CellKey, CellTransfer, Charge, Cost, Limit, Readings, Store, StoreError, Subject,
    Timestamp, decide,
};

pub use heartbeat::{HEARTBEAT_TTL, Heartbeat, HeartbeatCounts};

use super::atomic::Atomic;
use super::join::join_pair;
use super::lazy_transfer::{Arrival, LazyTransfer};
use super::rollout::DEFAULT_TRANSFER_ENTRIES;
use super::sharded::Sharded;

/// The shards of one map, as a store.
pub type Shards<S> = Atomic<Sharded<Arc<S>>>;

/// The phase of a rebalance. Each node changes phase independently. Two nodes may be in
/// neighbouring phases at the same time, but never in the first and the last phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The old owner of a subject decides. The charges that the old owner admits are also made at
    /// the new owner. Some nodes may still use only the old map.
    DualWrite,
    /// The new owner decides, and starts from the old owner's cells. The old owner receives no more
    /// charges, only refunds and resets. No node uses only the old map.
    Cutover,
    /// Every counter at the old owner has expired.
    Done,
}

/// A store over an old and a new shard map, between which subjects move together with their usage.
/// A subject's owner under a map is the shard that keeps its usage.
///
/// A subject with the same owner under both maps is decided as usual. For a subject with two
/// owners:
///
/// - In [`Phase::DualWrite`], the old owner decides, and the charges that it admits are also made
///   at the new owner. The old owner is called first, so the old owner alone decides between two
///   nodes that charge the last unit at the same time. If the new owner refuses (nodes in cutover
///   may have used up the limit), the charge is refunded at the old owner, and the call is refused.
///   If a node that calls only one owner opened a window at that owner, both owners continue in
///   that window.
/// - In [`Phase::Cutover`], the new owner decides. Before its first decision on a limit and
///   subject, once in each phase, the old owner's cells are [joined](tollgate_core::decide::join)
///   into the new owner's cells, until the new owner has counted everything that the old owner has
///   counted. If charges of other nodes overtake three joins, this call is decided as in dual
///   write. Refunds and resets are sent to the old owner too, and the new owner's answer is
///   returned.
///
/// # Guarantees
/// - Calls are all or nothing. No subject gains a window, and no window ends early. While all nodes
///   are in dual write, the old owner has counted everything that the new owner has counted. After a
///   node in cutover has transferred a subject, the new owner has counted everything that the old
///   owner has counted. Refunds and resets apply to both owners. So each join is exact.
/// - A reset succeeds only if both owners have executed the reset.
/// - Only a fair share of the subjects moves: see [`Sharded::fair_share`].
///
/// # Limitations
/// - Latency: in dual write, a charge of a moving subject costs two round trips. In both phases, a
///   refund costs one call to each owner, in parallel. In cutover, a transfer costs two round trips
///   if the new owner has counted everything, and at most eleven. A reset costs two round trips.
/// - Each node transfers a subject's cells once in each phase, and whenever only one owner opened a
///   window. If another call's charge is in flight during the transfer, through this node or another
///   one, the new owner may count the charge twice. If another call's refund or reset is in flight
///   during the transfer, the new owner may restore the usage from before the refund or reset. See
///   [`max_double_count`]. The owners may then refuse a charge that fits, but never admit a charge
///   beyond a limit.
/// - If a refund reached only one owner, the refunded units may still count as used until the
///   window or permit of the charge ends. This happens if the other owner did not answer or could
///   not be called earlier ([`diverged`](Self::diverged) counts these refunds), or if a node that
///   uses only the old map sent the refund. The owners may then refuse a charge that fits, but
///   never admit a charge beyond a limit. A reset by a node that uses only the old map applies only
///   to the old owner.
/// - A reservation that is never settled is normally released when it expires. If a node in cutover
///   made the reservation, the reservation may instead count as used until its window ends, because
///   the old owner has no record of it. The same applies to the difference between a reservation
///   and a lower settlement, if the two owners' windows were merged between the reservation and the
///   settlement.
/// - If one owner has no record of a charge, only the other owner records that the charge's receipt
///   was redeemed. If the receipt is redeemed again through a node that calls the owner without the
///   record, the charge is refunded once more, by at most its cost.
/// - If a limit counts refusals, refusals through nodes in dual write count only at the old owner.
///   If units are refunded in the same window, nodes in cutover admit up to the cost of these
///   refused calls in addition.
/// - In dual write, an owner may not answer a charge, or the caller may stop waiting before both
///   owners have answered. This node then joins the cells of both owners before its next decision
///   on the same limit and subject ([`diverged`](Self::diverged) counts these charges). Until that
///   decision, a node that is already in cutover may admit as much again: see
///   [`max_over_admission`].
/// - In cutover, if an old owner does not answer, its usage cannot be transferred. The subject then
///   starts with unused limits and gets at most one additional quota of each limit. The next
///   decision on the subject tries the transfer again, and
///   [`failed_transfers`](Self::failed_transfers) counts the failures.
/// - If a counter lasts longer than the phase of cutover, and its subject makes no request in this
///   phase, the subject starts with an unused limit and gets at most one additional quota.
/// - A node that uses only the old map while other nodes are in cutover does not see their charges,
///   so each subject gets at most one additional quota. Use [`Heartbeat`] to prevent this case.
pub struct Rebalance<S> {
    /// The shards under the old map, or `None` if no subjects move.
    before: Option<Shards<S>>,
    after: Shards<S>,
    phase: AtomicU8,
    transfer: LazyTransfer,
    diverged: AtomicU64,
}

/// Returns the maximum units that one subject is admitted beyond `limit` during a rebalance. The
/// subject's new owner does not answer for the time `outage`, and the subject is admitted `rate`
/// units per second.
#[must_use]
pub fn max_over_admission(limit: &Limit, rate: u64, outage: Duration) -> u64 {
    super::rollout::max_over_admission(limit, rate, outage)
}

/// Returns the maximum units of one subject that count as used although they are free, because a
/// rebalance counted charges twice at the new owner or restored refunded charges.
///
/// `under_way` is the sum of two numbers: the charges and refunds of other calls, through any node,
/// that are in flight while a node transfers the subject, and the refunds that reached only one
/// owner. `cost` is
/// the cost of each of these charges and refunds. The units are free again when the window or
/// permit ends.
#[must_use]
pub const fn max_double_count(under_way: u64, cost: Cost) -> u64 {
    under_way.saturating_mul(cost.get())
}

impl<S: Store> Rebalance<S> {
    /// Creates a rebalance from the map `before` to the map `after`. Shards of the same name must
    /// be the same store in both maps.
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

    /// Creates a store over one map, in which no subject moves. The phase of the store is
    /// [`Phase::Done`].
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

    /// Sets two bounds. `entries` is the number of limits and subjects that the node remembers as
    /// transferred, rounded up to a power of two. `within` is the longest time of a transfer.
    #[must_use]
    pub fn with_transfer_entries(mut self, entries: usize, within: Duration) -> Self {
        self.transfer = LazyTransfer::new(entries).with_time(within);
        self
    }

    /// Returns whether there is an old map, from which subjects move to the new map.
    #[must_use]
    pub const fn has_previous(&self) -> bool {
        self.before.is_some()
    }

    /// Returns the shards under the old map. If there is no old map, returns the shards under the
    /// only map.
    #[must_use]
    pub fn before(&self) -> &Shards<S> {
        self.before.as_ref().unwrap_or(&self.after)
    }

    /// Returns the shards under the new map.
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

    /// Advances this node to `phase`. Does nothing if this node is already in a later phase.
    ///
    /// Enter [`Phase::Cutover`] only when no node uses only the old map. Enter [`Phase::Done`] only
    /// when the [longest lifetime of a counter](tollgate_core::Policy::longest_cell_lifetime) has
    /// passed since the last node entered cutover.
    pub fn enter(&self, phase: Phase) {
        self.phase.fetch_max(phase as u8, Ordering::Relaxed);
    }

    /// Returns whether the old and the new map assign `subject` to different owners.
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

    /// Returns the number of calls with subjects that could not be transferred from the old owner.
    #[must_use]
    pub fn failed_transfers(&self) -> u64 {
        self.transfer.failed()
    }

    /// Returns the number of charges of failed calls over several shards that could not be
    /// refunded.
    #[must_use]
    pub fn unrefunded(&self) -> u64 {
        self.before.as_ref().map_or(0, Atomic::unrefunded) + self.after.unrefunded()
    }

    /// Returns the number of charges and refunds that are not known to have reached both owners.
    /// Charges are counted in dual write, and refunds in any phase.
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
        // Boxed, because this future is large and would make the future of every other call as
        // large.
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
        let is_moving = |index: &usize| self.moves(charges[*index].subject);
        let moving: Vec<_> = (0..charges.len()).filter(is_moving).collect();
        if moving.is_empty() {
            return self.after.apply(now, charges).await;
        }
        if phase == Phase::DualWrite {
            return self.dual_write(now, charges, &moving).await;
        }
        let moved: Vec<_> = moving.iter().map(|index| charges[*index]).collect();
        let owners = (self.before(), &self.after);
        let arrival = self.transfer.transfer_among_charges(now, phase as u64, owners, &moved).await;
        if arrival == Arrival::Overtaken {
            // The old owner has counted everything that the new owner may lack.
            return self.dual_write(now, charges, &moving).await;
        }
        let has_arrived = arrival == Arrival::Complete;
        self.transfer.apply(now, owners, has_arrived, &moved, charges).await
    }
}

/// Reads cells from both owners until every counter at the old owner has expired, and joins cells into
/// all owners.
impl<S: CellTransfer + 'static> CellTransfer for Rebalance<S> {
    async fn cells(
        &self,
        now: Timestamp,
        cell_keys: &[CellKey<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        let phase = self.phase();
        if phase == Phase::Done {
            return self.after.cells(now, cell_keys).await;
        }
        let (before, after) =
            join_pair(self.before().cells(now, cell_keys), self.after.cells(now, cell_keys)).await;
        // Each owner may lack charges: the new owner those of nodes that use only the old map, and
        // the old owner those of nodes in cutover.
        match (before?, after) {
            (before, Err(_)) if phase == Phase::DualWrite => Ok(before),
            (before, after) => {
                let both = cell_keys.iter().zip(before).zip(after?);
                let joined = both.map(|((cell_key, before), after)| match before {
                    Some(before) => decide::join(after, before, cell_key.limit, now),
                    None => after,
                });
                Ok(joined.collect())
            }
        }
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
