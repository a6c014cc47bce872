//! What is done with the limits of a request.

use tollgate_core::charge::{ChargeId, Operation};
use tollgate_core::policy::{ChargeOn, PlannedCharge};
use tollgate_core::{Limit, Timestamp};

/// What is done with the limits of a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Taking {
    /// They are charged, or looked at until the answer is known.
    Charge(ChargeOn),
    /// They are reserved until then.
    Reservation(Timestamp),
    /// Those whose cost the answer tells are reserved until then; the others are charged.
    Metered(ChargeOn, Timestamp),
}

/// What is done with one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Take,
    Look,
    Reserve(Timestamp),
}

impl Taking {
    /// The same for rules in shadow mode, which never wait for the answer.
    pub(super) const fn on_arrival(self) -> Self {
        match self {
            Self::Charge(_) => Self::Charge(ChargeOn::Arrival),
            Self::Metered(_, until) => Self::Metered(ChargeOn::Arrival, until),
            Self::Reservation(_) => self,
        }
    }

    pub(super) fn operation(self, planned: &PlannedCharge, id: ChargeId) -> Operation {
        let cost = planned.cost;
        match self.way_of(planned) {
            Way::Reserve(until) => Operation::Reserve { cost, id, until },
            Way::Look => Operation::Peek { cost },
            Way::Take => Operation::Charge { cost, id },
        }
    }

    pub(super) fn way_of(self, planned: &PlannedCharge) -> Way {
        match self {
            Self::Reservation(until) => Way::Reserve(until),
            Self::Metered(_, until) if !planned.estimates.is_empty() => Way::Reserve(until),
            Self::Charge(charge) | Self::Metered(charge, _) => {
                if is_looked_at(charge, &planned.limit) { Way::Look } else { Way::Take }
            }
        }
    }
}

/// Whether `limit` is only looked at when the request arrives.
pub(super) fn is_looked_at(charge: ChargeOn, limit: &Limit) -> bool {
    charge == ChargeOn::Completion && !limit.is_charged_on_arrival()
}
