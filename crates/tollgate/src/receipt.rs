//! Receipts of admitted charges, for a later refund or settlement.

mod sealed;

use std::cell::Cell;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use tollgate_core::charge::{Charge, ChargeId, ChargePosition, Deduplication, Operation};
use tollgate_core::policy::outcome::{ConditionalCost, Settlement};
use tollgate_core::policy::{Estimate, Meter, PlannedCharge};
use tollgate_core::{Algorithm, Cost, Limit, Millis, Refusals, Subject, Timestamp};

pub use sealed::ReceiptError;
pub(crate) use sealed::UnsealedReceipt;

/// The receipt of a charge or a reservation. A receipt is not `Clone`: a refund consumes the
/// receipt, so nothing is refunded twice.
#[derive(Debug)]
#[must_use = "a charge that may have to be refunded needs its receipt"]
pub struct Receipt {
    id: ChargeId,
    entries: Vec<Entry>,
    deduplication: Deduplication,
    purpose: Purpose,
    /// The time of the charge, if this process made the charge.
    charged_at: Option<Timestamp>,
}

/// Whether a receipt is of charges or of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A charge, which can be refunded.
    Charge,
    /// A reservation that ends at the given time. The reservation can be settled until this time.
    Reservation(Timestamp),
}

#[derive(Debug)]
struct Entry {
    limit: Arc<Limit>,
    subject: Subject,
    cost: Cost,
    position: ChargePosition,
    /// The number of earlier charges of the same request on the same counter, in other windows or
    /// blocks. The id of the refund depends on this number, so a refund of a part of the receipt
    /// has the same ids as a refund of the whole receipt.
    earlier: u32,
    /// The parts of the cost for which an estimate is reserved until the response reports the
    /// actual cost.
    estimates: Vec<Estimate>,
    /// The parts of the cost that are charged only for some status codes of the response.
    conditions: Vec<ConditionalCost>,
    /// Whether the limit could refuse the request. Only such a limit carries over the units that a
    /// settlement cannot charge.
    is_enforced: bool,
}

impl Receipt {
    /// Creates the receipt of the charges `charged`. The position of a charge is the window or
    /// block in which it was counted. A charge with a cost of 0 is left out, because nothing can be
    /// refunded.
    pub(crate) fn new(
        id: ChargeId,
        purpose: Purpose,
        charged: impl Iterator<Item = (PlannedCharge, ChargePosition)>,
    ) -> Self {
        let entries = charged
            .filter(|(planned, _)| planned.cost != Cost::PEEK)
            .map(|(planned, position)| {
                let PlannedCharge { limit, subject, cost, estimates, conditions } = planned;
                Entry {
                    limit,
                    subject,
                    cost,
                    position,
                    earlier: 0,
                    estimates,
                    conditions,
                    is_enforced: true,
                }
            })
            .collect();
        let (deduplication, charged_at) = (Deduplication::Unneeded, None);
        Self { id, entries, deduplication, purpose, charged_at }
    }

    /// Marks all charges as charges on limits that could not refuse the request: limits of rules in
    /// shadow mode, limits that are not enforced for their subjects, and candidates.
    pub(crate) fn not_enforced(mut self) -> Self {
        for entry in &mut self.entries {
            entry.is_enforced = false;
        }
        self
    }

    /// Adds a charge of the same request after the other charges.
    fn push(&mut self, mut entry: Entry) {
        let earlier = self.entries.iter().filter(|other| other.is_of(&entry)).count();
        entry.earlier = u32::try_from(earlier).unwrap_or(u32::MAX);
        self.entries.push(entry);
    }

    /// Returns whether this is the receipt of a reservation, which can be settled.
    #[must_use]
    pub const fn is_reservation(&self) -> bool {
        matches!(self.purpose, Purpose::Reservation(_))
    }

    /// Returns the id under which the charges were made.
    #[must_use]
    pub const fn id(&self) -> ChargeId {
        self.id
    }

    /// Returns the time of the charge, or `None` if the receipt came from outside this process.
    pub(crate) const fn charged_at(&self) -> Option<Timestamp> {
        self.charged_at
    }

