//! A gradual rollout of a new store: a percentage of subjects is decided by the new store, the rest
//! by the old one, and the percentage can change while traffic runs.
//!
//! Source: GitHub moved its limiter from memcached to Redis by a growing percentage of clients
//! ("How we scaled the GitHub API with a sharded, replicated rate limiter in Redis", 2021).

use std::fmt;
use std::hash::Hasher;
use std::time::Duration;

use siphasher::sip128::{Hasher128, SipHasher13};
use tollgate_core::{
    CellTransfer, Charge, KeyedHash, Limit, Readings, StoreError, Subject, Timestamp,
};

use super::atomic::Partitions;
use super::lazy_transfer::LazyTransfer;
pub use super::lazy_transfer::{DEFAULT_TRANSFER_ENTRIES, DEFAULT_TRANSFER_TIME};
use super::sharded::Routing;
use tollgate::hash_key::HashKey;
use tollgate::rollout_percentage::RolloutPercentage;

/// How a subject starts when it moves from one store to the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMove {
    /// The subject keeps its usage and its current window.
    #[default]
    Transfer,
    /// The subject starts with unused limits, so it gets one additional window for each move.
    Reset,
}

/// Two stores that act as one. A subject belongs to the new store if the percentage includes its
/// hash, else to the old one. Inside [`Atomic`](super::Atomic) it is a store.
///
/// # Guarantees
/// - The hash of the subject and the percentage alone select the store: all nodes with the same key
///   and percentage agree. While the percentage changes in one direction, no subject moves back.
/// - A subject that moves keeps its usage ([`OnMove::Transfer`]): before its first decision at a
///   store, the other store's cells are [joined](tollgate_core::decide::join) into it. This costs
///   two additional calls for each limit and subject on each node, once for each change of the
///   percentage, and again if the node has evicted the entry: see
///   [`with_transfer_entries`](Self::with_transfer_entries).
/// - Lowering the percentage moves subjects back in the same way.
///
/// # Limitations
/// - While nodes disagree on the percentage, charges through nodes with the older value may be
///   counted at one store only: see [`max_over_admission`].
/// - While a store does not answer, the usage that it keeps is missing: subjects that moved from it
///   count as unused, at most one additional quota for each. The next decision tries again.
/// - Refunds and resets are sent to both stores ([`OnMove::Transfer`]), which costs one additional
///   call. A refund that the other store does not answer, or that is in flight during a transfer,
///   may count as used again when another node transfers the subject for the first time, until its
///   window or permit ends. This can refuse too much but never admit too much, and
///   [`unconfirmed_refunds`](Self::unconfirmed_refunds) counts these refunds. A reset fails if the
///   other store does not answer.
/// - A reservation that is never settled may count as used until its window ends instead of being
///   released, because the other store does not have it.
/// - If the other store had no record of a charge when its receipt was redeemed, and the receipt is
///   redeemed again after the percentage changed, it is refunded once more, by at most its cost.
/// - A call whose subjects belong to both stores spans partitions: see [`Atomic`](super::Atomic).
pub struct Rollout<A, B> {
    old: A,
    new: B,
    percentage: RolloutPercentage,
    hasher: SipHasher13,
    routing: Routing,
    on_move: OnMove,
    transfer: LazyTransfer,
}

/// Returns the maximum units that one subject is admitted beyond `limit` at one change of the
/// percentage, if it is admitted `rate` units per second while nodes disagree for `disagreement`.
#[must_use]
pub fn max_over_admission(limit: &Limit, rate: u64, disagreement: Duration) -> u64 {
    let units = u128::from(rate) * disagreement.as_millis().div_ceil(1_000);
    u64::try_from(units).unwrap_or(u64::MAX).min(limit.capacity())
}

const OLD: usize = 0;
pub(crate) const NEW: usize = 1;

