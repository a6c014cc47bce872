//! One charge of a call, with its place and its outcome.

use tollgate_core::decide::refundable_until;
use tollgate_core::{
    Admission, Algorithm, Charge, ChargePosition, Cost, Limit, Refusals, Timestamp,
};

use super::fingerprint::Fingerprint;

/// One charge and the keys of its entries.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) charge: Charge<'a>,
    /// The index of the subject's shard.
    pub(super) shard: usize,
    /// The key of the limit and the subject.
    pub(super) key: Fingerprint,
    /// The key of the refund, if it may arrive twice.
    pub(super) refund: Option<Fingerprint>,
}

/// How the memory of a list changes during a decision.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Growth {
    /// The list grows by the room that was reserved for one more item.
    ByHalf,
    /// The list keeps its memory.
    Kept,
    /// The list shrinks to the size of its items.
    None,
}

/// The outcome of a call: whether all of its charges fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallOutcome {
    /// Every charge fits: all are counted.
    Admitted,
    /// Not every charge fits: none is counted, unless its limit counts refusals.
    Refused,
}

impl CallOutcome {
    /// Returns the outcome of a call of one charge with this `admission`.
    pub(super) fn of(admission: Admission) -> Self {
        if admission == Admission::Now { Self::Admitted } else { Self::Refused }
    }
}

/// The place that counts one charge of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seat {
    /// In the subject's own entry, which exists or has room.
    Entry,
    /// In the overflow counter of the limit that the subject shares.
    Overflow,
    /// There is no room: a charge is refused, and a refund is not made.
    Nowhere,
}

/// Returns whether `limit` counts permits, each with an id.
pub(super) const fn is_concurrency(limit: &Limit) -> bool {
    matches!(limit.algorithm(), Algorithm::Concurrency(_))
}

/// Whether a charge changes the stored state.
pub(super) fn counts(limit: &Limit, cost: Cost, outcome: CallOutcome) -> bool {
    let is_counted = outcome == CallOutcome::Admitted || limit.refusals() == Refusals::Counted;
    cost != Cost::PEEK && is_counted
}

/// Returns the time until which a refund of the charge at `mark` is remembered. A receipt from
/// outside cannot extend it beyond the time until which a charge made now could be refunded.
pub(super) fn remembered_until(limit: &Limit, mark: ChargePosition, now: Timestamp) -> Timestamp {
    let longest = now.after(limit.window()).after(limit.window()).after(limit.skew_tolerance());
    refundable_until(limit, mark).min(longest)
}