    /// Records the time of the charge.
    pub(crate) const fn set_charged_at(&mut self, at: Timestamp) {
        self.charged_at = Some(at);
    }

    /// Returns whether the receipt has no charges to refund.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Splits the receipt into two receipts. The first has the charges on limits that count units,
    /// which remain charged. The second has the permits of concurrency limits, which end with the
    /// request.
    pub fn split_permits(self) -> (Self, Self) {
        let Self { id, entries, deduplication, purpose, charged_at } = self;
        if !entries.iter().any(Entry::is_permit) {
            let part = |entries| Self { id, entries, deduplication, purpose, charged_at };
            return (part(entries), part(Vec::new()));
        }
        let (permits, counted) = entries.into_iter().partition(Entry::is_permit);
        let part = |entries| Self { id, entries, deduplication, purpose, charged_at };
        (part(counted), part(permits))
    }

    /// Returns the time after which the first of the receipt's permits expires if no permit is
    /// renewed. Returns `None` if the receipt has no permits.
    #[must_use]
    pub fn shortest_permit_ttl(&self) -> Option<Millis> {
        let permits = self.entries.iter().filter_map(|entry| match entry.limit.algorithm() {
            Algorithm::Concurrency(limit) => Some(limit.permit_ttl()),
            _ => None,
        });
        permits.min()
    }

    /// Replaces each limit of the receipt by the limit that `other` returns for the limit and its
    /// subject. Keeps a limit for which `other` returns `None`.
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

