//! The reference model: an obvious, slow oracle that every store is compared with.
//!
//! Written from what the limits mean, not from the core's step. It keeps every charge that was
//! ever counted and answers each question by going through all of them; when a charge will fit it
//! finds by trying moments.

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
    Algorithm, Ask, Charge, ChargeId, Cost, Fit, Reading, Readings, Repeats, Subject, Timestamp,
};

pub use ledger::Ledger;

type Key = (Box<str>, Subject);

/// Every limit and subject: what a store answers is what this answers.
#[derive(Debug, Default)]
pub struct Model {
    ledgers: HashMap<Key, Ledger>,
    /// Every guarded refund that was ever asked.
    refunded: Vec<(Key, ChargeId)>,
}

impl Model {
    /// Nothing charged yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Carries out `charges` at `now`, all or nothing, as [`tollgate_core::Store::apply`] says.
    pub fn apply(&mut self, now: Timestamp, charges: &[Charge<'_>]) -> Readings {
        let admitted = charges.iter().all(|charge| match charge.ask {
            Ask::Take { cost, .. } => self.ledger(charge).standing(now, cost).fit == Fit::Now,
            Ask::Reserve { cost, .. } if !has_leases(charge) => {
                self.ledger(charge).standing_of_reservation(now, cost).fit == Fit::Now
            }
            Ask::Reserve { cost, .. } => self.ledger(charge).standing(now, cost).fit == Fit::Now,
            Ask::Look { .. } | Ask::Refund { .. } | Ask::Renew { .. } | Ask::Forget => true,
            Ask::Extend { .. } | Ask::Settle { .. } => true,
        });
        charges.iter().map(|charge| self.carry_out(now, charge, admitted)).collect()
    }

    /// The moment from which nothing that was charged to this limit and subject counts, so that a
    /// store may have forgotten it.
    #[must_use]
    pub fn over_at(&self, limit: &str, subject: &Subject) -> Timestamp {
        let ledger = self.ledgers.get(&(limit.into(), subject.clone()));
        ledger.map_or(Timestamp::EPOCH, Ledger::over_at)
    }

    fn ledger(&mut self, charge: &Charge<'_>) -> &mut Ledger {
        self.ledgers.entry(key(charge)).or_insert_with(|| Ledger::new(charge.limit))
    }

    fn carry_out(&mut self, now: Timestamp, charge: &Charge<'_>, admitted: bool) -> Reading {
        match charge.ask {
            Ask::Reserve { .. } | Ask::Extend { .. } | Ask::Settle { .. } => {
                self.carry_out_reservation(now, charge, admitted)
            }
            Ask::Take { cost, id } if admitted => self.ledger(charge).admit(now, cost, id),
            Ask::Take { cost, id } => self.ledger(charge).refuse(now, cost, id),
            Ask::Look { cost } => self.ledger(charge).standing(now, cost),
            Ask::Refund { id, repeats, .. } => {
                let asked = (key(charge), id);
                // A lease is given back by its id, which is gone with it: nothing is remembered.
                let may_repeat = repeats == Repeats::Guarded && !has_leases(charge);
                if may_repeat && self.refunded.contains(&asked) {
                    return self.ledger(charge).standing(now, Cost::PEEK);
                }
                self.refunded.push(asked);
                self.ledger(charge).refund(now, id)
            }
            Ask::Renew { id } => self.ledger(charge).renew(now, id),
            Ask::Forget => {
                let found = self.ledger(charge).standing(now, Cost::PEEK).found;
                self.ledgers.remove(&key(charge));
                Reading { found, ..self.ledger(charge).standing(now, Cost::PEEK) }
            }
        }
    }
}

impl Model {
    fn carry_out_reservation(
        &mut self,
        now: Timestamp,
        charge: &Charge<'_>,
        admitted: bool,
    ) -> Reading {
        let is_lease = has_leases(charge);
        let ledger = self.ledger(charge);
        match charge.ask {
            Ask::Reserve { cost, id, .. } if is_lease && admitted => ledger.admit(now, cost, id),
            Ask::Reserve { cost, id, .. } if is_lease => ledger.refuse(now, cost, id),
            Ask::Reserve { cost, id, until } if admitted => ledger.reserve(now, cost, id, until),
            Ask::Reserve { cost, id, .. } => ledger.refuse_reservation(now, cost, id),
            Ask::Extend { id, .. } if is_lease => ledger.renew(now, id),
            Ask::Extend { id, until, .. } => ledger.extend(now, id, until),
            Ask::Settle { id, .. } if is_lease => {
                let reading = ledger.refund(now, id);
                let fit = if reading.given_back > 0 { Fit::Now } else { Fit::Never };
                Reading { fit, ..reading }
            }
            Ask::Settle { id, cost, .. } => ledger.settle(now, id, cost),
            _ => ledger.standing(now, Cost::PEEK),
        }
    }
}

fn has_leases(charge: &Charge<'_>) -> bool {
    matches!(charge.limit.algorithm(), Algorithm::Concurrency(_))
}

fn key(charge: &Charge<'_>) -> Key {
    (charge.limit.name().into(), charge.subject.clone())
}
