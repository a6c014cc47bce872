//! Unpaid costs: costs that a settlement could not charge because the limit was full. The limiter
//! charges them later.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use tollgate_core::charge::{Charge, Operation};
use tollgate_core::policy::PlannedCharge;
use tollgate_core::{Admission, Cost, Limit, Millis, Reading, Store, Subject, Timestamp};

use super::Limiter;
use crate::receipt::{Receipt, new_charge_id};

/// The most pairs of a limit and a subject for which a node carries over unpaid costs. A further
/// pair replaces the oldest pair.
pub const MAX_UNPAID: usize = 4_096;

/// The lifetime of the reservation with which an unpaid cost is charged. The reservation expires
/// after this time if its settlement is lost.
const HOLD: Millis = Millis::from_secs(1);

/// The unpaid costs of this node, by limit and subject.
///
/// A client can reserve less than its request costs. The settlement charges as much of the rest as
/// the limit and its overdraft allow. The remaining cost is charged before the next decisions on
/// the same subject, in one window after another, until the whole cost is paid.
#[derive(Debug, Default)]
pub(super) struct UnpaidCosts {
    table: Mutex<HashMap<Key, Unpaid>>,
    is_used: AtomicBool,
}

/// The name of a limit, and a subject of this limit.
type Key = (Box<str>, Subject);

#[derive(Clone, Copy, Debug)]
struct Unpaid {
    units: u64,
    since: Timestamp,
}

/// An unpaid cost that was removed from the table to be charged. When this value is dropped, the
/// units that were not charged are unpaid again. A client that disconnects during the charge
/// therefore does not lose its unpaid cost.
struct Charging<'l> {
    costs: &'l UnpaidCosts,
    limit: &'l Limit,
    subject: &'l Subject,
    unpaid: Unpaid,
}

impl Drop for Charging<'_> {
    fn drop(&mut self) {
        if self.unpaid.units > 0 {
            self.costs.add(self.limit, self.subject, self.unpaid);
        }
    }
}

impl UnpaidCosts {
    /// Returns whether no subject has unpaid costs. This check is one atomic load.
    pub(super) fn is_empty(&self) -> bool {
        !self.is_used.load(Ordering::Acquire)
    }

    fn add(&self, limit: &Limit, subject: &Subject, cost: Unpaid) {
        self.with(|table| {
            let key = (limit.name().into(), subject.clone());
            if let Some(known) = table.get_mut(&key) {
                known.units = known.units.saturating_add(cost.units);
                return;
            }
            if table.len() >= MAX_UNPAID {
                let oldest = table.iter().min_by_key(|(_, unpaid)| unpaid.since);
                if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                    table.remove(&oldest);
                }
            }
            table.insert(key, cost);
        });
    }

    /// Removes and returns the unpaid cost of a subject, so a concurrent request does not charge
    /// the same cost.
    fn take(&self, limit: &Limit, subject: &Subject) -> Option<Unpaid> {
        self.with(|table| table.remove(&(limit.name().into(), subject.clone())))
    }

    fn with<T>(&self, work: impl FnOnce(&mut HashMap<Key, Unpaid>) -> T) -> T {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let done = work(&mut table);
        self.is_used.store(!table.is_empty(), Ordering::Release);
        done
    }
}

impl<S: Store> Limiter<S> {
    /// Records the units of `receipt` that its settlement `charges` could not charge.
    pub(super) fn carry_over(
        &self,
        now: Timestamp,
        receipt: &Receipt,
        charges: &[Charge<'_>],
        readings: &[Reading],
    ) {
        for ((charge, held), reading) in charges.iter().zip(receipt.held()).zip(readings) {
            let Operation::Settle { cost, .. } = charge.operation else { continue };
            let excess = cost.get().saturating_sub(held.get());
            let units = excess.saturating_sub(reading.added);
            if units > 0 && reading.admission == Admission::Now && !is_concurrency(charge.limit) {
                self.unpaid.add(charge.limit, charge.subject, Unpaid { units, since: now });
            }
        }
    }

    /// Charges the unpaid costs of the subjects of `planned`, as far as the limits have units left.
    /// The rest stays unpaid.
    pub(super) async fn charge_unpaid(&self, now: Timestamp, planned: Vec<PlannedCharge>) {
        for PlannedCharge { limit, subject, .. } in &planned {
            let Some(unpaid) = self.unpaid.take(limit, subject) else { continue };
            let mut charging = Charging { costs: &self.unpaid, limit, subject, unpaid };
            let paid = self.charge_up_to(now, limit, subject, Cost::up_to(unpaid.units)).await;
            charging.unpaid.units = unpaid.units.saturating_sub(paid);
        }
    }

    /// Charges at most `cost`: as many units as the limit and its overdraft have left. Returns the
    /// number of charged units. If the store's answer is lost, or the caller drops this future, the
    /// limiter charges the same units again later.
    async fn charge_up_to(
        &self,
        now: Timestamp,
        limit: &Limit,
        subject: &Subject,
        cost: Cost,
    ) -> u64 {
        let id = new_charge_id();
        let charge = |operation| Charge { limit, subject, operation };
        let reserve = Operation::Reserve { cost: Cost::ONE, id, until: now.after(HOLD) };
        let first = self.store.apply(now, &[charge(reserve)]).await.ok();
        let first = first.and_then(|readings| readings.iter().next().copied());
        let Some(first) = first.filter(|reading| reading.admission == Admission::Now) else {
            return 0;
        };
        let settle = Operation::Settle { id, position: first.position, cost };
        let rest = self.store.apply(now, &[charge(settle)]).await.ok();
        let rest = rest.and_then(|readings| readings.iter().next().copied());
        match rest.filter(|reading| reading.admission == Admission::Now) {
            Some(rest) => rest.added.saturating_add(Cost::ONE.get()),
            None => 0,
        }
    }
}

fn is_concurrency(limit: &Limit) -> bool {
    matches!(limit.algorithm(), tollgate_core::Algorithm::Concurrency(_))
}

#[cfg(test)]
mod tests {
    use tollgate_core::Algorithm;
    use tollgate_core::algo::{Anchor, FixedWindow};

    use super::*;

    #[test]
    fn the_oldest_unpaid_cost_makes_room_for_a_new_one() {
        let window = FixedWindow::new(1, Millis::from_secs(1), Anchor::FirstRequest).unwrap();
        let limit = Limit::new("tokens", Algorithm::FixedWindow(window)).unwrap();
        let key = crate::HashKey::random();
        let subject = |number: u64| {
            let number = number.to_string();
            Subject::new([("key", tollgate_core::Value::Clear(number.as_bytes()))], &key)
        };
        let unpaid = UnpaidCosts::default();
        assert!(unpaid.is_empty());
        for number in 0..=MAX_UNPAID as u64 {
            let since = Timestamp::from_millis(number);
            unpaid.add(&limit, &subject(number), Unpaid { units: number, since });
        }
        assert_eq!(unpaid.with(|table| table.len()), MAX_UNPAID);
        assert!(unpaid.take(&limit, &subject(0)).is_none());
        let last = subject(MAX_UNPAID as u64);
        unpaid.add(&limit, &last, Unpaid { units: 1, since: Timestamp::from_millis(9_999) });
        let taken = unpaid.take(&limit, &last).unwrap();
        assert_eq!((taken.units, taken.since.as_millis()), (4_097, 4_096));
        for number in 1..MAX_UNPAID as u64 {
            assert!(unpaid.take(&limit, &subject(number)).is_some());
        }
        assert!(unpaid.is_empty());
    }
}
