//! Reservations at their bounds, in encoded cells, and in cells that are merged.

use tollgate_core::algo::{
    Anchor, Concurrency, FixedWindow, SlidingLog, TokenBucket, fixed_window, sliding_log,
    token_bucket,
};
use tollgate_core::decide::{ReservedCell, assess_operation, charge_refused, join};
use tollgate_core::{
    Admission, Algorithm, Cell, ChargeId, ChargePosition, Cost, Deduplication, Limit,
    MAX_RESERVATIONS, Millis, OnExpiry, Operation, Refusals, Reservation, ReservationTerms,
    StoredState, Timestamp, assess, decide,
};

const END: u64 = 1_700_000_060_000;

fn at(millis_before_end: u64) -> Timestamp {
    Timestamp::from_millis(END - millis_before_end)
}

fn limit(at_most: u64) -> Limit {
    let window = FixedWindow::new(5_000, Millis::from_secs(3_600), Anchor::FirstRequest).unwrap();
    let terms = ReservationTerms { at_most, max: Millis::from_secs(60), ..Default::default() };
    let limit = Limit::new("limit", Algorithm::FixedWindow(window)).unwrap();
    limit.with_reservation_terms(terms).unwrap()
}

fn reservation(id: u128, units: u64, until: Timestamp) -> Reservation {
    let position = ChargePosition(END);
    Reservation { id: ChargeId(id), units, position, until, on_expiry: OnExpiry::Release }
}

fn reserved(used: u64, reservations: Vec<Reservation>) -> Cell {
    let cell = Cell::FixedWindow(fixed_window::State { used, resets_at: at(0) });
    Cell::Reserved(Box::new(ReservedCell { cell, reservations }))
}

fn reserve(units: u64) -> Operation {
    Operation::Reserve { cost: Cost::up_to(units), id: ChargeId(u128::MAX), until: at(1_000) }
}

#[test]
fn a_cell_of_invalid_reservations_is_not_decoded() {
    let (sooner, later) = (reservation(1, 2, at(500)), reservation(2, 3, at(400)));
    let valid = reserved(5, vec![sooner, later]);
    assert_eq!(Cell::from_bytes(&valid.to_bytes()), Some(valid.clone()));
    let of = |cell| {
        let reservations = vec![sooner];
        Cell::Reserved(Box::new(ReservedCell { cell, reservations }))
    };
    let limit = Concurrency::new(5, Millis::from_secs(60)).unwrap();
    let limit = Limit::new("permits", Algorithm::Concurrency(limit)).unwrap();
    let charge = Operation::Charge { cost: Cost::ONE, id: ChargeId(1) };
    let (_, permits) = decide(None, &limit, charge, at(1_000));
    for invalid in [
        reserved(5, vec![later, sooner]),
        reserved(5, vec![reservation(1, 0, at(500))]),
        reserved(5, Vec::new()),
        of(permits.unwrap()),
        of(valid),
    ] {
        assert_eq!(Cell::from_bytes(&invalid.to_bytes()), None, "{invalid:?}");
    }
}

#[test]
fn a_reservation_waits_until_the_first_of_too_many_expires() {
    let (limit, count) = (limit(5_000), MAX_RESERVATIONS as u64);
    let many = (0..count).map(|id| reservation(id.into(), 1, at(900 - id / 2))).collect();
    let full = reserved(count, many);
    let admission =
        |cell: &Cell, now| assess_operation(Some(cell), &limit, reserve(1), now).admission;
    assert_eq!(admission(&full, at(1_000)), Admission::At(at(900)));
    assert_eq!(admission(&full, at(900)), Admission::Now);
    let terms = self::limit(4);
    let four = vec![reservation(1, 1, at(900)), reservation(2, 3, at(800))];
    for (units, expected) in [
        (1, Admission::At(at(900))),
        (2, Admission::At(at(800))),
        (4, Admission::At(at(800))),
        (5, Admission::Never),
    ] {
        let cell = reserved(4, four.clone());
        let reading = assess_operation(Some(&cell), &terms, reserve(units), at(1_000));
        assert_eq!(reading.admission, expected, "{units}");
    }
}

#[test]
fn reservations_from_too_far_in_the_future_do_not_count() {
    let limit = limit(4).with_skew_max(Millis::ZERO);
    let cell = reserved(4, vec![reservation(1, 4, at(900))]);
    let earlier = at(2 * 3_600_000);
    let reading = assess_operation(Some(&cell), &limit, reserve(4), earlier);
    assert_eq!(reading.admission, Admission::Now);
}

