//! The input of a store: an operation on one limit for one subject.

pub use crate::charge_id::ChargeId;
pub use crate::charge_position::ChargePosition;

use crate::cost::Cost;
use crate::key::Subject;
use crate::limit::Limit;
use crate::time::Timestamp;

/// Whether a refund may arrive twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deduplication {
    /// A repetition is impossible, because the refund consumes the caller's receipt.
    Unneeded,
    /// The receipt left the process and may arrive again. The store remembers its id until the
    /// charged window is over, and a repetition changes nothing.
    ById,
}

/// An operation on a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Charges `cost` units if every charge of the same call fits. Cost 0 peeks.
    Charge {
        /// The units to charge.
        cost: Cost,
        /// The id of the charge. On a concurrency limit it is also the id of the permit.
        id: ChargeId,
    },
    /// Reads the limit and checks whether `cost` would fit. A peek changes nothing, so the store
    /// can read from a replica that lags a little. The reading's `admission` is that of a charge of
    /// `cost` that is alone in its call. `fits_again` equals `admission`, because nothing is
    /// charged.
    Peek {
        /// The units to check. Cost 0 checks whether one unit is left.
        cost: Cost,
    },
    /// Returns `cost` units to the window that they were charged on, unless that window is over.
    Refund {
        /// The units to return, at most the charged units.
        cost: Cost,
        /// The position at which the charge was counted.
        position: ChargePosition,
        /// The id of the charge to refund.
        id: ChargeId,
        /// Whether this refund may arrive twice.
        deduplication: Deduplication,
    },
    /// Charges `cost` units and reserves them until the actual cost is known and settled. An
    /// unsettled reservation expires at `until`, or at the longest time that the limit's
    /// [`ReservationTerms`](crate::ReservationTerms) allow. On a concurrency limit the reservation
    /// is a permit.
    Reserve {
        /// The units to reserve. Cost 0 peeks and reserves nothing.
        cost: Cost,
        /// The id of the reservation, which no other charge has.
        id: ChargeId,
        /// The requested expiry.
        until: Timestamp,
    },
    /// Extends a reservation to `until`, as far as the limit allows, and never shortens one. The
    /// reading's `admission` is [`Now`](crate::Admission::Now) if the reservation still existed. On
    /// a concurrency limit this operation renews the permit.
    Extend {
        /// The id of the charge that made the reservation.
        id: ChargeId,
        /// The position at which the reservation was counted.
        position: ChargePosition,
        /// The requested expiry.
        until: Timestamp,
    },
    /// Replaces the reserved units by the actual cost and ends the reservation. The reading's
    /// `admission` is [`Now`](crate::Admission::Now) if the reservation still existed. The
    /// operation is idempotent.
    ///
    /// If the reserved units exceed `cost`, the difference returns to the window that it was
    /// charged on, unless that window is over. If `cost` exceeds the reserved units, the difference
    /// is charged now, as far as capacity and overdraft allow. Cost 0 releases the reservation. On
    /// a concurrency limit this operation releases the permit, whatever the cost.
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
    /// Returns whether the operation changes nothing, whatever the state: a peek, or a charge of 0
    /// units.
    #[must_use]
    pub const fn is_read_only(&self) -> bool {
        match self {
            Self::Charge { cost, .. } | Self::Reserve { cost, .. } => cost.get() == 0,
            Self::Peek { .. } => true,
            Self::Refund { .. } | Self::Renew { .. } | Self::Reset => false,
            Self::Extend { .. } | Self::Settle { .. } => false,
        }
    }

    /// Returns the cost and the id of a charge or a reservation; `None` for other operations.
    #[must_use]
    pub const fn as_charge(&self) -> Option<(Cost, ChargeId)> {
        match *self {
            Self::Charge { cost, id } | Self::Reserve { cost, id, .. } => Some((cost, id)),
            _ => None,
        }
    }

    /// Returns the cost for which the reading's admission is valid: the units to charge or to
    /// check. Returns [`Cost::PEEK`] for other operations.
    #[must_use]
    pub const fn cost(&self) -> Cost {
        match *self {
            Self::Charge { cost, .. } | Self::Reserve { cost, .. } | Self::Peek { cost } => cost,
            _ => Cost::PEEK,
        }
    }

    /// Returns the refund of a charge or a reservation that was counted at `position`, without
    /// deduplication; `None` if there is nothing to refund.
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
    /// The limit.
    pub limit: &'a Limit,
    /// The subject.
    pub subject: &'a Subject,
    /// The operation.
    pub operation: Operation,
}
