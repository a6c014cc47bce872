//! The input of a store call: operations, each on one limit for one subject.

pub use crate::charge_id::ChargeId;
pub use crate::charge_position::ChargePosition;

use crate::cost::Cost;
use crate::key::Subject;
use crate::limit::Limit;
use crate::time::Timestamp;

/// Whether a store must detect that a refund is a repetition of an earlier refund.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deduplication {
    /// The refund cannot be repeated, because it consumes the only copy of its receipt. The store
    /// need not remember the refund.
    Unneeded,
    /// The refund can be repeated, because its receipt left the process. The store remembers the id
    /// of the charge until the window of the charge is over. A repeated refund changes nothing.
    ById,
}

/// An operation on one limit for one subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Charges `cost` units if every charge of the same call fits on its limit. A cost of 0 charges
    /// nothing and only reads the limit, like a peek.
    Charge {
        /// The units to charge.
        cost: Cost,
        /// The id of the charge. On a concurrency limit it is also the id of the permit.
        id: ChargeId,
    },
    /// Reads the limit and checks whether a charge of `cost` would fit, without changing the state.
    /// A replica that lags a little behind its primary may answer a peek.
    ///
    /// The reading's `admission` is that of a charge of `cost` which is the only charge of its
    /// call. The reading's `fits_again` equals `admission`, because a peek charges nothing.
    Peek {
        /// The units to check. A cost of 0 checks whether one unit is left.
        cost: Cost,
    },
    /// Returns `cost` units to the window that they were charged on, unless that window is over.
    Refund {
        /// The units to return. They must not exceed the charged units.
        cost: Cost,
        /// The position at which the charge was counted.
        position: ChargePosition,
        /// The id of the charge to refund.
        id: ChargeId,
        /// Whether the store must recognize a repetition of this refund.
        deduplication: Deduplication,
    },
    /// Charges `cost` units and reserves them until the actual cost is known and settled. An
    /// unsettled reservation expires at `until`, or at the longest time that the limit's
    /// [`ReservationTerms`](crate::ReservationTerms) allow. On a concurrency limit the reservation
    /// is a permit.
    Reserve {
        /// The units to reserve. A cost of 0 reads the limit and reserves nothing.
        cost: Cost,
        /// The id of the reservation. No other charge has the same id.
        id: ChargeId,
        /// The requested time of expiry.
        until: Timestamp,
    },
    /// Extends a reservation to `until`, as far as the limit allows, and never shortens the
    /// reservation. The reading's `admission` is [`Now`](crate::Admission::Now) if the reservation
    /// still existed. On a concurrency limit this operation renews the permit.
    Extend {
        /// The id of the charge that made the reservation.
        id: ChargeId,
        /// The position at which the reservation was counted.
        position: ChargePosition,
        /// The requested new time of expiry.
        until: Timestamp,
    },
    /// Replaces the reserved units by the actual cost and ends the reservation. The reading's
    /// `admission` is [`Now`](crate::Admission::Now) if the reservation still existed. The
    /// operation is idempotent.
    ///
    /// If the reserved units exceed `cost`, the difference returns to the window that it was
    /// charged on, unless that window is over. If `cost` exceeds the reserved units, the difference
    /// is charged now, as far as capacity and overdraft allow. A cost of 0 releases the
    /// reservation. On a concurrency limit, this operation releases the permit, whatever the cost.
    Settle {
        /// The id of the charge that made the reservation.
        id: ChargeId,
        /// The position at which the reservation was counted.
        position: ChargePosition,
        /// The actual cost.
        cost: Cost,
    },
    /// Extends a permit by one `permit_ttl` from now. Only concurrency limits have permits.
    Renew {
        /// The id of the charge that holds the permit.
        id: ChargeId,
    },
    /// Deletes the state: no units are used, and the next charge opens a new window.
    ///
    /// Receipts of the deleted charges are void. If windows or blocks are numbered by the clock and
    /// not by the first charge, a refund with such a receipt can still find its window or block.
    /// The refund then returns at most the units that were charged in that window or block since
    /// the reset.
    Reset,
}

impl Operation {
    /// Returns whether the operation never changes the state. A peek and a charge of 0 units are
    /// such operations.
    #[must_use]
    pub const fn is_read_only(&self) -> bool {
        match self {
            Self::Charge { cost, .. } | Self::Reserve { cost, .. } => cost.get() == 0,
            Self::Peek { .. } => true,
            Self::Refund { .. } | Self::Renew { .. } | Self::Reset => false,
            Self::Extend { .. } | Self::Settle { .. } => false,
        }
    }

    /// Returns the cost and the id of a charge or a reservation. Returns `None` for other
    /// operations.
    #[must_use]
    pub const fn as_charge(&self) -> Option<(Cost, ChargeId)> {
        match *self {
            Self::Charge { cost, id } | Self::Reserve { cost, id, .. } => Some((cost, id)),
            _ => None,
        }
    }

    /// Returns the cost of a charge, a reservation or a peek. The reading's `admission` states
    /// whether this cost fits. Returns [`Cost::PEEK`] for other operations.
    #[must_use]
    pub const fn cost(&self) -> Cost {
        match *self {
            Self::Charge { cost, .. } | Self::Reserve { cost, .. } | Self::Peek { cost } => cost,
            _ => Cost::PEEK,
        }
    }

    /// Returns the operation that undoes this charge or reservation, which was counted at
    /// `position`. A store need not detect a repetition of the returned operation. Returns `None`
    /// for a cost of 0 and for other operations, which need not be undone.
    #[must_use]
    pub const fn inverse(&self, position: ChargePosition) -> Option<Self> {
        match *self {
            Self::Charge { cost, id } if cost.get() > 0 => {
                Some(Self::Refund { cost, position, id, deduplication: Deduplication::Unneeded })
            }
            Self::Reserve { cost, id, .. } if cost.get() > 0 => {
                Some(Self::Settle { id, position, cost: Cost::PEEK })
            }
            _ => None,
        }
    }
}

/// One operation on one limit for one subject.
#[derive(Clone, Copy, Debug)]
pub struct Charge<'a> {
    /// The limit on which the operation is executed.
    pub limit: &'a Limit,
    /// The subject whose counter the operation reads or changes.
    pub subject: &'a Subject,
    /// The operation to execute.
    pub operation: Operation,
}
