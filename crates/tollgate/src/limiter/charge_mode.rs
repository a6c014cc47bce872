//! How a decision applies its charges: by charging, peeking at, or reserving units of each limit.

use tollgate_core::charge::{ChargeId, Operation};
use tollgate_core::policy::{ChargeOn, PlannedCharge, RuleMode};
use tollgate_core::time::MAX_WINDOW;
use tollgate_core::{Millis, Timestamp};

use crate::decision::is_planned_later;
use crate::receipt::{has_permits, reservation_id};

/// The limits on which a decision reserves units until the real cost of the request is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reservation {
    /// The decision reserves no units. On a limit with a cost that the response reports, the
    /// decision charges the full estimate at once: the amount that [`Metered`](Self::Metered) would
    /// reserve.
    #[default]
    Nothing,
    /// The decision reserves units on every limit with a cost that the response reports, and
    /// charges the other limits. The reserved amount is
    /// [`ReservationTerms::max`](tollgate_core::ReservationTerms::max). The caller
    /// [extends](super::Limiter::hold_on) and [settles](super::Limiter::settle_metered_at) the
    /// reservation.
    Metered,
    /// The decision reserves units on every limit when the request arrives. The reservation lasts
    /// for the given time, or for the longest time that the limit allows if that is shorter.
    All(Millis),
}

/// How one decision applies its charges.
#[derive(Clone, Copy, Debug)]
pub(super) enum ChargeMode {
    /// Charges every limit. If the rules charge on completion, the decision only peeks at the
    /// limits.
    Charge(ChargeOn),
    /// Reserves units of every limit until the given time.
    Reserve(Timestamp),
    /// Reserves units of the limits with a cost that the response reports, until the given time.
    /// Charges the other limits as [`ChargeMode::Charge`] does.
    Metered(ChargeOn, Timestamp),
    /// Charges the limits of a refused request that did not refuse the request. The request does not
    /// run, so nobody would release its permits. Therefore peeks at concurrency limits.
    Refused,
    /// As [`ChargeMode::Refused`], for a decision that reserves units of the limits with a cost that
    /// the response reports. The refused request has no such cost, so the decision peeks at these
    /// limits too.
    RefusedMetered,
    /// Peeks at every limit.
    Peek,
}

/// The kind of store operation for one charge: charging, peeking or reserving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Charge,
    Peek,
    Reserve(Timestamp),
}

impl ChargeMode {
    /// Returns the mode of a decision that is made at `now`. `reservation` states on which limits
    /// the decision reserves units, and `charge` states when the rules charge the other limits.
    pub(super) const fn new(reservation: Reservation, charge: ChargeOn, now: Timestamp) -> Self {
        match reservation {
            Reservation::Nothing => Self::Charge(charge),
            Reservation::Metered => Self::Metered(charge, now.after(MAX_WINDOW)),
            Reservation::All(hold_for) => Self::Reserve(now.after(hold_for)),
        }
    }

    /// Returns the mode for charges that never reject a request. Such charges are made on arrival,
    /// even if the rules charge on completion.
    pub(super) const fn on_arrival(self) -> Self {
        match self {
            Self::Charge(_) => Self::Charge(ChargeOn::Arrival),
            Self::Metered(_, until) => Self::Metered(ChargeOn::Arrival, until),
            Self::Reserve(_) | Self::Refused | Self::RefusedMetered | Self::Peek => self,
        }
    }

    /// Returns the mode for charges that never reject a request, if another limit refused the
    /// request.
    pub(super) const fn refused(self) -> Self {
        match self {
            Self::Charge(_) | Self::Refused => Self::Refused,
            Self::Metered(..) | Self::RefusedMetered => Self::RefusedMetered,
            Self::Reserve(_) | Self::Peek => Self::Peek,
        }
    }

    /// Returns the operation to send to the store for `planned`, under the charge id `id`. `mode`
    /// states whether the charge can reject the request.
    pub(super) fn operation(
        self,
        planned: &PlannedCharge,
        id: ChargeId,
        mode: RuleMode,
    ) -> Operation {
        let cost = planned.cost;
        match self.action(planned) {
            Action::Reserve(until) => {
                let id = reservation_id(id, &planned.limit, mode == RuleMode::Enforce);
                Operation::Reserve { cost, id, until }
            }
            Action::Peek => Operation::Peek { cost },
            Action::Charge => Operation::Charge { cost, id },
        }
    }

    /// Returns the kind of store operation for `planned`: charging, peeking or reserving.
    pub(super) fn action(self, planned: &PlannedCharge) -> Action {
        match self {
            Self::Reserve(until) => Action::Reserve(until),
            Self::Metered(_, until) if !planned.estimates.is_empty() => Action::Reserve(until),
            Self::Charge(charge) | Self::Metered(charge, _) => {
                if is_planned_later(charge, planned) { Action::Peek } else { Action::Charge }
            }
            Self::RefusedMetered if !planned.estimates.is_empty() => Action::Peek,
            Self::Refused | Self::RefusedMetered if has_permits(&planned.limit) => Action::Peek,
            Self::Refused | Self::RefusedMetered => Action::Charge,
            Self::Peek => Action::Peek,
        }
    }
}
