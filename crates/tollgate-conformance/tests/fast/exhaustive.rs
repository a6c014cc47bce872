//! Tests of all sequences of a few operations on small limits. The core and the model must return
//! the same answers.

use tollgate_conformance::Ledger;
use tollgate_core::algo::fixed_window::Anchor;
use tollgate_core::algo::{
    Concurrency, FixedWindow, SlidingLog, SlidingWindow, TokenBucket, TwoBucket,
};
use tollgate_core::{
    Admission, Algorithm, Cell, ChargeId, ChargePosition, Cost, Deduplication, Limit, Millis,
    OnExpiry, Operation, Reading, Refusals, ReservationTerms, Timestamp, decide,
};

/// The number of operations in one sequence.
const LENGTH: usize = 5;
/// The start time in milliseconds, which is not a multiple of any window.
const START: u64 = 1_000_001;

#[derive(Clone, Copy, Debug)]
enum Act {
    /// Advances the clock by the first number of milliseconds, and charges the second number of
    /// units.
    Take(u64, u64),
    /// Advances the clock by the first number of milliseconds, and charges the second number of
    /// units by a quota of 1, which shares the counters.
    TakeSmall(u64, u64),
    /// Refunds the last charge.
    Refund,
    /// Refunds the first charge, two milliseconds later.
    RefundFirst,
    /// Charges by a clock that is two milliseconds behind.
    Lagging,
    /// Peeks at a charge of the given units, a millisecond later.
    Look(u64),
    /// Reserves the given units for the given number of milliseconds.
    Reserve(u64, u64),
    /// Settles the last reservation with the given cost. A repetition changes nothing.
    Settle(u64),
    /// Extends the last reservation, three milliseconds later.
    Extend,
}

const ACTS: [Act; 7] = [
    Act::Take(0, 1),
    Act::Take(1, 2),
    Act::Take(3, 1),
    Act::Refund,
    Act::RefundFirst,
    Act::Lagging,
    Act::Look(2),
];

const RESERVING: [Act; 7] = [
    Act::Take(1, 1),
    Act::Reserve(2, 2),
    Act::Reserve(1, 5),
    Act::Settle(0),
    Act::Settle(3),
    Act::Extend,
    Act::Look(1),
];

const SHARING: [Act; 7] = [
    Act::Take(0, 2),
    Act::Take(2, 1),
    Act::TakeSmall(0, 1),
    Act::TakeSmall(1, 1),
    Act::RefundFirst,
    Act::Reserve(1, 5),
    Act::Settle(3),
];

/// Returns every limit with a quota up to 3 and a window up to 4 milliseconds.
fn limits() -> Vec<Limit> {
    let mut algorithms = Vec::new();
    for quota in 1..=3 {
        for window in 1..=4 {
            let span = Millis::new(window);
            for anchor in [Anchor::FirstRequest, Anchor::Calendar] {
                let of = FixedWindow::new(quota, span, anchor).expect("small");
                algorithms.push(Algorithm::FixedWindow(of));
            }
            for precision in 1..=window {
                let of = SlidingWindow::new(quota, span, Millis::new(precision)).expect("small");
                algorithms.push(Algorithm::SlidingWindow(of));
            }
            for burst in 1..=3 {
                let of = TokenBucket::new(quota, span, burst).expect("small");
                algorithms.push(Algorithm::TokenBucket(of));
            }
            let two = TwoBucket::new(quota, span).expect("small");
            let log = SlidingLog::new(quota, span).expect("small");
            let leases = Concurrency::new(quota, span).expect("small");
            algorithms.push(Algorithm::TwoBucket(two));
            algorithms.push(Algorithm::SlidingLog(log));
            algorithms.push(Algorithm::Concurrency(leases));
        }
    }
    let free = algorithms.iter().map(|of| Limit::new("limit", *of).expect("a name"));
    let counted = free.clone().filter_map(|limit| limit.with_refusals(Refusals::Counted).ok());
    free.chain(counted).collect()
}

#[test]
fn every_short_history_is_the_models() {
    limits().iter().for_each(|limit| compare_all(limit, &ACTS, LENGTH));
}

#[test]
fn every_short_history_of_reservations_is_the_models() {
    for on_expiry in [OnExpiry::Release, OnExpiry::Charge] {
        for limit in limits().iter().filter_map(|limit| reserving(limit, on_expiry)) {
            compare_all(&limit, &RESERVING, LENGTH - 1);
        }
    }
}

#[test]
fn every_short_history_of_two_quotas_is_the_models() {
    let reserving = |limit: &Limit| reserving(limit, OnExpiry::Release);
    for limit in limits().iter().filter_map(reserving).filter(|limit| limit.capacity() > 1) {
        compare_all(&limit, &SHARING, LENGTH);
    }
}