#[test]
fn a_permit_is_not_a_reservation() {
    let permits = Concurrency::new(5, Millis::from_secs(60)).unwrap();
    let limit = limit(1).with_candidate(Algorithm::Concurrency(permits));
    let candidate = limit.candidate().unwrap();
    let seen = assess_operation(None, candidate, reserve(2), at(1_000));
    let (reading, _) = decide(None, candidate, reserve(2), at(1_000));
    assert_eq!((seen.admission, reading.admission), (Admission::Now, Admission::Now));
}

#[test]
fn merged_reservations_release_the_fewest_units_at_the_latest_time() {
    let limit = limit(5_000);
    let one = reservation(1, 5, at(900));
    let other = Reservation { on_expiry: OnExpiry::Charge, ..reservation(1, 3, at(800)) };
    let merged = |one: Reservation, other: Reservation| {
        let (one, other) = (reserved(5, vec![one]), reserved(5, vec![other]));
        match join(Some(one), other, &limit, at(1_000)) {
            Some(Cell::Reserved(reserved)) => reserved.reservations,
            other => panic!("{other:?}"),
        }
    };
    let both = Reservation { units: 3, until: at(800), ..one };
    assert_eq!(merged(one, reservation(1, 3, at(800))), [both]);
    let charged = Reservation { on_expiry: OnExpiry::Charge, ..both };
    assert_eq!(merged(one, other), [charged]);
    assert_eq!(merged(other, one), [charged]);
    let alone = |one: Reservation| Reservation { on_expiry: OnExpiry::Charge, ..one };
    let second = reservation(2, 4, at(700));
    assert_eq!(merged(one, second), [alone(one), alone(second)]);
}

/// The log of a limit with an overdraft has at most as many entries as the largest quota.
#[test]
fn the_oldest_entries_of_the_longest_log_become_one() {
    let most = sliding_log::MAX_QUOTA;
    let log = SlidingLog::new(most, Millis::from_secs(3_600)).unwrap();
    let terms = ReservationTerms { overdraft: 10, ..ReservationTerms::default() };
    let limit = Limit::new("log", Algorithm::SlidingLog(log)).unwrap();
    let limit = limit.with_reservation_terms(terms).unwrap();
    let entry = |index: u64| sliding_log::Entry { at: at(20_000 - index), used: 1 };
    let state = sliding_log::State { entries: (0..most).map(entry).collect() };
    let reservations = vec![Reservation {
        position: ChargePosition(entry(0).at.as_millis()),
        ..reservation(1, 1, at(0))
    }];
    let cell =
        Cell::Reserved(Box::new(ReservedCell { cell: Cell::SlidingLog(state), reservations }));
    let (position, cost) = (ChargePosition::default(), Cost::up_to(4));
    let settlement = Operation::Settle { id: ChargeId(1), position, cost };
    let (reading, next) = decide(Some(cell), &limit, settlement, at(10));
    assert_eq!((reading.added, reading.used), (3, most + 3));
    let Some(Cell::SlidingLog(next)) = next else { panic!("{next:?}") };
    let ends = [next.entries[0], next.entries[1], next.entries[most as usize - 1]];
    let newest = sliding_log::Entry { at: at(10), used: 3 };
    assert_eq!(ends, [sliding_log::Entry { used: 2, ..entry(1) }, entry(2), newest]);
    assert_eq!(next.entries.len() as u64, most);
}

fn charge(units: u64) -> Operation {
    Operation::Charge { cost: Cost::up_to(units), id: ChargeId(u128::MAX) }
}

fn refund(units: u64, position: u64) -> Operation {
    let (position, deduplication) = (ChargePosition(position), Deduplication::Unneeded);
    Operation::Refund { cost: Cost::up_to(units), position, id: ChargeId(9), deduplication }
}

fn settle(units: u64) -> Operation {
    let position = ChargePosition::default();
    Operation::Settle { id: ChargeId(1), position, cost: Cost::up_to(units) }
}

/// A refused charge, a peek and a refund of nothing leave even expired reservations in the cell.
#[test]
fn what_counts_nothing_leaves_the_reservations_as_they_are() {
    let limit = limit(4);
    let expired = reservation(2, 1, at(2_000));
    let cell = reserved(4_998, vec![expired, reservation(1, 3, at(500))]);
    for operation in [charge(4), charge(0), reserve(2), reserve(0), refund(2, 0)] {
        let (reading, next) = decide(Some(cell.clone()), &limit, operation, at(1_000));
        assert_eq!(reading.used, 4_997, "{operation:?}");
        assert_eq!(next.as_ref(), Some(&cell), "{operation:?}");
    }
}

