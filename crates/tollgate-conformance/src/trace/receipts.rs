//! The receipts of a trace, which later operations can use.

use tollgate_core::{ChargeId, ChargePosition, Cost, Deduplication, Limit, Operation, Timestamp};

use super::{Call, LimitCharge};

/// The admitted charges and reservations of a trace, in the order of the trace.
#[derive(Default)]
pub(super) struct Receipts {
    charges: Vec<Receipt>,
    reservations: Vec<Receipt>,
}

/// An admitted charge or reservation.
pub(super) struct Receipt {
    pub(super) id: ChargeId,
    pub(super) charges: Vec<(LimitCharge, ChargePosition)>,
    pub(super) refund: Option<Deduplication>,
}

impl Receipts {
    pub(super) fn add(&mut self, call: &Call, receipt: Receipt) {
        match call {
            Call::Reserve(..) => self.reservations.push(receipt),
            _ => self.charges.push(receipt),
        }
    }

    /// Invalidates the receipts of a subject that was reset, for all limits of the trace that share
    /// the counters.
    pub(super) fn forget(&mut self, charge: LimitCharge, limits: &[Limit]) {
        let counters = |of: LimitCharge| (limits[of.limit].name(), of.subject);
        let is_other = |of: &LimitCharge| counters(*of) != counters(charge);
        let all = self.charges.iter_mut().chain(&mut self.reservations);
        all.for_each(|receipt| receipt.charges.retain(|(of, _)| is_other(of)));
    }

    pub(super) fn refunds(
        &mut self,
        back: usize,
        deduplication: Deduplication,
    ) -> Vec<(LimitCharge, Operation)> {
        let Some(receipt) = self.charges.iter_mut().rev().nth(back) else { return Vec::new() };
        // A refund without deduplication consumes its receipt, so the refund cannot be repeated.
        let deduplication = match receipt.refund {
            None => *receipt.refund.insert(deduplication),
            Some(Deduplication::ById) => Deduplication::ById,
            Some(Deduplication::Unneeded) => return Vec::new(),
        };
        let id = receipt.id;
        receipt.operations(|charge, position| Operation::Refund {
            cost: charge.cost,
            position,
            id,
            deduplication,
        })
    }

    pub(super) fn renewals(&self, back: usize) -> Vec<(LimitCharge, Operation)> {
        let Some(receipt) = self.charges.iter().rev().nth(back) else { return Vec::new() };
        receipt
            .charges
            .iter()
            .map(|(charge, _)| (*charge, Operation::Renew { id: receipt.id }))
            .collect()
    }

    pub(super) fn extensions(
        &self,
        back: usize,
        until: Timestamp,
    ) -> Vec<(LimitCharge, Operation)> {
        let Some(receipt) = self.reservations.iter().rev().nth(back) else { return Vec::new() };
        receipt.operations(|_, position| Operation::Extend { id: receipt.id, position, until })
    }

    pub(super) fn settlements(&self, back: usize, percent: u64) -> Vec<(LimitCharge, Operation)> {
        let Some(receipt) = self.reservations.iter().rev().nth(back) else { return Vec::new() };
        let id = receipt.id;
        let real = |cost: Cost| {
            let units = u128::from(cost.get()) * u128::from(percent) / 100;
            Cost::up_to(u64::try_from(units).unwrap_or(u64::MAX))
        };
        receipt.operations(|charge, position| Operation::Settle {
            id,
            position,
            cost: real(charge.cost),
        })
    }
}

impl Receipt {
    /// Returns an operation for each part of the charge with a cost that is not zero.
    fn operations(
        &self,
        operation: impl Fn(&LimitCharge, ChargePosition) -> Operation,
    ) -> Vec<(LimitCharge, Operation)> {
        let cost_anything = self.charges.iter().filter(|(charge, _)| charge.cost != Cost::PEEK);
        cost_anything.map(|(charge, position)| (*charge, operation(charge, *position))).collect()
    }
}
