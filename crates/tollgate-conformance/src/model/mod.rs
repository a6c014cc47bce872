//! The reference model: a simple, slow implementation of all limits. Tests compare every store with
//! the model.
//!
//! The model is written from the definition of the limits, not from the core's implementation. The
//! model keeps every charge that was ever counted, and reads all charges for each request. To find
//! the time at which a charge will fit, the model tries times.

mod account;
mod concurrency;
mod fixed_window;
mod holds;
mod ledger;
mod sliding_log;
mod sliding_window;
mod token_bucket;
mod two_bucket;

use std::collections::HashMap;

use tollgate_core::{
    Admission, Algorithm, Charge, ChargeId, Cost, Deduplication, Operation, Reading, Readings,
    Subject, Timestamp,
};

pub use ledger::Ledger;

type Key = (Box<str>, Subject);

/// The reference model for all limits and subjects. Every store must return the same answers as the
/// model.
#[derive(Debug, Default)]
pub struct Model {
    ledgers: HashMap<Key, Ledger>,
    /// Every deduplicated refund that was ever requested.
    refunded: Vec<(Key, ChargeId)>,
}

impl Model {
    /// Creates an empty model.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Executes `charges` at `now`, as [`tollgate_core::Store::apply`] does. Counts all charges or
    /// none.
    pub fn apply(&mut self, now: Timestamp, charges: &[Charge<'_>]) -> Readings {
        let admitted = charges.iter().all(|charge| match charge.operation {
            Operation::Charge { cost, .. } => {
                self.ledger(charge).status(now, cost).admission == Admission::Now
            }
            Operation::Reserve { cost, .. } if !has_leases(charge) => {
                self.ledger(charge).standing_of_reservation(now, cost).admission == Admission::Now
            }
            Operation::Reserve { cost, .. } => {
                self.ledger(charge).status(now, cost).admission == Admission::Now
            }
            Operation::Peek { .. }
            | Operation::Refund { .. }
            | Operation::Renew { .. }
            | Operation::Reset => true,
            Operation::Extend { .. } | Operation::Settle { .. } => true,
        });
        charges.iter().map(|charge| self.execute(now, charge, admitted)).collect()
    }

    /// Returns the time from which on no charge to this limit and subject counts. A store may
    /// delete the state at this time.
    #[must_use]
    pub fn expires_at(&self, limit: &str, subject: &Subject) -> Timestamp {
        let ledger = self.ledgers.get(&(limit.into(), subject.clone()));
        ledger.map_or(Timestamp::EPOCH, Ledger::expires_at)
    }

    fn ledger(&mut self, charge: &Charge<'_>) -> &mut Ledger {
        let ledger = self.ledgers.entry(key(charge)).or_insert_with(|| Ledger::new(charge.limit));
        ledger.follow(charge.limit);
        ledger
    }

    fn execute(&mut self, now: Timestamp, charge: &Charge<'_>, admitted: bool) -> Reading {
        match charge.operation {
            Operation::Reserve { .. } | Operation::Extend { .. } | Operation::Settle { .. } => {
                self.execute_reservation(now, charge, admitted)
            }
            Operation::Charge { cost, id } if admitted => self.ledger(charge).admit(now, cost, id),
            Operation::Charge { cost, id } => self.ledger(charge).refuse(now, cost, id),
            Operation::Peek { cost } => self.ledger(charge).status(now, cost),
            Operation::Refund { id, deduplication, .. } => {
                let refund = (key(charge), id);
                // A refund releases a permit by its id, and the id is deleted with the permit. A
                // record of the refund is therefore not needed.
                let may_repeat = deduplication == Deduplication::ById && !has_leases(charge);
                if may_repeat && self.refunded.contains(&refund) {
                    return self.ledger(charge).status(now, Cost::PEEK);
                }
                self.refunded.push(refund);
                self.ledger(charge).refund(now, id)
            }
            Operation::Renew { id } => self.ledger(charge).renew(now, id),
            Operation::Reset => {
                let found = self.ledger(charge).status(now, Cost::PEEK).found;
                self.ledgers.remove(&key(charge));
                Reading { found, ..self.ledger(charge).status(now, Cost::PEEK) }
            }
        }
    }
}

impl Model {
    fn execute_reservation(
        &mut self,
        now: Timestamp,
        charge: &Charge<'_>,
        admitted: bool,
    ) -> Reading {
        let is_lease = has_leases(charge);
        let ledger = self.ledger(charge);
        match charge.operation {
            Operation::Reserve { cost, id, .. } if is_lease && admitted => {
                ledger.admit(now, cost, id)
            }
            Operation::Reserve { cost, id, .. } if is_lease => ledger.refuse(now, cost, id),
            Operation::Reserve { cost, id, until } if admitted => {
                ledger.reserve(now, cost, id, until)
            }
            Operation::Reserve { cost, id, .. } => ledger.refuse_reservation(now, cost, id),
            Operation::Extend { id, .. } if is_lease => ledger.renew(now, id),
            Operation::Extend { id, until, .. } => ledger.extend(now, id, until),
            Operation::Settle { id, .. } if is_lease => {
                let reading = ledger.refund(now, id);
                let admission =
                    if reading.refunded > 0 { Admission::Now } else { Admission::Never };
                Reading { admission, ..reading }
            }
            Operation::Settle { id, cost, .. } => ledger.settle(now, id, cost),
            _ => ledger.status(now, Cost::PEEK),
        }
    }
}

fn has_leases(charge: &Charge<'_>) -> bool {
    matches!(charge.limit.algorithm(), Algorithm::Concurrency(_))
}

fn key(charge: &Charge<'_>) -> Key {
    (charge.limit.name().into(), charge.subject.clone())
}
