//! Everything that can happen to small limits in a few steps, on the core and on the model.

use tollgate_conformance::Ledger;
use tollgate_core::algo::fixed_window::Anchor;
use tollgate_core::algo::{
    Concurrency, FixedWindow, SlidingLog, SlidingWindow, TokenBucket, TwoBucket,
};
use tollgate_core::{
    Algorithm, Ask, Cell, ChargeId, Cost, Fit, HoldTerms, Limit, Mark, Millis, OnExpiry, Reading,
    Refusals, Repeats, Timestamp, decide,
};

/// Steps of one history.
const LENGTH: usize = 5;
/// No multiple of the windows.
const START: u64 = 1_000_001;

#[derive(Clone, Copy, Debug)]
enum Act {
    /// Moves the clock on by milliseconds, then takes.
    Take(u64, u64),
    /// Gives back the last charge.
    Refund,
    /// Gives back the first charge, two milliseconds later.
    RefundFirst,
    /// Takes by a clock that lags two milliseconds.
    Lagging,
    /// Looks, a millisecond later, at what would become of units.
    Look(u64),
    /// Reserves for so many milliseconds.
    Reserve(u64, u64),
    /// Settles the last reservation at so many units; asked again, it changes nothing.
    Settle(u64),
    /// Puts the end of the last reservation off, three milliseconds later.
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

/// Every limit with a quota up to 3 and a window up to 4 milliseconds.
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
    let terms = HoldTerms { max: Millis::new(4), at_most: 3, overdraft: 1, ..HoldTerms::default() };
    for on_expiry in [OnExpiry::Release, OnExpiry::Charge] {
        let terms = HoldTerms { on_expiry, ..terms };
        let solvent = HoldTerms { overdraft: 0, ..terms };
        for limit in limits() {
            let held = limit.clone().with_hold(terms).or_else(|_| limit.with_hold(solvent));
            if let Ok(limit) = held {
                compare_all(&limit, &RESERVING, LENGTH - 1);
            }
        }
    }
}

/// Every history of `length` steps, each of which is one of `acts`.
fn compare_all(limit: &Limit, acts: &[Act], length: usize) {
    for history in 0..acts.len().pow(length as u32) {
        let steps =
            (0..length).map(|place| acts[history / acts.len().pow(place as u32) % acts.len()]);
        compare(limit, &steps);
    }
}

fn compare(limit: &Limit, acts: &(impl Iterator<Item = Act> + Clone)) {
    let mut ledger = Ledger::new(limit);
    let mut cell = None;
    let mut charged: Vec<(Cost, Mark, ChargeId)> = Vec::new();
    let mut reserved = None;
    let mut now = START;
    for (step, act) in acts.clone().enumerate() {
        let id = ChargeId(step as u128);
        let take = |units| Ask::Take { cost: Cost::new(units).expect("small"), id };
        let (at, ask) = match act {
            Act::Take(after, units) => {
                now += after;
                (now, take(units))
            }
            Act::Lagging => (now - 2, take(1)),
            Act::Look(units) => {
                now += 1;
                (now, Ask::Look { cost: Cost::new(units).expect("small") })
            }
            Act::Reserve(units, millis) => {
                let (cost, until) = (Cost::up_to(units), Timestamp::from_millis(now + millis));
                (now, Ask::Reserve { cost, id, until })
            }
            Act::Settle(units) => {
                let Some((mark, id)) = reserved else { continue };
                (now, Ask::Settle { id, mark, cost: Cost::up_to(units) })
            }
            Act::Extend => {
                let Some((mark, id)) = reserved else { continue };
                now += 3;
                (now, Ask::Extend { id, mark, until: Timestamp::from_millis(now + 9) })
            }
            Act::Refund | Act::RefundFirst if charged.is_empty() => continue,
            Act::Refund => (now, refund(charged.pop())),
            Act::RefundFirst => {
                now += 2;
                (now, refund(Some(charged.remove(0))))
            }
        };
        let at = Timestamp::from_millis(at);
        let expected = answer(&mut ledger, at, ask);
        let before = cell.clone();
        let (reading, next): (Reading, Option<Cell>) = decide(cell, limit, ask, at);
        cell = next;
        if let (Ask::Take { cost, id }, Fit::Now) = (ask, reading.fit) {
            charged.push((cost, reading.mark, id));
        }
        if let (Ask::Reserve { id, .. }, Fit::Now) = (ask, reading.fit) {
            reserved = Some((reading.mark, id));
        }
        let told = |of: &Reading| {
            (of.fit, of.again, of.used, of.whole_at, of.given_back, of.added, of.held)
        };
        let history: Vec<_> = acts.clone().take(step + 1).collect();
        assert_eq!(told(&reading), told(&expected), "{limit:?} after {history:?}");
        assert!(!ask.only_reads() || cell == before, "{limit:?} changed by {history:?}");
    }
}

fn refund(charge: Option<(Cost, Mark, ChargeId)>) -> Ask {
    let (cost, mark, id) = charge.expect("something is charged");
    Ask::Refund { cost, mark, id, repeats: Repeats::Impossible }
}

fn answer(ledger: &mut Ledger, at: Timestamp, ask: Ask) -> Reading {
    match ask {
        Ask::Take { cost, id } if ledger.standing(at, cost).fit == Fit::Now => {
            ledger.admit(at, cost, id)
        }
        Ask::Take { cost, id } => ledger.refuse(at, cost, id),
        Ask::Look { cost } => ledger.standing(at, cost),
        Ask::Refund { id, .. } => ledger.refund(at, id),
        Ask::Renew { id } => ledger.renew(at, id),
        Ask::Reserve { cost, id, until } => match ledger.standing_of_reservation(at, cost).fit {
            Fit::Now => ledger.reserve(at, cost, id, until),
            Fit::At(_) | Fit::Never => ledger.refuse_reservation(at, cost, id),
        },
        Ask::Extend { id, until, .. } => ledger.extend(at, id, until),
        Ask::Settle { id, cost, .. } => ledger.settle(at, id, cost),
        Ask::Forget => unreachable!("no history forgets"),
    }
}
