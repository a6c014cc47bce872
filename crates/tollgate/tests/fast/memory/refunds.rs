use tollgate::model::{Charge, ChargeId, ChargePosition, MAX_EXACT};

use super::world::*;

#[test]
fn a_guarded_refund_is_done_once() {
    let store = store_of(100);
    for limit in [
        fixed_window(5, 10_000),
        sliding_window(5, 10_000, 100),
        sliding_log(5, 10_000),
        token_bucket(5, 10_000, 5),
    ] {
        let who = subject("who");
        let first = apply_one(&store, START, &limit, &who, take(2, 1)).unwrap();
        apply_one(&store, START, &limit, &who, take(2, 2)).unwrap();
        let back = apply_one(&store, at(1), &limit, &who, refund(2, first.position, 1)).unwrap();
        assert_eq!((back.refunded, back.used), (2, 2), "{}", limit.name());
        let again = apply_one(&store, at(2), &limit, &who, refund(2, first.position, 1)).unwrap();
        assert_eq!((again.refunded, again.used), (0, 2), "{}", limit.name());
    }
    assert_eq!(store.stats().refunds, 4);
}

#[test]
fn a_remembered_refund_is_not_pushed_out_and_leaves_with_its_window() {
    let store = store_of(64);
    let limit = fixed_window(5, 10_000);
    let who = subject("who");
    let first = apply_one(&store, START, &limit, &who, take(1, 1)).unwrap();
    apply_one(&store, START, &limit, &who, take(4, 2)).unwrap();
    assert_eq!(
        apply_one(&store, START, &limit, &who, refund(1, first.position, 1)).unwrap().refunded,
        1
    );
    apply_one(&store, START, &limit, &who, take(1, 3)).unwrap();
    for number in 0..1_000 {
        is_admitted(&store, START, &limit, &number.to_string());
    }
    assert_eq!(
        apply_one(&store, START, &limit, &who, refund(1, first.position, 1)).unwrap().refunded,
        0
    );
    for number in 0..1_000 {
        assert!(is_admitted(&store, at(20_000), &limit, &number.to_string()));
    }
    assert_eq!(store.stats().refunds, 0);
}

#[test]
fn a_refund_that_cannot_be_remembered_is_not_done() {
    let store = store_of(2);
    let limit = fixed_window(2, 10_000);
    let who = subject("who");
    let first = apply_one(&store, START, &limit, &who, take(2, 1)).unwrap();
    apply_one(&store, START, &limit, &subject("other"), take(2, 2)).unwrap();
    // Only one of two entries may be pinned.
    let flights = concurrency(5, 60_000);
    apply_one(&store, START, &flights, &who, take(1, 7)).unwrap();
    let back = apply_one(&store, START, &limit, &who, refund(2, first.position, 1)).unwrap();
    assert_eq!((back.refunded, store.stats().full), (0, 1));
    assert_eq!(used(&store, START, &limit, "who"), 2);
    // The other entry is removed, and there is room.
    let back = apply_one(&store, at(9_999), &limit, &who, refund(2, first.position, 1)).unwrap();
    assert_eq!(back.refunded, 0);
    assert_eq!(
        apply_one(&store, at(10_000), &limit, &who, refund(2, first.position, 1)).unwrap().used,
        0
    );
}

#[test]
fn refunds_of_one_call_stand_each_for_itself() {
    let store = store_of(100);
    let (limit, flights) = (fixed_window(5, 10_000), concurrency(5, 10_000));
    let who = subject("who");
    let taken = [
        Charge { limit: &limit, subject: &who, operation: take(1, 9) },
        Charge { limit: &flights, subject: &who, operation: take(1, 9) },
    ];
    let marks: Vec<ChargePosition> =
        store.apply_now(START, &taken).unwrap().iter().map(|reading| reading.position).collect();
    let back = [
        Charge { operation: refund(1, ChargePosition(12_345), 9), ..taken[0] },
        Charge { operation: refund(1, marks[1], 9), ..taken[1] },
    ];
    let readings = store.apply_now(at(1), &back).unwrap();
    assert_eq!([readings[0].refunded, readings[1].refunded], [0, 1]);
    // No permits are left, and a refund that returned nothing is not recorded.
    assert_eq!((store.stats().entries, store.stats().refunds), (1, 0));
}

#[test]
fn a_receipt_with_an_impossible_mark_is_not_remembered_for_ever() {
    let store = store_of(100);
    let limit = token_bucket(5, 10_000, 5);
    let who = subject("who");
    apply_one(&store, START, &limit, &who, take(5, 1)).unwrap();
    // A position with bits above those of the algorithm belongs to no charge of this entry.
    let none =
        apply_one(&store, START, &limit, &who, refund(1, ChargePosition(u64::MAX), ChargeId(1).0))
            .unwrap();
    assert_eq!((none.refunded, store.stats().refunds), (0, 0));
    apply_one(&store, START, &limit, &who, refund(1, ChargePosition(MAX_EXACT), ChargeId(1).0))
        .unwrap();
    assert_eq!(store.stats().refunds, 1);
    for number in 0..100 {
        assert!(is_admitted(&store, at(60_000), &limit, &number.to_string()));
    }
    assert_eq!(store.stats().refunds, 0);
}