/// Returns `limit` with reservation terms, with an overdraft if the limit supports one. Returns
/// `None` for a concurrency limit.
fn reserving(limit: &Limit, on_expiry: OnExpiry) -> Option<Limit> {
    let (max, at_most, overdraft) = (Millis::new(4), 3, 1);
    let terms = ReservationTerms { max, at_most, on_expiry, overdraft };
    let solvent = ReservationTerms { overdraft: 0, ..terms };
    let reserving = |terms| limit.clone().with_reservation_terms(terms);
    reserving(terms).or_else(|_| reserving(solvent)).ok()
}

/// Compares the core with the model for every sequence of `length` operations from `acts`.
fn compare_all(limit: &Limit, acts: &[Act], length: usize) {
    for history in 0..acts.len().pow(length as u32) {
        let steps =
            (0..length).map(|place| acts[history / acts.len().pow(place as u32) % acts.len()]);
        compare(limit, &steps);
    }
}

fn compare(limit: &Limit, acts: &(impl Iterator<Item = Act> + Clone)) {
    let small = limit.with_quota(1, None).expect("the smallest quota");
    let mut ledger = Ledger::new(limit);
    let mut cell = None;
    let mut charged: Vec<(Cost, ChargePosition, ChargeId)> = Vec::new();
    let mut reserved = None;
    let mut now = START;
    for (step, act) in acts.clone().enumerate() {
        let id = ChargeId(step as u128);
        let take = |units| Operation::Charge { cost: Cost::new(units).expect("small"), id };
        let (at, operation) = match act {
            Act::Take(after, units) => {
                now += after;
                (now, take(units))
            }
            Act::TakeSmall(after, units) => {
                now += after;
                (now, take(units))
            }
            Act::Lagging => (now - 2, take(1)),
            Act::Look(units) => {
                now += 1;
                (now, Operation::Peek { cost: Cost::new(units).expect("small") })
            }
            Act::Reserve(units, millis) => {
                let (cost, until) = (Cost::up_to(units), Timestamp::from_millis(now + millis));
                (now, Operation::Reserve { cost, id, until })
            }
            Act::Settle(units) => {
                let Some((position, id)) = reserved else { continue };
                (now, Operation::Settle { id, position, cost: Cost::up_to(units) })
            }
            Act::Extend => {
                let Some((position, id)) = reserved else { continue };
                now += 3;
                (now, Operation::Extend { id, position, until: Timestamp::from_millis(now + 9) })
            }
            Act::Refund | Act::RefundFirst if charged.is_empty() => continue,
            Act::Refund => (now, refund(charged.pop())),
            Act::RefundFirst => {
                now += 2;
                (now, refund(Some(charged.remove(0))))
            }
        };
        let at = Timestamp::from_millis(at);
        let limit = if matches!(act, Act::TakeSmall(..)) { &small } else { limit };
        ledger.follow(limit);
        let expected = answer(&mut ledger, at, operation);
        let before = cell.clone();
        let (reading, next): (Reading, Option<Cell>) = decide(cell, limit, operation, at);
        cell = next;
        if let (Operation::Charge { cost, id }, Admission::Now) = (operation, reading.admission) {
            charged.push((cost, reading.position, id));
        }
        if let (Operation::Reserve { id, .. }, Admission::Now) = (operation, reading.admission) {
            reserved = Some((reading.position, id));
        }
        let comparable = |of: &Reading| {
            (
                of.admission,
                of.fits_again,
                of.used,
                of.full_reset_at,
                of.refunded,
                of.added,
                of.reserved,
            )
        };
        let history: Vec<_> = acts.clone().take(step + 1).collect();
        assert_eq!(comparable(&reading), comparable(&expected), "{limit:?} after {history:?}");
        assert!(!operation.is_read_only() || cell == before, "{limit:?} changed by {history:?}");
    }
}

fn refund(charge: Option<(Cost, ChargePosition, ChargeId)>) -> Operation {
    let (cost, position, id) = charge.expect("something is charged");
    Operation::Refund { cost, position, id, deduplication: Deduplication::Unneeded }
}

fn answer(ledger: &mut Ledger, at: Timestamp, operation: Operation) -> Reading {
    match operation {
        Operation::Charge { cost, id } if ledger.status(at, cost).admission == Admission::Now => {
            ledger.admit(at, cost, id)
        }
        Operation::Charge { cost, id } => ledger.refuse(at, cost, id),
        Operation::Peek { cost } => ledger.status(at, cost),
        Operation::Refund { id, .. } => ledger.refund(at, id),
        Operation::Renew { id } => ledger.renew(at, id),
        Operation::Reserve { cost, id, until } => {
            match ledger.standing_of_reservation(at, cost).admission {
                Admission::Now => ledger.reserve(at, cost, id, until),
                Admission::At(_) | Admission::Never => ledger.refuse_reservation(at, cost, id),
            }
        }
        Operation::Extend { id, until, .. } => ledger.extend(at, id, until),
        Operation::Settle { id, cost, .. } => ledger.settle(at, id, cost),
        Operation::Reset => unreachable!("no history forgets"),
    }
}
