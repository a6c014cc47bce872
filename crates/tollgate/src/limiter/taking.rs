//! What is done with the limits of a request.

use tollgate_core::charge::{Ask, ChargeId};
use tollgate_core::policy::{ChargeOn, Planned};
use tollgate_core::{Limit, Timestamp};

use super::decision::is_looked_at;
use crate::receipt::Purpose;

/// What is done with the limits of a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Taking {
    /// They are charged, or looked at until the answer is known.
    Charge(ChargeOn),
    /// They are reserved until then.
    Reservation(Timestamp),
}

impl Taking {
    /// The same for rules in shadow mode, which never wait for the answer.
    pub(super) const fn on_arrival(self) -> Self {
        match self {
            Self::Charge(_) => Self::Charge(ChargeOn::Arrival),
            Self::Reservation(_) => self,
        }
    }

    pub(super) fn ask(self, planned: &Planned, id: ChargeId) -> Ask {
        let cost = planned.cost;
        match self {
            Self::Reservation(until) => Ask::Reserve { cost, id, until },
            Self::Charge(_) if self.looks_at(&planned.limit) => Ask::Look { cost },
            Self::Charge(_) => Ask::Take { cost, id },
        }
    }

    /// Whether `limit` is only looked at.
    pub(super) fn looks_at(self, limit: &Limit) -> bool {
        match self {
            Self::Charge(charge) => is_looked_at(charge, limit),
            Self::Reservation(_) => false,
        }
    }

    pub(super) const fn purpose(self) -> Purpose {
        match self {
            Self::Charge(_) => Purpose::Charge,
            Self::Reservation(until) => Purpose::Reservation(until),
        }
    }
}
