//! What an admitted charge returns: with it the charge can be given back, once.

mod sealed;

use std::cell::Cell;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use tollgate_core::charge::{Charge, ChargeId, ChargePosition, Deduplication, Operation};
use tollgate_core::policy::{Estimate, Meter, PlannedCharge};
use tollgate_core::{Algorithm, Cost, Limit, Millis, Subject, Timestamp};

pub use sealed::ReceiptError;
pub(crate) use sealed::UnsealedReceipt;

/// Proof of what was charged. It is not `Clone`: whoever gives it back has it no more, so that
/// nothing is given back twice.
#[derive(Debug)]
#[must_use = "a charge that may have to be given back needs its receipt"]
pub struct Receipt {
    id: ChargeId,
    entries: Vec<Entry>,
    deduplication: Deduplication,
    purpose: Purpose,
}

/// What units were taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// For a charge: they count.
    Charge,
    /// For a reservation until then: they are settled.
    Reservation(Timestamp),
}

#[derive(Debug)]
struct Entry {
    limit: Arc<Limit>,
    subject: Subject,
    cost: Cost,
    position: ChargePosition,
    /// What of the cost is only reserved until the answer tells.
    estimates: Vec<Estimate>,
}

impl Receipt {
    /// What was charged, and where it was put; peeks leave nothing to give back.
    pub(crate) fn new(
        id: ChargeId,
        purpose: Purpose,
        charged: impl Iterator<Item = (PlannedCharge, ChargePosition)>,
    ) -> Self {
        let entries = charged
            .filter(|(planned, _)| planned.cost != Cost::PEEK)
            .map(|(PlannedCharge { limit, subject, cost, estimates }, position)| Entry {
                limit,
                subject,
                cost,
                position,
                estimates,
            })
            .collect();
        Self { id, entries, deduplication: Deduplication::Unneeded, purpose }
    }

    /// Whether it proves a reservation, which is settled.
    #[must_use]
    pub const fn is_reservation(&self) -> bool {
        matches!(self.purpose, Purpose::Reservation(_))
    }

    /// The charge's id.
    #[must_use]
    pub const fn id(&self) -> ChargeId {
        self.id
    }

    /// Whether there is nothing to give back.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Parts the leases, which end with the request, from what was counted, which stays.
    pub fn split_permits(self) -> (Self, Self) {
        let Self { id, entries, deduplication, purpose } = self;
        let (permits, counted) = entries.into_iter().partition(Entry::is_permit);
        let part = |entries| Self { id, entries, deduplication, purpose };
        (part(counted), part(permits))
    }

    /// The shortest lease that it proves: without a renewal that one ends first.
    #[must_use]
    pub fn shortest_permit_ttl(&self) -> Option<Millis> {
        let permits = self.entries.iter().filter_map(|entry| match entry.limit.algorithm() {
            Algorithm::Concurrency(limit) => Some(limit.permit_ttl()),
            _ => None,
        });
        permits.min()
    }

    /// The same receipt, by the limits that `other` has in the place of its own.
    pub(crate) fn by(
        mut self,
        other: impl Fn(&Arc<Limit>, &Subject) -> Option<Arc<Limit>>,
    ) -> Self {
        for entry in &mut self.entries {
            if let Some(limit) = other(&entry.limit, &entry.subject) {
                entry.limit = limit;
            }
        }
        self
    }

