//! What was done for a request, and what is still to be done.

use tollgate_core::charge::{ChargeId, ChargePosition};
use tollgate_core::policy::PlannedCharge;
use tollgate_core::{Admission, Readings};

use super::Pending;
use super::taking::{Taking, Way};
use crate::receipt::{Purpose, Receipt};

/// What was done for a request, and what is still to be done.
#[derive(Default)]
pub(super) struct Proof {
    /// What was charged; what was reserved where the caller asked for a reservation.
    pub(super) receipt: Option<Receipt>,
    /// What was reserved until the answer tells its cost.
    pub(super) reserved: Option<Receipt>,
    /// What was only looked at.
    pub(super) pending: Option<Pending>,
}

impl Proof {
    /// What `readings` say of what was `planned`; nothing if that was refused.
    pub(super) fn of(
        id: ChargeId,
        taking: Taking,
        planned: Vec<PlannedCharge>,
        readings: &Readings,
    ) -> Self {
        // All or nothing by itself, whatever the looks saw.
        let mut read = planned.iter().zip(readings.iter());
        if !read.all(|(one, reading)| {
            taking.way_of(one) == Way::Look || reading.admission == Admission::Now
        }) {
            return Self::default();
        }
        let is_taken = |planned: &PlannedCharge| taking.way_of(planned) == Way::Take;
        let marks = readings.iter().map(|reading| reading.position);
        if planned.iter().all(is_taken) {
            // Most are: nothing is to be parted.
            let receipt = receipt(id, Purpose::Charge, planned.into_iter().zip(marks));
            return Self { receipt, ..Self::default() };
        }
        let (mut taken, mut reserved, mut looked_at) = (Vec::new(), Vec::new(), Vec::new());
        let mut held_until = None;
        for (planned, position) in planned.into_iter().zip(marks) {
            match taking.way_of(&planned) {
                Way::Look => looked_at.push(planned),
                Way::Take => taken.push((planned, position)),
                Way::Reserve(until) => {
                    held_until = Some(until);
                    reserved.push((planned, position));
                }
            }
        }
        let reserved = held_until
            .and_then(|until| receipt(id, Purpose::Reservation(until), reserved.into_iter()));
        let receipt = receipt(id, Purpose::Charge, taken.into_iter());
        let pending = Pending::new(looked_at);
        match taking {
            // The caller asked for it, and settles it.
            Taking::Reservation(_) => Self { receipt: reserved, reserved: None, pending },
            Taking::Charge(_) | Taking::Metered(..) => Self { receipt, reserved, pending },
        }
    }

    /// Whether nothing was done, and nothing is to be.
    pub(super) const fn is_none(&self) -> bool {
        self.receipt.is_none() && self.reserved.is_none() && self.pending.is_none()
    }

    /// What two plans of the same request prove; only the first waits for the answer.
    pub(super) fn joined(self, other: Self) -> Self {
        Self {
            receipt: Receipt::joined(self.receipt, other.receipt),
            reserved: Receipt::joined(self.reserved, other.reserved),
            pending: self.pending,
        }
    }
}

/// Proof of what was `charged`, if anything was.
fn receipt(
    id: ChargeId,
    purpose: Purpose,
    charged: impl Iterator<Item = (PlannedCharge, ChargePosition)>,
) -> Option<Receipt> {
    let receipt = Receipt::new(id, purpose, charged);
    (!receipt.is_empty()).then_some(receipt)
}
