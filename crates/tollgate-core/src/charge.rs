//! What a store is asked: a charge on one limit for one subject.

pub use crate::charge_id::ChargeId;
pub use crate::charge_position::ChargePosition;

use crate::cost::Cost;
use crate::key::Subject;
use crate::limit::Limit;
use crate::time::Timestamp;

/// Whether a refund may arrive twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deduplication {
    /// The caller asks once, because it gave its receipt away with the asking.
    Unneeded,
    /// The receipt left the process and may come again: the store remembers its id until what it
    /// was charged to is over, and a repetition changes nothing.
    ById,
}

/// What to do with a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Take `cost` units if every take of the same call fits. Cost 0 peeks.
    Charge {
        /// How much.
        cost: Cost,
        /// For whom: names the lease of a concurrency limit.
        id: ChargeId,
    },
    /// How it stands, and whether `cost` would fit: changes nothing, and may be answered by a copy
    /// that lags a little. The reading's `admission` is that of a take of `cost` that is alone in its
    /// call; `fits_again` is the same, for nothing was taken.
    Peek {
        /// How much would be taken. Cost 0 asks whether one unit is left.
        cost: Cost,
    },
    /// Give back `cost` units to where they were taken from, if that is not over.
    Refund {
        /// How much, at most what was taken.
        cost: Cost,
        /// Where it was put.
        position: ChargePosition,
        /// The charge that is undone.
        id: ChargeId,
        /// Whether this may arrive twice.
        deduplication: Deduplication,
    },
    /// Take `cost` units as a take does, and hold them until the real cost is known: then they are
    /// settled. A reservation that nobody settles ends at `until`, or as far from now as the
    /// limit's [`ReservationTerms`](crate::ReservationTerms) let it. Of a concurrency limit it is a lease.
    Reserve {
        /// How much. Cost 0 peeks, and holds nothing.
        cost: Cost,
        /// Names the reservation: no other charge has it.
        id: ChargeId,
        /// When it is to run out.
        until: Timestamp,
    },
    /// Put a reservation's end off to `until`, as far as the limit lets it; never nearer. The
    /// reading fits if it was still held. Of a concurrency limit it is a renewal.
    Extend {
        /// The charge that made it.
        id: ChargeId,
        /// Where it was put.
        position: ChargePosition,
        /// When it is to run out.
        until: Timestamp,
    },
    /// Put the real cost in the place of what a reservation holds, which ends with that. The reading
    /// fits if it was still held: repeated, it changes nothing more.
    ///
    /// What was held beyond `cost` is given back to where it was taken from, if that is not over.
    /// What `cost` is beyond it is taken now, as far as capacity and overdraft allow. Cost 0
    /// releases it. Of a concurrency limit it gives the lease back, whatever the cost.
    Settle {
        /// The charge that made it.
        id: ChargeId,
        /// Where it was put.
        position: ChargePosition,
        /// What it really cost.
        cost: Cost,
    },
    /// Put a lease's end off to one lease from now. Nothing but a concurrency limit has leases.
    Renew {
        /// The charge that holds the lease.
        id: ChargeId,
    },
    /// Start afresh: nothing is used any more, and the next take opens a window of its own.
    ///
    /// Receipts of what was forgotten are void. Where one is refunded all the same, into a window
    /// or block that the clock numbers and not the first charge, it gives back at most what was
    /// taken there since.
    Reset,
}

impl Operation {
    /// Whether it changes nothing, whatever the state: a look, or a take of no units.
    #[must_use]
    pub const fn is_read_only(&self) -> bool {
        match self {
            Self::Charge { cost, .. } | Self::Reserve { cost, .. } => cost.get() == 0,
            Self::Peek { .. } => true,
            Self::Refund { .. } | Self::Renew { .. } | Self::Reset => false,
            Self::Extend { .. } | Self::Settle { .. } => false,
        }
    }

    /// What it takes if all takes of its call fit, and for whom: of takes and reservations.
    #[must_use]
    pub const fn as_charge(&self) -> Option<(Cost, ChargeId)> {
        match *self {
            Self::Charge { cost, id } | Self::Reserve { cost, id, .. } => Some((cost, id)),
            _ => None,
        }
    }

    /// What the reading's fit is of: what it takes, or looks for. A peek where it is of nothing.
    #[must_use]
    pub const fn cost(&self) -> Cost {
        match *self {
            Self::Charge { cost, .. } | Self::Reserve { cost, .. } | Self::Peek { cost } => cost,
            _ => Cost::PEEK,
        }
    }

    /// What undoes a take or a reservation that was put at `position`, asked once; `None` where there
    /// is nothing to undo.
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

/// One limit, one subject, one ask.
#[derive(Clone, Copy, Debug)]
pub struct Charge<'a> {
    /// The limit.
    pub limit: &'a Limit,
    /// Who is limited.
    pub subject: &'a Subject,
    /// What to do.
    pub operation: Operation,
}
