//! Some subjects are decided by a new store, the rest by the old one, and the share is turned while
//! traffic runs.
//!
//! Source: how GitHub moved its limiter from memcached to Redis, by a growing percentage of
//! clients ("How we scaled the GitHub API with a sharded, replicated rate limiter in Redis", 2021).

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
use super::rollout_percentage::RolloutPercentage;
use super::sharded::Routing;
use crate::hash_key::HashKey;

/// What a subject has when it moves from one store to the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMove {
    /// What it had used, and the window that was running.
    #[default]
    Transfer,
    /// Nothing used: a window more, once for each move.
    Reset,
}

/// Two stores as one: each subject lives at the new one if the percentage includes its hash, else at the
/// old one. Inside of [`Atomic`](super::Atomic) it is a store.
///
/// # What it keeps
/// - Where a subject lives depends on its hash and the percentage alone: all nodes that hold the same key
///   and percentage agree, and while the percentage is turned in one direction no subject moves back.
/// - A subject that moves goes on where it was ([`OnMove::Transfer`]): before the first decision there,
///   what the other store holds of it is [joined](tollgate_core::decide::join) in. That costs two
///   calls more, once for each limit, subject and turn on each node, and again where the node has
///   forgotten: [`with_transfer_entries`](Self::with_transfer_entries).
/// - Turning the percentage back is the same move, the other way.
///
/// # What it weakens
/// - While nodes disagree on the percentage, what those behind it admit may be counted at one store only:
///   see [`max_over_admission`].
/// - A store that does not answer takes what it knows with it: until it does, who came from there
///   has used nothing there. At most one more quota for each subject; the next decision asks again.
/// - What is given back or forgotten is asked of both stores ([`OnMove::Transfer`]): a call more. What
///   the other one does not answer may count again when a node brings the subject along that has
///   not seen it arrive, until its window or lease is over; so may what is under way meanwhile. It
///   costs refusals, never admits, and [`unconfirmed_refunds`](Self::unconfirmed_refunds) counts.
///   Forgetting is an error then.
/// - A reservation that nobody settles may stay used until its window is over where it would have
///   been released: the other store does not know of it.
/// - A receipt that comes again after the percentage was turned, and of whose charge the other store knew
///   nothing when it was redeemed, gives back once more, at most what it cost.
/// - A call whose subjects live on both sides spans: see [`Atomic`](super::Atomic).
pub struct Rollout<A, B> {
    old: A,
    new: B,
    percentage: RolloutPercentage,
    hasher: SipHasher13,
    routing: Routing,
    on_move: OnMove,
    transfer: LazyTransfer,
}

/// The units that are admitted beyond `limit`, for one subject and one turn of the percentage, when a
/// client that is admitted `rate` units per second meets nodes that disagree for `disagreement`.
#[must_use]
pub fn max_over_admission(limit: &Limit, rate: u64, disagreement: Duration) -> u64 {
    let units = u128::from(rate) * disagreement.as_millis().div_ceil(1_000);
    u64::try_from(units).unwrap_or(u64::MAX).min(limit.capacity())
}

const OLD: usize = 0;
const NEW: usize = 1;

impl<A, B> Rollout<A, B> {
    /// `old`, of whose subjects `percentage` sends some to `new`. Every node uses the same `key`.
    #[must_use]
    pub fn new(key: &HashKey, percentage: RolloutPercentage, old: A, new: B) -> Self {
        Self {
            old,
            new,
            percentage,
            // Set apart from what the same key says of shards: neither depends on the other.
            hasher: SipHasher13::new_with_key(&key.hash(b"rollout")),
            routing: Routing::default(),
            on_move: OnMove::default(),
            transfer: LazyTransfer::new(DEFAULT_TRANSFER_ENTRIES),
        }
    }

    /// Sets what of a subject says where it lives, the same on every node: limits whose subjects
    /// share it move together.
    #[must_use]
    pub fn with_routing(mut self, routing: Routing) -> Self {
        self.routing = routing;
        self
    }

    /// Sets what a subject has when it moves.
    #[must_use]
    pub fn with_on_move(mut self, on_move: OnMove) -> Self {
        self.on_move = on_move;
        self
    }

    /// Sets how many limits and subjects are remembered to have arrived, rounded up to a power of
    /// two, and how long bringing one along may take.
    #[must_use]
    pub fn with_transfer_entries(mut self, entries: usize, within: Duration) -> Self {
        self.transfer = LazyTransfer::new(entries).with_time(within);
        self
    }

    /// The store that subjects leave.
    #[must_use]
    pub const fn old(&self) -> &A {
        &self.old
    }

    /// The store that they go to.
    #[must_use]
    pub const fn new_store(&self) -> &B {
        &self.new
    }

    /// The percentage, to read and to turn.
    #[must_use]
    pub const fn percentage(&self) -> &RolloutPercentage {
        &self.percentage
    }

    /// Whether `subject` lives at the new store.
    #[must_use]
    pub fn is_moved(&self, subject: &Subject) -> bool {
        let mut hasher = self.hasher;
        hasher.write(self.routing.part_of(subject));
        self.percentage.get().includes(hasher.finish128().h1)
    }

    /// CellTransfer that moved along with their subjects.
    #[must_use]
    pub fn transferred(&self) -> u64 {
        self.transfer.transferred()
    }

    /// Calls before which a store could not be asked what its subjects had used there.
    #[must_use]
    pub fn failed_transfers(&self) -> u64 {
        self.transfer.failed()
    }

    /// Charges that were given back where their subject lives, and not known to have been at the
    /// other store.
    #[must_use]
    pub fn unconfirmed_refunds(&self) -> u64 {
        self.transfer.unconfirmed()
    }

    /// Numbers the stay of subjects at `partition`: another turn of the percentage is another stay.
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
