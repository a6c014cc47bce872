//! How the charges of a decision are applied: charged, peeked at, or reserved.

use tollgate_core::charge::{ChargeId, Operation};
use tollgate_core::policy::{ChargeOn, PlannedCharge};
use tollgate_core::time::MAX_WINDOW;
use tollgate_core::{Millis, Timestamp};

use crate::decision::is_planned_later;

/// The limits that a decision reserves until the real cost of the request is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reservation {
    /// None. If the response reports the cost of a limit, the limit is charged the amount that
    /// would be reserved.
    #[default]
    Nothing,
    /// Reserves the limits whose cost the response reports, each for its
    /// [`ReservationTerms::max`](tollgate_core::ReservationTerms::max), and charges the other
    /// limits. The caller [extends](super::Limiter::hold_on) and
    /// [settles](super::Limiter::settle_metered_at) the reservation.
    Metered,
    /// Every limit, on arrival, for this time or as long as the limit allows.
    All(Millis),
}

/// How a decision applies its charges.
#[derive(Clone, Copy, Debug)]
pub(super) enum ChargeMode {
    /// Charges every limit, or only peeks at it until the response is known.
    Charge(ChargeOn),
    /// Reserves every limit until that time.
    Reserve(Timestamp),
    /// Reserves the limits with a cost that the response reports, until that time; charges the
    /// others.
    Metered(ChargeOn, Timestamp),
}

/// The store's operation for one charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Take,
    Look,
    Reserve(Timestamp),
}

impl ChargeMode {
    /// Returns the mode of a decision at `now`.
    pub(super) const fn new(reservation: Reservation, charge: ChargeOn, now: Timestamp) -> Self {
        match reservation {
            Reservation::Nothing => Self::Charge(charge),
            Reservation::Metered => Self::Metered(charge, now.after(MAX_WINDOW)),
            Reservation::All(hold_for) => Self::Reserve(now.after(hold_for)),
        }
    }

    /// Returns the mode of charges that never reject: they do not wait for the response.
    pub(super) const fn on_arrival(self) -> Self {
        match self {
            Self::Charge(_) => Self::Charge(ChargeOn::Arrival),
            Self::Metered(_, until) => Self::Metered(ChargeOn::Arrival, until),
            Self::Reserve(_) => self,
        }
    }

    /// Returns the operation to send to the store for `planned`.
    pub(super) fn ask(self, planned: &PlannedCharge, id: ChargeId) -> Operation {
        let cost = planned.cost;
        match self.action(planned) {
            Action::Reserve(until) => Operation::Reserve { cost, id, until },
            Action::Look => Operation::Peek { cost },
            Action::Take => Operation::Charge { cost, id },
        }
    }

    /// Returns whether the store charges, peeks at or reserves `planned`.
    pub(super) fn action(self, planned: &PlannedCharge) -> Action {
        match self {
            Self::Reserve(until) => Action::Reserve(until),
            Self::Metered(_, until) if !planned.estimates.is_empty() => Action::Reserve(until),
            Self::Charge(charge) | Self::Metered(charge, _) => {
                if is_planned_later(charge, planned) { Action::Look } else { Action::Take }
            }
        }
    }
}
