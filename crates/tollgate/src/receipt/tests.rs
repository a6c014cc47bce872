use std::collections::HashSet;

use tollgate_core::StatusSet;
use tollgate_core::algo::{Anchor, FixedWindow};
use tollgate_core::policy::ResponseTerms;

use super::*;

/// Returns a receipt of two charges on one limit: of one unit for statuses from 200 to 299, and
/// of two units for statuses from 400 to 499, in the window after.
fn receipt_of_two_windows() -> Receipt {
    let window = FixedWindow::new(9, Millis::new(1_000), Anchor::Calendar).unwrap();
    let limit = Arc::new(Limit::new("limit", Algorithm::FixedWindow(window)).unwrap());
    let of = |units, statuses, window| {
        let cost = Cost::new(units).unwrap();
        let mut charge = PlannedCharge::new(Arc::clone(&limit), Subject::default(), cost);
        let terms = ResponseTerms { counted: Some(Arc::new(statuses)), refund: None };
        charge.conditions.push(ConditionalCost { cost, terms });
        let charges = [(charge, ChargePosition(window))];
        Some(Receipt::new(ChargeId(7), Purpose::Charge, charges.into_iter()))
    };
    let good = of(1, StatusSet::default().with(200, 299), 1_000);
    let bad = of(2, StatusSet::default().with(400, 499), 2_000);
    Receipt::joined(good, bad).unwrap()
}

/// The bug: if a status refunded only the charge in the second window, the refund had the id of
/// the first. A refund of the whole receipt then refunded the second charge again, and not the
/// first.
#[test]
fn a_refund_of_a_part_had_the_id_of_another_part() {
    let ids = |receipt: &Receipt| {
        let refund = |charge: &Charge<'_>| match charge.operation {
            Operation::Refund { cost, id, .. } => (cost.get(), id),
            other => panic!("{other:?}"),
        };
        receipt.refunds().iter().map(refund).collect::<Vec<_>>()
    };
    let [first, second] = ids(&receipt_of_two_windows())[..] else { panic!() };
    assert_eq!((first.0, second.0), (1, 2));
    assert_ne!(first.1, second.1);
    for (status, refund) in [(200, second), (400, first)] {
        let settlement = Settlement::Status { status, is_free: false };
        let part = receipt_of_two_windows().refundable(settlement);
        assert_eq!(ids(&part), [refund], "{status}");
    }
}

#[test]
fn ids_differ_between_charges_and_threads() {
    let threads = (0..4)
        .map(|_| std::thread::spawn(|| (0..1_000).map(|_| new_charge_id().0).collect::<Vec<_>>()));
    let threads: Vec<_> = threads.collect();
    let ids: HashSet<u128> =
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    assert_eq!(ids.len(), 4_000);
}
