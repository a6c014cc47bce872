//! Traces in which units are refunded, settled, extended and reset.

use proptest::prelude::*;
use tollgate::model::{
    Algorithm, Charge, ChargeId, ChargePosition, Cost, Deduplication, Limit, Millis, Operation,
    Reading, ReservationTerms, Subject, Timestamp,
};
use tollgate::store::Memory;

use crate::setup::{NOW, charge, comparable, fixed, in_flight, of_every_kind};

/// An operation on a limit and a subject, or on an earlier charge.
#[derive(Clone, Debug)]
pub(crate) enum Deed {
    Take(u64),
    Look(u64),
    Reserve(u64),
    /// Refunds a charge. The number counts back from the last charge.
    Refund(usize, Deduplication),
    Settle(usize, u64),
    Extend(usize),
    Renew(usize),
    Forget,
}

/// One call: the time in milliseconds since the previous call, a node, a limit, a user and an
/// operation.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) later: u64,
    pub(crate) node: usize,
    pub(crate) limit: usize,
    pub(crate) user: usize,
    pub(crate) deed: Deed,
}

pub(crate) fn steps(users: usize) -> impl Strategy<Value = Vec<Step>> {
    let deduplication = prop_oneof![Just(Deduplication::Unneeded), Just(Deduplication::ById)];
    let deed = prop_oneof![
        6 => (0..4_u64).prop_map(Deed::Take),
        1 => (0..4_u64).prop_map(Deed::Look),
        2 => (0..4_u64).prop_map(Deed::Reserve),
        4 => (0..6_usize, deduplication).prop_map(|(back, deduplication)| Deed::Refund(back, deduplication)),
        3 => (0..6_usize, 0..5_u64).prop_map(|(back, cost)| Deed::Settle(back, cost)),
        1 => (0..6_usize).prop_map(Deed::Extend),
        1 => (0..6_usize).prop_map(Deed::Renew),
        1 => Just(Deed::Forget),
    ];
    let later = prop_oneof![4 => Just(0), 4 => 1..50_u64, 1 => 1_000..30_000_u64];
    // There are few limits, so many calls use the same limit.
    let step = (later, 0..4_usize, 0..LIMITS, 0..users, deed);
    let step =
        step.prop_map(|(later, node, limit, user, deed)| Step { later, node, limit, user, deed });
    prop::collection::vec(step, 1..80)
}

/// Returns the same trace with each receipt redeemed once.
pub(crate) fn once(trace: &[Step]) -> Vec<Step> {
    let once = |step: &Step| match step.deed {
        Deed::Refund(back, _) => {
            Step { deed: Deed::Refund(back, Deduplication::Unneeded), ..step.clone() }
        }
        _ => step.clone(),
    };
    trace.iter().map(once).collect()
}

const LIMITS: usize = 8;

/// The index of the limit with windows that begin with the first request.
const FIRST: usize = 0;

/// Returns a limit of every algorithm and variant except limits that count refusals. Reservations
/// on these limits do not expire during a trace.
pub(crate) fn limits() -> Vec<Limit> {
    let kinds = [fixed("first", 4), in_flight("second", 2)];
    let kinds = kinds.into_iter().chain(of_every_kind(4).into_iter().take(6));
    let terms = ReservationTerms { max: Millis::from_secs(86_400), ..ReservationTerms::default() };
    let limits: Vec<_> = kinds
        .map(|limit| match limit.algorithm() {
            // Permits have an expiry of their own.
            Algorithm::Concurrency(_) => limit,
            // A log in debt drops its oldest entries when it is called. A store that receives no
            // calls keeps these entries.
            Algorithm::SlidingLog(_) => limit.with_reservation_terms(terms).unwrap(),
            // These limits have an overdraft if their algorithm supports one.
            _ => {
                let in_debt = limit
                    .clone()
                    .with_reservation_terms(ReservationTerms { overdraft: 2, ..terms });
                in_debt.or_else(|_| limit.with_reservation_terms(terms)).unwrap()
            }
        })
        .collect();
    assert_eq!(limits.len(), LIMITS);
    limits
}

/// An admitted charge, with its positions in the tested store and in the memory store that is
/// compared.
#[derive(Clone, Copy)]
struct Receipt {
    limit: usize,
    user: usize,
    id: ChargeId,
    cost: Cost,
    marks: [ChargePosition; 2],
    is_reserved: bool,
}

/// Runs `trace` through `apply_one` and through one memory store, and asserts that the answers are equal.
pub(crate) fn as_one_memory(
    trace: &[Step],
    limits: &[Limit],
    users: &[Subject],
    mut apply: impl FnMut(usize, &Step, Timestamp, &Charge<'_>) -> Reading,
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
        let operations_of =
            |receipt: Receipt, make: &dyn Fn(Receipt, ChargePosition) -> Operation| {
                receipt.marks.map(|position| make(receipt, position))
            };
        let expected = match step.deed {
            // If two windows are merged into one, a reservation of the later window keeps its
            // position.
            Deed::Reserve(units) if step.limit == FIRST => {
                Some([Operation::Charge { cost: cost(units), id }; 2])
            }
            Deed::Take(units) => Some([Operation::Charge { cost: cost(units), id }; 2]),
            Deed::Look(units) => Some([Operation::Peek { cost: cost(units) }; 2]),
            Deed::Reserve(units) => Some([Operation::Reserve { cost: cost(units), id, until }; 2]),
            Deed::Forget => Some([Operation::Reset; 2]),
            Deed::Refund(back, deduplication) => {
                find(back, deduplication == Deduplication::Unneeded)
                    .filter(|receipt| !receipt.is_reserved)
                    .map(|receipt| {
                        operations_of(receipt, &|Receipt { cost, id, .. }, position| {
                            Operation::Refund { cost, position, id, deduplication }
                        })
                    })
            }
            Deed::Settle(back, units) => find(back, false).map(|receipt| {
                operations_of(receipt, &|it, position| Operation::Settle {
                    id: it.id,
                    position,
                    cost: cost(units),
                })
            }),
            Deed::Extend(back) => find(back, false).map(|receipt| {
                operations_of(receipt, &|it, position| Operation::Extend {
                    id: it.id,
                    position,
                    until,
                })
            }),
            Deed::Renew(back) => find(back, false)
                .map(|receipt| operations_of(receipt, &|it, _| Operation::Renew { id: it.id })),
        };
        let Some([ours, exact]) = expected else { continue };
        let (limit_of, subject) = (&limits[limit], &users[user]);
        let reading = apply(number, step, now, &charge(limit_of, subject, ours));
        let exact = one.apply_now(now, &[charge(limit_of, subject, exact)]).unwrap();
        let met = (number, limit_of.name(), now, ours);
        prop_assert_eq!(
            comparable(&[reading].into_iter().collect()),
            comparable(&exact),
            "{:?}",
            met
        );
        prop_assert_eq!(
            (reading.refunded, reading.added, reading.reserved),
            (exact[0].refunded, exact[0].added, exact[0].reserved),
            "{:?}",
            met
        );
        if let Some((cost, id)) = ours.as_charge()
            && cost != Cost::PEEK
            && exact.all_admitted()
        {
            let marks = [reading.position, exact[0].position];
            let is_reserved = matches!(ours, Operation::Reserve { .. });
            receipts.push(Receipt { limit, user, id, cost, marks, is_reserved });
        }
    }
    Ok(())
}