/// A limit that counts refusals counts a charge that another limit refused, but reserves nothing.
#[test]
fn a_refused_reservation_counts_and_reserves_nothing() {
    let counting = limit(5_000).with_refusals(Refusals::Counted).unwrap();
    let cell = reserved(2_000, vec![reservation(1, 3, at(500))]);
    for operation in [charge(2_000), reserve(2_000)] {
        for (limit, used) in [(&counting, 4_000), (&limit(5_000), 2_000)] {
            let (reading, next) = charge_refused(Some(cell.clone()), limit, operation, at(1_000));
            assert_eq!((reading.admission, reading.used), (Admission::Now, used), "{operation:?}");
            let Some(Cell::Reserved(next)) = next else { panic!("{next:?}") };
            assert_eq!(next.reservations, [reservation(1, 3, at(500))], "{operation:?}");
            let counted = Cell::FixedWindow(fixed_window::State { used, resets_at: at(0) });
            assert_eq!(next.cell, counted);
        }
    }
}

#[test]
fn a_refund_next_to_a_reservation_returns_only_units_of_charges() {
    let cell = reserved(5, vec![reservation(1, 3, at(500))]);
    let (reading, next) = decide(Some(cell), &limit(5), refund(2, END), at(1_000));
    assert_eq!((reading.refunded, reading.used, reading.reserved), (2, 3, 3));
    assert_eq!(next, Some(reserved(3, vec![reservation(1, 3, at(500))])));
}

/// The state before an operation can be one that the operation creates, or removes.
#[test]
fn readings_report_whether_there_was_a_state_before_the_operation() {
    let window = limit(4);
    let over = reserved(4, vec![reservation(1, 4, at(500))]);
    let after_reset = Timestamp::from_millis(END + 1);
    for (cell, operation, now) in [
        (Some(over), charge(1), after_reset),
        (None, charge(1), at(1_000)),
        (None, reserve(1), at(2_000)),
    ] {
        let (reading, _) = decide(cell, &window, operation, now);
        assert_eq!((reading.found, reading.used), (StoredState::Missing, 1), "{operation:?}");
    }
    let bucket = TokenBucket::new(10, Millis::from_secs(3_600), 10).unwrap();
    let bucket = Limit::new("limit", Algorithm::TokenBucket(bucket)).unwrap();
    let state = token_bucket::State { level: 6 * 3_600_000, at: at(1_000) };
    let with = |until| {
        let position = ChargePosition(END + 3_600_000);
        let reservations = vec![Reservation { position, ..reservation(1, 4, until) }];
        Cell::Reserved(Box::new(ReservedCell { cell: Cell::TokenBucket(state), reservations }))
    };
    let kept = match with(at(1_000)) {
        Cell::Reserved(mut reserved) => {
            reserved.reservations[0].on_expiry = OnExpiry::Charge;
            Cell::Reserved(reserved)
        }
        cell => cell,
    };
    for (cell, operation) in [(kept, refund(4, END + 3_600_000)), (with(at(500)), settle(0))] {
        let (reading, next) = decide(Some(cell), &bucket, operation, at(1_000));
        assert_eq!((reading.found, reading.refunded), (StoredState::Present, 4), "{operation:?}");
        let full = assess(next.as_ref(), &bucket, Cost::PEEK, at(1_000));
        assert_eq!((full.found, full.used), (StoredState::Missing, 0), "{operation:?}");
    }
}

/// A settlement succeeds although the limit has no room for another unit.
#[test]
fn a_settlement_succeeds_on_a_full_limit() {
    let cell = reserved(5_000, vec![reservation(1, 3, at(500))]);
    let (reading, next) = decide(Some(cell), &limit(4), settle(3), at(1_000));
    assert_eq!((reading.admission, reading.refunded, reading.added), (Admission::Now, 0, 0));
    assert_eq!(
        next,
        Some(Cell::FixedWindow(fixed_window::State { used: 5_000, resets_at: at(0) }))
    );
    let cell = reserved(5_000, vec![reservation(1, 3, at(500))]);
    let (reading, _) = decide(Some(cell), &limit(4), settle(1), at(1_000));
    assert_eq!((reading.refunded, reading.used), (2, 4_998));
}
