//! The receipts of a trace, which later operations can use.

use tollgate_core::{ChargeId, ChargePosition, Cost, Deduplication, Operation, Timestamp};

use super::{Call, Take};

/// The admitted charges and reservations of a trace, in the order of the trace.
#[derive(Default)]
pub(super) struct Receipts {
    charges: Vec<Receipt>,
    reservations: Vec<Receipt>,
}

/// An admitted charge or reservation.
pub(super) struct Receipt {
    pub(super) id: ChargeId,
    pub(super) takes: Vec<(Take, ChargePosition)>,
    pub(super) refund: Option<Deduplication>,
}

impl Receipts {
    pub(super) fn add(&mut self, call: &Call, receipt: Receipt) {
        match call {
            Call::Reserve(..) => self.reservations.push(receipt),
            _ => self.charges.push(receipt),
        }
    }

    /// Invalidates the receipts of a subject that was reset.
    pub(super) fn forget(&mut self, take: Take) {
        let is_other = |of: &Take| (of.limit, of.subject) != (take.limit, take.subject);
        let all = self.charges.iter_mut().chain(&mut self.reservations);
        all.for_each(|receipt| receipt.takes.retain(|(of, _)| is_other(of)));
    }

    pub(super) fn refunds(
        &mut self,
        back: usize,
        deduplication: Deduplication,
    ) -> Vec<(Take, Operation)> {
        let Some(receipt) = self.charges.iter_mut().rev().nth(back) else { return Vec::new() };
        // A refund without deduplication consumes its receipt, so the refund cannot be repeated.
        let deduplication = match receipt.refund {
            None => *receipt.refund.insert(deduplication),
            Some(Deduplication::ById) => Deduplication::ById,
            Some(Deduplication::Unneeded) => return Vec::new(),
        };
        let id = receipt.id;
        receipt.asks(|take, position| Operation::Refund {
            cost: take.cost,
            position,
            id,
            deduplication,
        })
    }

    pub(super) fn renewals(&self, back: usize) -> Vec<(Take, Operation)> {
        let Some(receipt) = self.charges.iter().rev().nth(back) else { return Vec::new() };
        receipt.takes.iter().map(|(take, _)| (*take, Operation::Renew { id: receipt.id })).collect()
    }

    pub(super) fn extensions(&self, back: usize, until: Timestamp) -> Vec<(Take, Operation)> {
        let Some(receipt) = self.reservations.iter().rev().nth(back) else { return Vec::new() };
        receipt.asks(|_, position| Operation::Extend { id: receipt.id, position, until })
    }

    pub(super) fn settlements(&self, back: usize, percent: u64) -> Vec<(Take, Operation)> {
        let Some(receipt) = self.reservations.iter().rev().nth(back) else { return Vec::new() };
        let id = receipt.id;
        let real = |cost: Cost| {
            let units = u128::from(cost.get()) * u128::from(percent) / 100;
            Cost::up_to(u64::try_from(units).unwrap_or(u64::MAX))
        };
        receipt.asks(|take, position| Operation::Settle { id, position, cost: real(take.cost) })
    }
}

impl Receipt {
    /// Returns an operation for each part of the charge with a cost that is not zero.
    fn asks(&self, ask: impl Fn(&Take, ChargePosition) -> Operation) -> Vec<(Take, Operation)> {
        let cost_anything = self.takes.iter().filter(|(take, _)| take.cost != Cost::PEEK);
        cost_anything.map(|(take, position)| (*take, ask(take, *position))).collect()
    }
}