impl<A, B> Rollout<A, B> {
    /// Creates a rollout from `old` to `new` in which `percentage` of the subjects belong to `new`.
    /// Every node must use the same `key`.
    #[must_use]
    pub fn new(key: &HashKey, percentage: RolloutPercentage, old: A, new: B) -> Self {
        Self {
            old,
            new,
            percentage,
            // A hash separate from that of the shards: the two selections must be independent.
            hasher: SipHasher13::new_with_key(&key.hash(b"rollout")),
            routing: Routing::default(),
            on_move: OnMove::default(),
            transfer: LazyTransfer::new(DEFAULT_TRANSFER_ENTRIES),
        }
    }

    /// Sets the part of a subject that selects its store. It must be the same on every node. Limits
    /// whose subjects share this part move together.
    #[must_use]
    pub fn with_routing(mut self, routing: Routing) -> Self {
        self.routing = routing;
        self
    }

    /// Sets whether a subject keeps its usage when it moves.
    #[must_use]
    pub fn with_on_move(mut self, on_move: OnMove) -> Self {
        self.on_move = on_move;
        self
    }

    /// Sets two bounds: `entries`, the number of limits and subjects that the node remembers as
    /// transferred, rounded up to a power of two, and `within`, the longest time of a transfer.
    #[must_use]
    pub fn with_transfer_entries(mut self, entries: usize, within: Duration) -> Self {
        self.transfer = LazyTransfer::new(entries).with_time(within);
        self
    }

    /// The old store, which subjects leave.
    #[must_use]
    pub const fn old(&self) -> &A {
        &self.old
    }

    /// The new store, which subjects move to.
    #[must_use]
    pub const fn new_store(&self) -> &B {
        &self.new
    }

    /// The percentage, to read and to change.
    #[must_use]
    pub const fn percentage(&self) -> &RolloutPercentage {
        &self.percentage
    }

    /// Returns whether `subject` belongs to the new store.
    #[must_use]
    pub fn is_moved(&self, subject: &Subject) -> bool {
        let mut hasher = self.hasher;
        hasher.write(self.routing.part_of(subject));
        self.percentage.get().includes(hasher.finish128().h1)
    }

    /// Returns the number of cells that were transferred with their subjects.
    #[must_use]
    pub fn transferred(&self) -> u64 {
        self.transfer.transferred()
    }

    /// Returns the number of calls before which the other store's cells could not be read.
    #[must_use]
    pub fn failed_transfers(&self) -> u64 {
        self.transfer.failed()
    }

    /// Returns the number of refunds that reached the subject's current store but are not known to
    /// have reached the other one.
    #[must_use]
    pub fn unconfirmed_refunds(&self) -> u64 {
        self.transfer.unconfirmed()
    }

    /// Returns the epoch of transfers to `partition`: every change of the percentage starts a new
    /// one.
    fn epoch(&self, partition: usize) -> u64 {
        let (_, turns) = self.percentage.read();
        turns * 2 + partition as u64
    }
}

impl<A: CellTransfer, B: CellTransfer> Partitions for Rollout<A, B> {
    fn partition(&self, subject: &Subject) -> usize {
        if self.is_moved(subject) { NEW } else { OLD }
    }

    async fn apply_at(
        &self,
        partition: usize,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> Result<Readings, StoreError> {
        let epoch = self.epoch(partition);
        let (old, new, transfer) = (&self.old, &self.new, &self.transfer);
        match (partition, self.on_move) {
            (OLD, OnMove::Transfer) => {
                transfer.decide(now, epoch, (new, old), charges, charges).await
            }
            (_, OnMove::Transfer) => {
                transfer.decide(now, epoch, (old, new), charges, charges).await
            }
            (OLD, OnMove::Reset) => old.apply(now, charges).await,
            (_, OnMove::Reset) => new.apply(now, charges).await,
        }
    }
}

impl<A: fmt::Debug, B: fmt::Debug> fmt::Debug for Rollout<A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rollout")
            .field("old", &self.old)
            .field("new", &self.new)
            .field("dial", &self.percentage.get())
            .finish_non_exhaustive()
    }
}
