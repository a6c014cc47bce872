//! Traces in which units are given back, settled, put off and forgotten.

use proptest::prelude::*;
use tollgate::core::{
    Algorithm, Ask, Charge, ChargeId, Cost, HoldTerms, Limit, Mark, Millis, Reading, Repeats,
    Subject, Timestamp,
};
use tollgate::store::Memory;

use crate::setup::{NOW, charge, fixed, in_flight, of_every_kind, told};

/// What is done with a limit and a subject, or with one of the charges before.
#[derive(Clone, Debug)]
pub(crate) enum Deed {
    Take(u64),
    Look(u64),
    Reserve(u64),
    /// Of the charge that is so many before the last.
    Refund(usize, Repeats),
    Settle(usize, u64),
    Extend(usize),
    Renew(usize),
    Forget,
}

/// One call: after so many milliseconds, asked through a node, on a limit and for a user.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) later: u64,
    pub(crate) node: usize,
    pub(crate) limit: usize,
    pub(crate) user: usize,
    pub(crate) deed: Deed,
}

pub(crate) fn steps(users: usize) -> impl Strategy<Value = Vec<Step>> {
    let repeats = prop_oneof![Just(Repeats::Impossible), Just(Repeats::Guarded)];
    let deed = prop_oneof![
        6 => (0..4_u64).prop_map(Deed::Take),
        1 => (0..4_u64).prop_map(Deed::Look),
        2 => (0..4_u64).prop_map(Deed::Reserve),
        4 => (0..6_usize, repeats).prop_map(|(back, repeats)| Deed::Refund(back, repeats)),
        3 => (0..6_usize, 0..5_u64).prop_map(|(back, cost)| Deed::Settle(back, cost)),
        1 => (0..6_usize).prop_map(Deed::Extend),
        1 => (0..6_usize).prop_map(Deed::Renew),
        1 => Just(Deed::Forget),
    ];
    let later = prop_oneof![4 => Just(0), 4 => 1..50_u64, 1 => 1_000..30_000_u64];
    // Few limits, so that many calls meet.
    let step = (later, 0..4_usize, 0..LIMITS, 0..users, deed);
    let step =
        step.prop_map(|(later, node, limit, user, deed)| Step { later, node, limit, user, deed });
    prop::collection::vec(step, 1..80)
}

/// The same, each receipt redeemed once.
pub(crate) fn once(trace: &[Step]) -> Vec<Step> {
    let once = |step: &Step| match step.deed {
        Deed::Refund(back, _) => {
            Step { deed: Deed::Refund(back, Repeats::Impossible), ..step.clone() }
        }
        _ => step.clone(),
    };
    trace.iter().map(once).collect()
}

const LIMITS: usize = 8;

/// The limit whose windows begin with the first request.
const FIRST: usize = 0;

/// Every kind of limit but those that count refusals, with reservations that nobody lets run out.
pub(crate) fn limits() -> Vec<Limit> {
    let kinds = [fixed("first", 4), in_flight("second", 2)];
    let kinds = kinds.into_iter().chain(of_every_kind(4).into_iter().take(6));
    let terms = HoldTerms { max: Millis::from_secs(86_400), ..HoldTerms::default() };
    let limits: Vec<_> = kinds
        .map(|limit| match limit.algorithm() {
            // Leases have a time of their own.
            Algorithm::Concurrency(_) => limit,
            // A log in debt forgets its oldest entries by itself, and a store that is left does not.
            Algorithm::SlidingLog(_) => limit.with_hold(terms).unwrap(),
            // As far as its kind knows of debts.
            _ => {
                let in_debt = limit.clone().with_hold(HoldTerms { overdraft: 2, ..terms });
                in_debt.or_else(|_| limit.with_hold(terms)).unwrap()
            }
        })
        .collect();
    assert_eq!(limits.len(), LIMITS);
    limits
}

