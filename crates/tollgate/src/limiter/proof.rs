//! What was done for a request, and what is still to be done.

use tollgate_core::charge::ChargeId;
use tollgate_core::policy::Planned;
use tollgate_core::{Fit, Readings};

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
        planned: Vec<Planned>,
        readings: &Readings,
    ) -> Self {
        // All or nothing by itself, whatever the looks saw.
        let mut read = planned.iter().zip(readings.iter());
        if !read.all(|(one, reading)| taking.way_of(one) == Way::Look || reading.fit == Fit::Now) {
            return Self::default();
        }
        let (mut taken, mut reserved, mut looked_at) = (Vec::new(), Vec::new(), Vec::new());
        let mut held_until = None;
        for (planned, reading) in planned.into_iter().zip(readings.iter()) {
            match taking.way_of(&planned) {
                Way::Look => looked_at.push(planned),
                Way::Take => taken.push((planned, reading.mark)),
                Way::Reserve(until) => {
                    held_until = Some(until);
                    reserved.push((planned, reading.mark));
                }
            }
        }
        let proof = |purpose, charged: Vec<_>| {
            let receipt = Receipt::new(id, purpose, charged.into_iter());
            (!receipt.is_empty()).then_some(receipt)
        };
        let receipt = proof(Purpose::Charge, taken);
        let reserved = held_until.and_then(|until| proof(Purpose::Reservation(until), reserved));
        let pending = Pending::new(looked_at);
        match taking {
            // The caller asked for it, and settles it.
            Taking::Reservation(_) => Self { receipt: reserved, reserved: None, pending },
            Taking::Charge(_) | Taking::Metered(..) => Self { receipt, reserved, pending },
        }
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