    /// Joins two receipts of the same request. If one rule enforces a limit that another rule only
    /// counts, both receipts may have a charge in the same window or block of this limit. These two
    /// charges become one entry with both costs. Charges in two windows stay separate entries, and
    /// one call refunds each charge in its window. Two reservations stay separate entries too,
    /// because each of them is settled. Only one of the receipts has a permit of a concurrency
    /// limit.
    pub(crate) fn joined(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(mut one), Some(other)) => {
                let is_reservation = one.is_reservation();
                for entry in other.entries {
                    let is_joined = |known: &&mut Entry| !is_reservation && known.is_where(&entry);
                    match one.entries.iter_mut().find(is_joined) {
                        Some(known) => {
                            known.cost = known.cost.plus(entry.cost);
                            known.conditions.extend(entry.conditions);
                            known.is_enforced |= entry.is_enforced;
                            known.position = ChargePosition(known.position.0.max(entry.position.0));
                        }
                        None => one.push(entry),
                    }
                }
                Some(one)
            }
            (one, other) => one.or(other),
        }
    }

    /// Returns the receipt without charges on limits that count refused requests. The result is the
    /// part to refund if another limit refuses the request.
    pub(crate) fn without_counted_refusals(mut self) -> Self {
        self.entries.retain(|entry| entry.limit.refusals() != Refusals::Counted);
        self
    }

    /// Returns the part of a receipt of charges that a response with the effect `settlement` makes
    /// free. Permits are always in this part, because the request has ended.
    pub fn refundable(mut self, settlement: Settlement) -> Self {
        for entry in self.entries.iter_mut().filter(|entry| !entry.is_permit()) {
            let kept = entry.kept(settlement, |_| None);
            entry.cost = Cost::up_to(entry.cost.get().saturating_sub(kept.get()));
        }
        self.entries.retain(|entry| entry.cost != Cost::PEEK);
        self
    }

    /// Returns whether a response with the effect `settlement` makes any part of the receipt free.
    #[must_use]
    pub fn is_refunded(&self, settlement: Settlement) -> bool {
        self.entries.iter().any(|entry| entry.kept(settlement, |_| None) != entry.cost)
    }

    /// Returns whether a response with the effect `settlement` makes the whole receipt free.
    #[must_use]
    pub fn is_free(&self, settlement: Settlement) -> bool {
        self.entries.iter().all(|entry| entry.kept(settlement, |_| None) == Cost::PEEK)
    }

    /// Returns the operations of the store call that refunds the charges or releases the
    /// reservation.
    pub(crate) fn refunds(&self) -> Vec<Charge<'_>> {
        let deduplication = self.deduplication;
        match self.purpose {
            Purpose::Reservation(_) => self.settlements(|_, _| Cost::PEEK),
            Purpose::Charge => self
                .entries
                .iter()
                .map(|entry| {
                    let Entry { ref limit, ref subject, cost, position, .. } = *entry;
                    let id = self.refund_id(entry);
                    Charge {
                        limit,
                        subject,
                        operation: Operation::Refund { cost, position, id, deduplication },
                    }
                })
                .collect(),
        }
    }

    /// Returns the id under which `entry` is refunded, which is normally the id of the charge. Two
    /// rules of one request may have charged two windows or blocks of the same limit. The second
    /// entry then has another id, so the store does not treat the second refund as a repetition of
    /// the first refund.
    fn refund_id(&self, entry: &Entry) -> ChargeId {
        // The upper half is a random number of the thread; the lower half is a counter.
        ChargeId(self.id.0 ^ u128::from(entry.earlier) << 64)
    }

    /// Returns the operations of the store call that settles the reservation. `real` receives a
    /// limit and its reserved amount, and returns the real cost on this limit.
    pub(crate) fn settlements(&self, real: impl Fn(&Limit, Cost) -> Cost) -> Vec<Charge<'_>> {
        self.charges(|entry| {
            let cost = real(&entry.limit, entry.cost);
            Operation::Settle { id: self.reservation_id(entry), position: entry.position, cost }
        })
    }

    /// Returns the operations of the store call that settles the reservation by the costs that the
    /// meters report. `measured` returns the cost of a meter; if it returns `None`, the reserved
    /// amount is charged. Only the units that a response with the effect `settlement` does not make
    /// free are charged.
    pub(crate) fn measurements(
        &self,
        settlement: Settlement,
        measured: impl Fn(&Meter) -> Option<Cost>,
    ) -> Vec<Charge<'_>> {
        self.charges(|entry| {
            let cost = entry.kept(settlement, &measured);
            Operation::Settle { id: self.reservation_id(entry), position: entry.position, cost }
        })
    }

    /// Returns the meters of the costs for which an estimate is reserved.
    pub fn meters(&self) -> impl Iterator<Item = &Arc<Meter>> {
        self.entries.iter().flat_map(|entry| &entry.estimates).map(|estimate| &estimate.meter)
    }

    /// Returns the shortest time after which a limit releases the reservation if the reservation is
    /// not extended. Returns `None` for an empty receipt.
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

    /// Returns the operations of the store call that extends the reservation to the time `until`.
    pub(crate) fn extensions(&self, until: Timestamp) -> Vec<Charge<'_>> {
        self.charges(|entry| {
            let (id, position) = (self.reservation_id(entry), entry.position);
            Operation::Extend { id, position, until }
        })
    }

    fn reservation_id(&self, entry: &Entry) -> ChargeId {
        reservation_id(self.id, &entry.limit, entry.is_enforced)
    }

    /// Returns the earliest time at which a limit releases the reservation. `asked_at` is the time
    /// at which the caller made or extended the reservation. Returns `None` if this is not the
    /// receipt of a reservation.
    pub(crate) fn ends_at(&self, asked_at: Timestamp) -> Option<Timestamp> {
        let Purpose::Reservation(until) = self.purpose else { return None };
        self.entries.iter().map(|entry| entry.held_until(until, asked_at)).min()
    }

    /// Returns the receipt of the same reservation with the new end `until`.
    pub(crate) fn extended(self, until: Timestamp) -> Self {
        Self { purpose: Purpose::Reservation(until), ..self }
    }

    /// Returns the limits of the charges.
    pub(crate) fn limits(&self) -> impl Iterator<Item = &Arc<Limit>> {
        self.entries.iter().map(|entry| &entry.limit)
    }

    /// Returns the charged or reserved units of each limit, in the order of the store calls. The
    /// item of a limit that could not refuse the request is `None`.
    pub(crate) fn enforced_costs(&self) -> impl Iterator<Item = Option<Cost>> {
        self.entries.iter().map(|entry| entry.is_enforced.then_some(entry.cost))
    }

    /// Returns the permits: the concurrency limit and the subject of each.
    pub(crate) fn permits(&self) -> impl Iterator<Item = (&Limit, &Subject)> {
        let permits = self.entries.iter().filter(|entry| entry.is_permit());
        permits.map(|entry| (&*entry.limit, &entry.subject))
    }

    /// Returns whether the receipt has a permit of the counter that `planned` charges.
    pub(crate) fn has_permit_of(&self, planned: &PlannedCharge) -> bool {
        let counters = planned.limit.state_digest();
        has_permits(&planned.limit)
            && self.permits().any(|(limit, subject)| {
                limit.state_digest() == counters && *subject == planned.subject
            })
    }

    /// Returns the operations of the store call that renews the permits.
    pub(crate) fn renewals(&self) -> Vec<Charge<'_>> {
        self.charges(|_| Operation::Renew { id: self.id })
    }

    fn charges(&self, operation: impl Fn(&Entry) -> Operation) -> Vec<Charge<'_>> {
        self.entries
            .iter()
            .map(|entry| Charge {
                limit: &entry.limit,
                subject: &entry.subject,
                operation: operation(entry),
            })
            .collect()
    }
}