    /// What two receipts of the same request prove. What both charged at one place, because one
    /// rule enforces a limit that another one tries, is one charge of both costs. What they charged
    /// at two places stays two, which one call gives back, each to where it was taken from.
    pub(crate) fn joined(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(mut one), Some(other)) => {
                for entry in other.entries {
                    match one.entries.iter_mut().find(|known| known.is_where(&entry)) {
                        Some(known) => {
                            known.cost = known.cost.plus(entry.cost);
                            known.position = ChargePosition(known.position.0.max(entry.position.0));
                        }
                        None => one.entries.push(entry),
                    }
                }
                Some(one)
            }
            (one, other) => one.or(other),
        }
    }

    /// What gives all of it back: a reservation is released.
    pub(crate) fn refunds(&self) -> Vec<Charge<'_>> {
        let deduplication = self.deduplication;
        match self.purpose {
            Purpose::Reservation(_) => self.settlements(|_, _| Cost::PEEK),
            Purpose::Charge => self
                .entries
                .iter()
                .enumerate()
                .map(|(index, entry)| {
                    let Entry { ref limit, ref subject, cost, position, .. } = *entry;
                    let id = self.refund_id(index);
                    Charge {
                        limit,
                        subject,
                        operation: Operation::Refund { cost, position, id, deduplication },
                    }
                })
                .collect(),
        }
    }

    /// By which id the entry of this index is given back: the charge's own. Where time passed from
    /// one rule's charge to another's they may lie in two windows or blocks of one limit; then the
    /// second has another id, so that it is not taken for the first one given back again.
    fn refund_id(&self, index: usize) -> ChargeId {
        let Some((entry, before)) = self.entries.get(..=index).and_then(<[_]>::split_last) else {
            return self.id;
        };
        let before = before.iter().filter(|other| other.is_of(entry)).count();
        // The upper half is a thread's own number, drawn at random; the lower half counts.
        ChargeId(self.id.0 ^ (before as u128) << 64)
    }

    /// What puts the real cost in the place of what each limit holds.
    pub(crate) fn settlements(&self, real: impl Fn(&Limit, Cost) -> Cost) -> Vec<Charge<'_>> {
        self.charges(|entry| {
            let cost = real(&entry.limit, entry.cost);
            Operation::Settle { id: self.id, position: entry.position, cost }
        })
    }

    /// What puts the cost that the meters tell in the place of what each limit holds; what no meter
    /// tells costs what was reserved of it.
    pub(crate) fn measurements(
        &self,
        measured: impl Fn(&Meter) -> Option<Cost>,
    ) -> Vec<Charge<'_>> {
        self.charges(|entry| {
            let real = entry.estimates.iter().fold(entry.cost, |cost, estimate| {
                let known = Cost::up_to(cost.get().saturating_sub(estimate.reserved.get()));
                known.plus(measured(&estimate.meter).unwrap_or(estimate.reserved))
            });
            Operation::Settle { id: self.id, position: entry.position, cost: real }
        })
    }

    /// What tells the costs that are only reserved.
    pub fn meters(&self) -> impl Iterator<Item = &Arc<Meter>> {
        self.entries.iter().flat_map(|entry| &entry.estimates).map(|estimate| &estimate.meter)
    }

    /// The shortest time that a limit holds what it proves: without an extension that one ends first.
    #[must_use]
    pub fn shortest_reservation(&self) -> Option<Millis> {
        self.entries
            .iter()
            .map(|entry| match entry.limit.algorithm() {
                Algorithm::Concurrency(limit) => limit.permit_ttl(),
                _ => entry.limit.reservation_terms().max,
            })
            .min()
    }

    /// What puts the end of a reservation off.
    pub(crate) fn extensions(&self, until: Timestamp) -> Vec<Charge<'_>> {
        self.charges(|entry| Operation::Extend { id: self.id, position: entry.position, until })
    }

    /// When the first of what it holds runs out, if the end was asked for at `asked_at`.
    pub(crate) fn ends_at(&self, asked_at: Timestamp) -> Option<Timestamp> {
        let Purpose::Reservation(until) = self.purpose else { return None };
        self.entries.iter().map(|entry| entry.held_until(until, asked_at)).min()
    }

    /// The same reservation, until another end.
    pub(crate) fn extended(self, until: Timestamp) -> Self {
        Self { purpose: Purpose::Reservation(until), ..self }
    }

    pub(crate) fn limits(&self) -> impl Iterator<Item = &Arc<Limit>> {
        self.entries.iter().map(|entry| &entry.limit)
    }

    /// The leases that it proves, and whose they are.
    pub(crate) fn permits(&self) -> impl Iterator<Item = (&Limit, &Subject)> {
        let permits = self.entries.iter().filter(|entry| entry.is_permit());
        permits.map(|entry| (&*entry.limit, &entry.subject))
    }

    pub(crate) fn renewals(&self) -> Vec<Charge<'_>> {
        self.charges(|_| Operation::Renew { id: self.id })
    }

    fn charges(&self, ask: impl Fn(&Entry) -> Operation) -> Vec<Charge<'_>> {
        self.entries
            .iter()
            .map(|entry| Charge {
                limit: &entry.limit,
                subject: &entry.subject,
                operation: ask(entry),
            })
            .collect()
    }
}

impl Entry {
    fn is_permit(&self) -> bool {
        matches!(self.limit.algorithm(), Algorithm::Concurrency(_))
    }

    /// Whether `other` was put to the same place. A bucket is one, whenever it was charged.
    fn is_where(&self, other: &Self) -> bool {
        let is_bucket = matches!(self.limit.algorithm(), Algorithm::TokenBucket(_));
        self.is_of(other) && (is_bucket || self.position == other.position)
    }

    /// Whether `other` is of the same limit and subject.
    fn is_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.limit, &other.limit) && self.subject == other.subject
    }
}

/// An id that no other charge has, on this node or another: a number that this thread drew at
/// random, and a count.
pub(crate) fn new_charge_id() -> ChargeId {
    thread_local! {
        static NEXT: Cell<u128> = Cell::new(
            u128::from(RandomState::new().build_hasher().finish()) << 64
        );
    }
    let id = NEXT.get();
    NEXT.set(id.wrapping_add(1));
    ChargeId(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ids_differ_between_charges_and_threads() {
        let threads = (0..4).map(|_| {
            std::thread::spawn(|| (0..1_000).map(|_| new_charge_id().0).collect::<Vec<_>>())
        });
        let threads: Vec<_> = threads.collect();
        let ids: HashSet<u128> =
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        assert_eq!(ids.len(), 4_000);
    }
}
