//! The charges and reservations that a store call made for a request, and the charges still to be
//! made.

use tollgate_core::charge::{ChargeId, ChargePosition};
use tollgate_core::policy::PlannedCharge;
use tollgate_core::{Admission, Readings};

use super::charge_mode::{Action, ChargeMode};
use crate::decision::Pending;
use crate::receipt::{Purpose, Receipt};

/// The charges and reservations that a store call made for a request, and the charges still to be
/// made.
#[derive(Default)]
pub(super) struct ChargeRecord {
    /// The receipt of the charges; in [`ChargeMode::Reserve`] of the reservation.
    pub(super) receipt: Option<Receipt>,
    /// The receipt of the units that are reserved until the response reports its cost.
    pub(super) reserved: Option<Receipt>,
    /// The charges that were only peeked at.
    pub(super) pending: Option<Pending>,
}

impl ChargeRecord {
    /// Returns the record of the charges `planned`, for which the store returned `readings`. Empty
    /// if the store refused them.
    pub(super) fn of(
        id: ChargeId,
        mode: ChargeMode,
        planned: Vec<PlannedCharge>,
        readings: &Readings,
    ) -> Self {
        // The store makes all charges or none, whatever the results of the peeks.
        let mut read = planned.iter().zip(readings.iter());
        if !read.all(|(one, reading)| {
            mode.action(one) == Action::Look || reading.admission == Admission::Now
        }) {
            return Self::default();
        }
        let is_taken = |planned: &PlannedCharge| mode.action(planned) == Action::Take;
        let marks = readings.iter().map(|reading| reading.position);
        if planned.iter().all(is_taken) {
            // The common case: nothing to separate.
            let receipt = receipt(id, Purpose::Charge, planned.into_iter().zip(marks));
            return Self { receipt, ..Self::default() };
        }
        let (mut taken, mut reserved, mut looked_at) = (Vec::new(), Vec::new(), Vec::new());
        let mut held_until = None;
        for (planned, position) in planned.into_iter().zip(marks) {
            match mode.action(&planned) {
                Action::Look => looked_at.push(planned),
                Action::Take => taken.push((planned, position)),
                Action::Reserve(until) => {
                    held_until = Some(until);
                    reserved.push((planned, position));
                }
            }
        }
        let reserved = held_until
            .and_then(|until| receipt(id, Purpose::Reservation(until), reserved.into_iter()));
        let receipt = receipt(id, Purpose::Charge, taken.into_iter());
        let pending = Pending::new(looked_at);
        match mode {
            // The caller requested the reservation and settles it.
            ChargeMode::Reserve(_) => Self { receipt: reserved, reserved: None, pending },
            ChargeMode::Charge(_) | ChargeMode::Metered(..) => Self { receipt, reserved, pending },
        }
    }

    /// Whether nothing was charged or reserved, and nothing is still to be charged.
    pub(super) const fn is_empty(&self) -> bool {
        self.receipt.is_none() && self.reserved.is_none() && self.pending.is_none()
    }
}

/// Returns the receipt of `charged`; `None` if nothing was charged.
fn receipt(
    id: ChargeId,
    purpose: Purpose,
    charged: impl Iterator<Item = (PlannedCharge, ChargePosition)>,
) -> Option<Receipt> {
    let receipt = Receipt::new(id, purpose, charged);
    (!receipt.is_empty()).then_some(receipt)
}
