//! One operation of a call, with its shard, its keys and its outcome.

use tollgate_core::decide::refundable_until;
use tollgate_core::{
    Admission, Algorithm, Charge, ChargePosition, Cost, Limit, Refusals, Timestamp,
};

use super::fingerprint::Fingerprint;

/// One operation of a call, and the keys of the entries that it uses.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) charge: Charge<'a>,
    /// The index of the subject's shard.
    pub(super) shard: usize,
    /// The key of the limit and the subject.
    pub(super) key: Fingerprint,
    /// The key of the entry that records the refund, if the operation is a refund that may arrive
    /// twice.
    pub(super) refund: Option<Fingerprint>,
}

/// How the memory of a list changes during a decision.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Growth {
    /// The list grows by half of its length, for which room was reserved.
    ByHalf,
    /// The list keeps its memory.
    Kept,
    /// The list shrinks to the size of its items.
    None,
}

/// The outcome of a call: whether all of its charges fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallOutcome {
    /// Every charge fits, so all of them are counted.
    Admitted,
    /// At least one charge does not fit. No charge is counted, except on limits that count
    /// refusals.
    Refused,
}

impl CallOutcome {
    /// Returns the outcome of a call if its only charge has this `admission`.
    pub(super) fn of(admission: Admission) -> Self {
        if admission == Admission::Now { Self::Admitted } else { Self::Refused }
    }
}

/// Where one charge of a call is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Destination {
    /// The charge is counted in the subject's own entry, which exists or for which room was
    /// reserved.
    Entry,
    /// The charge is counted in an overflow counter of the limit, which the subject shares with
    /// other subjects.
    Overflow,
    /// The charge is counted nowhere, because there is no room. The store refuses a charge and does
    /// not make a refund.
    None,
}

/// Returns whether `limit` counts permits, each with an id.
pub(super) const fn is_concurrency(limit: &Limit) -> bool {
    matches!(limit.algorithm(), Algorithm::Concurrency(_))
}

/// Returns whether a charge of `cost` on `limit` changes the stored state if its call has this
/// `outcome`. In a refused call, only limits that count refused requests are charged.
pub(super) fn counts(limit: &Limit, cost: Cost, outcome: CallOutcome) -> bool {
    let is_counted = outcome == CallOutcome::Admitted || limit.refusals() == Refusals::Counted;
    cost != Cost::PEEK && is_counted
}

/// Returns the time until which the store remembers a refund of the charge at `position`. A client
/// can present a receipt with any `position`, so this time is at most the time until which a charge
/// that is made now could be refunded.
pub(super) fn remembered_until(
    limit: &Limit,
    position: ChargePosition,
    now: Timestamp,
) -> Timestamp {
    let longest = now.after(limit.window()).after(limit.window()).after(limit.skew_tolerance());
    refundable_until(limit, position).min(longest)
}