impl Entry {
    /// Returns the units of this charge that remain charged after a response with the effect
    /// `settlement`. `measured` returns the cost that a meter reports, or `None` if the reserved
    /// amount remains.
    fn kept(&self, settlement: Settlement, measured: impl Fn(&Meter) -> Option<Cost>) -> Cost {
        settlement.kept(self.cost, &self.estimates, &self.conditions, measured)
    }

    fn is_permit(&self) -> bool {
        has_permits(&self.limit)
    }

    /// Returns whether `other` is a charge on the same limit and subject, in the same window or
    /// block. All charges on a token bucket count as charged in the same window.
    fn is_where(&self, other: &Self) -> bool {
        let is_bucket = matches!(self.limit.algorithm(), Algorithm::TokenBucket(_));
        self.is_of(other) && (is_bucket || self.position == other.position)
    }

    /// Returns whether `other` has the same counter: the same limit, with any quota, and the same
    /// subject.
    fn is_of(&self, other: &Self) -> bool {
        self.limit.state_digest() == other.limit.state_digest() && self.subject == other.subject
    }
}

/// Returns whether `limit` limits the requests in flight, so the units of its charges are permits.
pub(crate) const fn has_permits(limit: &Limit) -> bool {
    matches!(limit.algorithm(), Algorithm::Concurrency(_))
}

/// Returns the id of the reservation on `limit` of a request whose charges have the id `id`.
/// `is_enforced` is false if the limit cannot refuse the request.
///
/// If a limit is used by a rule that can refuse the request and by a rule in shadow mode, the
/// request reserves units of one counter twice. The two reservations need different ids, because a
/// settlement ends one reservation with its id. A request has only one permit of a concurrency
/// limit, whatever the number of its rules.
pub(crate) fn reservation_id(id: ChargeId, limit: &Limit, is_enforced: bool) -> ChargeId {
    // The upper half is a random number of the thread; the lower half is a counter.
    if is_enforced || has_permits(limit) { id } else { ChargeId(id.0 ^ 1 << 64) }
}

/// Returns an id that differs from the ids of all other charges on all nodes. The id consists of a
/// random number of the calling thread and a counter.
#[inline]
#[must_use]
pub fn new_charge_id() -> ChargeId {
    // The counter is a 64-bit word. A 128-bit counter that is written in two halves and read as a
    // whole would make each read wait for the previous write.
    thread_local! {
        static THREAD: u64 = RandomState::new().build_hasher().finish();
        static NEXT: Cell<u64> = const { Cell::new(0) };
    }
    let next = NEXT.get();
    NEXT.set(next.wrapping_add(1));
    ChargeId(u128::from(THREAD.with(|thread| *thread)) << 64 | u128::from(next))
}

#[cfg(test)]
mod tests;
