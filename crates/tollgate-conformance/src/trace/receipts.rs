//! What a trace was admitted for, and can be asked about again.

use tollgate_core::{Ask, ChargeId, Cost, Mark, Repeats, Timestamp};

use super::{Call, Take};

/// The admitted charges and reservations of a trace, each in their order.
#[derive(Default)]
pub(super) struct Receipts {
    charges: Vec<Receipt>,
    reservations: Vec<Receipt>,
}

/// An admitted charge or reservation.
pub(super) struct Receipt {
    pub(super) id: ChargeId,
    pub(super) takes: Vec<(Take, Mark)>,
    pub(super) refund: Option<Repeats>,
}

impl Receipts {
    pub(super) fn add(&mut self, call: &Call, receipt: Receipt) {
        match call {
            Call::Reserve(..) => self.reservations.push(receipt),
            _ => self.charges.push(receipt),
        }
    }

    /// Voids what was forgotten of them.
    pub(super) fn forget(&mut self, take: Take) {
        let is_other = |of: &Take| (of.limit, of.subject) != (take.limit, take.subject);
        let all = self.charges.iter_mut().chain(&mut self.reservations);
        all.for_each(|receipt| receipt.takes.retain(|(of, _)| is_other(of)));
    }

    pub(super) fn refunds(&mut self, back: usize, repeats: Repeats) -> Vec<(Take, Ask)> {
        let Some(receipt) = self.charges.iter_mut().rev().nth(back) else { return Vec::new() };
        // Whoever gave its receipt away with the asking cannot ask again.
        let repeats = match receipt.refund {
            None => *receipt.refund.insert(repeats),
            Some(Repeats::Guarded) => Repeats::Guarded,
            Some(Repeats::Impossible) => return Vec::new(),
        };
        let id = receipt.id;
        receipt.asks(|take, mark| Ask::Refund { cost: take.cost, mark, id, repeats })
    }

    pub(super) fn renewals(&self, back: usize) -> Vec<(Take, Ask)> {
        let Some(receipt) = self.charges.iter().rev().nth(back) else { return Vec::new() };
        receipt.takes.iter().map(|(take, _)| (*take, Ask::Renew { id: receipt.id })).collect()
    }

    pub(super) fn extensions(&self, back: usize, until: Timestamp) -> Vec<(Take, Ask)> {
        let Some(receipt) = self.reservations.iter().rev().nth(back) else { return Vec::new() };
        receipt.asks(|_, mark| Ask::Extend { id: receipt.id, mark, until })
    }

    pub(super) fn settlements(&self, back: usize, percent: u64) -> Vec<(Take, Ask)> {
        let Some(receipt) = self.reservations.iter().rev().nth(back) else { return Vec::new() };
        let id = receipt.id;
        let real = |cost: Cost| {
            let units = u128::from(cost.get()) * u128::from(percent) / 100;
            Cost::up_to(u64::try_from(units).unwrap_or(u64::MAX))
        };
        receipt.asks(|take, mark| Ask::Settle { id, mark, cost: real(take.cost) })
    }
}

impl Receipt {
    /// What is asked of each part that cost anything.
    fn asks(&self, ask: impl Fn(&Take, Mark) -> Ask) -> Vec<(Take, Ask)> {
        let cost_anything = self.takes.iter().filter(|(take, _)| take.cost != Cost::PEEK);
        cost_anything.map(|(take, mark)| (*take, ask(take, *mark))).collect()
    }
}
