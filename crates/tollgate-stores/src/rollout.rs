//! A gradual rollout of a new store: the new store decides for a percentage of the subjects, and
//! the old store for the rest. The percentage can change while traffic runs.
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
    /// The subject starts with unused limits. So each move gives the subject one additional quota
    /// of each limit.
    Reset,
}

/// Two stores, an old store and a new store, between which subjects move by percentage.
///
/// A subject belongs to the new store if the percentage includes its hash, and to the old store if
/// not. The store to which a subject does not belong is called its other store.
/// [`Atomic`](super::Atomic) turns a rollout into a [`Store`](tollgate_core::Store).
///
/// # Guarantees
/// - The hash of the subject and the percentage alone select the store, so all nodes with the same
///   key and percentage agree. While the percentage changes in one direction, no subject moves
///   back.
/// - A subject that moves keeps its usage ([`OnMove::Transfer`]): before a store first decides on
///   the subject, the other store's cells are [joined](tollgate_core::decide::join) into that
///   store. This takes two additional calls for each limit and subject on each node, once for each
///   change of the percentage, and again if the node no longer remembers the transfer: see
///   [`with_transfer_entries`](Self::with_transfer_entries).
/// - Lowering the percentage moves subjects back in the same way.
///
/// # Limitations
/// - While nodes disagree on the percentage, charges through nodes with the older value may be
///   counted at one store only: see [`max_over_admission`]. The same applies to a charge that is in
///   flight through a node, even the only one, while the percentage of this node changes. The
///   charge can reach the store that the subject leaves after the subject's usage was read there.
/// - If a subject's other store does not answer, its usage cannot be transferred. The subject then
///   starts with unused limits and gets at most one additional quota of each limit. The next
///   decision on the subject tries the transfer again.
/// - Refunds and resets are sent to both stores ([`OnMove::Transfer`]), which costs one additional
///   call. The refunded units may count as used again if the other store does not answer a refund,
///   or if the refund is in flight during a transfer. In that case, the units count from another
///   node's first transfer of the subject until the window or permit of the charge ends. A store
///   may then refuse a charge that fits, but never admits a charge beyond a limit.
///   [`unconfirmed_refunds`](Self::unconfirmed_refunds) counts these refunds. A reset fails if the
///   other store does not answer.
/// - A reservation that is never settled is normally released when it expires. After a move, the
///   reservation may instead count as used until its window ends, because the other store has no
///   record of the reservation.
/// - If a receipt is redeemed while the other store has no record of the charge, and is redeemed
///   again after the percentage changed, the charge is refunded once more, by at most its cost.
/// - If some subjects of a call belong to the old store and others to the new store, the call is
///   atomic only as [`Atomic`](super::Atomic) describes.
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
/// percentage. The subject is admitted `rate` units per second, and the nodes disagree on the
/// percentage for the time `disagreement`. This time lasts until all calls that began with the
/// older percentage have ended, so with a single node it is the longest time of a call.
#[must_use]
pub fn max_over_admission(limit: &Limit, rate: u64, disagreement: Duration) -> u64 {
    let units = u128::from(rate) * disagreement.as_millis().div_ceil(1_000);
    u64::try_from(units).unwrap_or(u64::MAX).min(limit.capacity())
}

const OLD_STORE: usize = 0;
pub(crate) const NEW_STORE: usize = 1;

impl<A, B> Rollout<A, B> {
    /// Creates a rollout from `old` to `new` in which `percentage` of the subjects belong to `new`.
    /// Every node must use the same `key`.
    #[must_use]
    pub fn new(key: &HashKey, percentage: RolloutPercentage, old: A, new: B) -> Self {
        Self {
            old,
            new,
            percentage,
            // The hash is separate from the hash for the shards, because the two selections must be
            // independent.
            hasher: SipHasher13::new_with_key(&key.hash(b"rollout")),
            routing: Routing::default(),
            on_move: OnMove::default(),
            transfer: LazyTransfer::new(DEFAULT_TRANSFER_ENTRIES),
        }
    }

    /// Sets the part of a subject that selects its store. Every node must use the same `routing`.
    /// Limits with subjects that share this part move together.
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

    /// Sets two bounds. `entries` is the number of limits and subjects that the node remembers as
    /// transferred, rounded up to a power of two. `within` is the longest time of a transfer.
    #[must_use]
    pub fn with_transfer_entries(mut self, entries: usize, within: Duration) -> Self {
        self.transfer = LazyTransfer::new(entries).with_time(within);
        self
    }

    /// Returns the old store, from which subjects move when the percentage rises.
    #[must_use]
    pub const fn old(&self) -> &A {
        &self.old
    }

    /// Returns the new store, to which subjects move when the percentage rises.
    #[must_use]
    pub const fn new_store(&self) -> &B {
        &self.new
    }

    /// Returns the percentage of subjects that belong to the new store. The percentage can be read
    /// and changed.
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

    /// Returns the number of calls with subjects that could not be transferred from the other
    /// store.
    #[must_use]
    pub fn failed_transfers(&self) -> u64 {
        self.transfer.failed()
    }

    /// Returns the number of refunds that reached the subject's current store but are not known to
    /// have reached the other store.
    #[must_use]
    pub fn unconfirmed_refunds(&self) -> u64 {
        self.transfer.unconfirmed()
    }

    /// Returns a number that identifies the latest move of subjects to `partition`. The number
    /// differs after every change of the percentage.
    fn epoch(&self, partition: usize) -> u64 {
        let (_, turns) = self.percentage.read();
        turns * 2 + partition as u64
    }
}

impl<A: CellTransfer, B: CellTransfer> Partitions for Rollout<A, B> {
    fn partition(&self, subject: &Subject) -> usize {
        if self.is_moved(subject) { NEW_STORE } else { OLD_STORE }
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
            (OLD_STORE, OnMove::Transfer) => {
                transfer.decide(now, epoch, (new, old), charges, charges).await
            }
            (_, OnMove::Transfer) => {
                transfer.decide(now, epoch, (old, new), charges, charges).await
            }
            (OLD_STORE, OnMove::Reset) => old.apply(now, charges).await,
            (_, OnMove::Reset) => new.apply(now, charges).await,
        }
    }
}

impl<A: fmt::Debug, B: fmt::Debug> fmt::Debug for Rollout<A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rollout")
            .field("old", &self.old)
            .field("new", &self.new)
            .field("percentage", &self.percentage.get())
            .finish_non_exhaustive()
    }
}
