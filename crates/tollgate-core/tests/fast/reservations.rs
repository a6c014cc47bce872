//! Reservations at their bounds, in encoded cells, and in cells that are merged.

use tollgate_core::algo::{
    Anchor, Concurrency, FixedWindow, SlidingLog, fixed_window, sliding_log,
};
use tollgate_core::decide::{ReservedCell, assess_operation, join};
use tollgate_core::{
    Admission, Algorithm, Cell, ChargeId, ChargePosition, Cost, Limit, MAX_RESERVATIONS, Millis,
    OnExpiry, Operation, Reservation, ReservationTerms, Timestamp, decide,
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