/// A charge that was admitted, with where the store under test and the one memory put it.
#[derive(Clone, Copy)]
struct Receipt {
    limit: usize,
    user: usize,
    id: ChargeId,
    cost: Cost,
    marks: [Mark; 2],
    is_reserved: bool,
}

/// Runs `trace` through `ask` and through one memory: both are told the same.
pub(crate) fn as_one_memory(
    trace: &[Step],
    limits: &[Limit],
    users: &[Subject],
    mut ask: impl FnMut(usize, &Step, Timestamp, &Charge<'_>) -> Reading,
) -> Result<(), TestCaseError> {
    let one = Memory::default();
    let mut now = NOW;
    let mut receipts: Vec<Receipt> = Vec::new();
    for (number, step) in trace.iter().enumerate() {
        now = now.after(Millis::new(step.later));
        let (mut limit, mut user) = (step.limit, step.user);
        let id = ChargeId(number as u128 + 1);
        let until = NOW.after(Millis::from_secs(40_000));
        let cost = |units| Cost::new(units).unwrap();
        let mut found = None;
        let mut find = |back: usize, ends: bool| {
            let index = receipts.len().checked_sub(1 + back)?;
            let receipt = if ends { receipts.remove(index) } else { receipts[index] };
            (limit, user) = (receipt.limit, receipt.user);
            found = Some(receipt);
            Some(receipt)
        };
        let asks = |receipt: Receipt, make: &dyn Fn(Receipt, Mark) -> Ask| {
            receipt.marks.map(|mark| make(receipt, mark))
        };
        let asked = match step.deed {
            // Two windows that become one leave a reservation of the later where it was.
            Deed::Reserve(units) if step.limit == FIRST => {
                Some([Ask::Take { cost: cost(units), id }; 2])
            }
            Deed::Take(units) => Some([Ask::Take { cost: cost(units), id }; 2]),
            Deed::Look(units) => Some([Ask::Look { cost: cost(units) }; 2]),
            Deed::Reserve(units) => Some([Ask::Reserve { cost: cost(units), id, until }; 2]),
            Deed::Forget => Some([Ask::Forget; 2]),
            Deed::Refund(back, repeats) => find(back, repeats == Repeats::Impossible)
                .filter(|receipt| !receipt.is_reserved)
                .map(|receipt| {
                    asks(receipt, &|Receipt { cost, id, .. }, mark| Ask::Refund {
                        cost,
                        mark,
                        id,
                        repeats,
                    })
                }),
            Deed::Settle(back, units) => find(back, false).map(|receipt| {
                asks(receipt, &|it, mark| Ask::Settle { id: it.id, mark, cost: cost(units) })
            }),
            Deed::Extend(back) => find(back, false)
                .map(|receipt| asks(receipt, &|it, mark| Ask::Extend { id: it.id, mark, until })),
            Deed::Renew(back) => {
                find(back, false).map(|receipt| asks(receipt, &|it, _| Ask::Renew { id: it.id }))
            }
        };
        let Some([ours, exact]) = asked else { continue };
        let (limit_of, subject) = (&limits[limit], &users[user]);
        let reading = ask(number, step, now, &charge(limit_of, subject, ours));
        let exact = one.apply_now(now, &[charge(limit_of, subject, exact)]).unwrap();
        let met = (number, limit_of.name(), now, ours);
        prop_assert_eq!(told(&[reading].into_iter().collect()), told(&exact), "{:?}", met);
        prop_assert_eq!(
            (reading.given_back, reading.added, reading.held),
            (exact[0].given_back, exact[0].added, exact[0].held),
            "{:?}",
            met
        );
        if let Some((cost, id)) = ours.taken()
            && cost != Cost::PEEK
            && exact.all_fit()
        {
            let marks = [reading.mark, exact[0].mark];
            let is_reserved = matches!(ours, Ask::Reserve { .. });
            receipts.push(Receipt { limit, user, id, cost, marks, is_reserved });
        }
    }
    Ok(())
}
