//! The charges of a store call for a request.

use tollgate_core::charge::{ChargeId, ChargePosition};
use tollgate_core::policy::PlannedCharge;
use tollgate_core::{Admission, Readings};

use super::charge_mode::{Action, ChargeMode};
use crate::decision::Pending;
use crate::receipt::{Purpose, Receipt};

/// The charges and the reservations that a store call made for a request, and the charges that are
/// to be made later.
#[derive(Default)]
pub(super) struct ChargeRecord {
    /// The receipt of the charges. In [`ChargeMode::Reserve`], the receipt of the reservation.
    pub(super) receipt: Option<Receipt>,
    /// The receipt of the units that are reserved until the response reports its cost.
    pub(super) reserved: Option<Receipt>,
    /// The charges that are made later. Their limits were only peeked at.
    pub(super) pending: Option<Pending>,
}

impl ChargeRecord {
    /// Returns the record of the charges `planned`, for which the store returned `readings`. The
    /// record is empty if the store refused the charges.
    pub(super) fn of(
        id: ChargeId,
        mode: ChargeMode,
        planned: Vec<PlannedCharge>,
        readings: &Readings,
    ) -> Self {
        // The store makes all charges or none, independently of the results of the peeks.
        let mut read = planned.iter().zip(readings.iter());
        if !read.all(|(one, reading)| {
            mode.action(one) == Action::Peek || reading.admission == Admission::Now
        }) {
            return Self::default();
        }
        let is_charged = |planned: &PlannedCharge| mode.action(planned) == Action::Charge;
        let positions = readings.iter().map(|reading| reading.position);
        if planned.iter().all(is_charged) {
            // In the most frequent case every limit was charged, so there is nothing to separate.
            let receipt = receipt(id, Purpose::Charge, planned.into_iter().zip(positions));
            return Self { receipt, ..Self::default() };
        }
        let (mut charged, mut reserved, mut peeked) = (Vec::new(), Vec::new(), Vec::new());
        let mut held_until = None;
        for (planned, position) in planned.into_iter().zip(positions) {
            match mode.action(&planned) {
                Action::Peek => peeked.push(planned),
                Action::Charge => charged.push((planned, position)),
                Action::Reserve(until) => {
                    held_until = Some(until);
                    reserved.push((planned, position));
                }
            }
        }
        let reserved = held_until
            .and_then(|until| receipt(id, Purpose::Reservation(until), reserved.into_iter()));
        let receipt = receipt(id, Purpose::Charge, charged.into_iter());
        let pending = Pending::new(peeked);
        match mode {
            // The caller asked for the reservation, and will settle the reservation.
            ChargeMode::Reserve(_) => Self { receipt: reserved, reserved: None, pending },
            ChargeMode::Charge(_)
            | ChargeMode::Metered(..)
            | ChargeMode::Refused
            | ChargeMode::RefusedMetered
            | ChargeMode::Peek => Self { receipt, reserved, pending },
        }
    }

    /// Marks all charges as charges on limits that could not refuse the request.
    pub(super) fn not_enforced(self) -> Self {
        let not_enforced = |receipt: Option<Receipt>| receipt.map(Receipt::not_enforced);
        let (receipt, reserved) = (not_enforced(self.receipt), not_enforced(self.reserved));
        Self { receipt, reserved, ..self }
    }

    /// Returns whether the record has no charges, no reservations and no charges to make later.
    pub(super) const fn is_empty(&self) -> bool {
        self.receipt.is_none() && self.reserved.is_none() && self.pending.is_none()
    }
}

/// Returns the receipt of `charged` for the given `purpose`, or `None` if `charged` has no charge
/// with a cost.
fn receipt(
    id: ChargeId,
    purpose: Purpose,
    charged: impl Iterator<Item = (PlannedCharge, ChargePosition)>,
) -> Option<Receipt> {
    let receipt = Receipt::new(id, purpose, charged);
    (!receipt.is_empty()).then_some(receipt)
}
