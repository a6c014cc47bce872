//! Tests of the checker with reservations. Correct histories pass the check, and each fault of
//! reservations is found.

use tollgate_conformance::Cells;
use tollgate_conformance::history::{Allowance, Recorded, Report, ReservingWorkload, Rule};
use tollgate_core::{
    Admission, Charge, ChargeId, Cost, Limit, OnExpiry, Operation, ReservationTerms, Store,
    Timestamp,
};

use super::faults::{Answer, Broken, Fault, Lossy, sound};
use super::{at_once, check_history};

const SEEDS: u64 = 5;
/// The number of calls, enough for many reservations of one caller to expire.
const CALLS: u64 = 4_000;

fn judge<S: Store>(workload: &ReservingWorkload, store: S) {
    println!("seed {}", workload.seed);
    check_history(store, async |store, caller| workload.call(store, caller).await);
}

#[test]
fn eight_callers_that_reserve_and_die_pass() {
    for seed in 0..10 {
        judge(
            &ReservingWorkload::new(seed, ReservingWorkload::limits_of_each_kind()),
            Cells::default(),
        );
        judge(
            &ReservingWorkload::new(seed, ReservingWorkload::limits_of_each_kind()),
            Lossy::default(),
        );
    }
}

/// Returns the report on one caller that uses the limit with this name.
fn report(fault: Fault, seed: u64, name: &str) -> Report {
    let limits = ReservingWorkload::limits_of_each_kind();
    let limits: Vec<_> = limits.into_iter().filter(|limit| limit.name() == name).collect();
    assert_eq!(limits.len(), 1, "{name}");
    let mut workload = ReservingWorkload::new(seed, limits);
    workload.calls = CALLS;
    let store = Recorded::new(Broken { cells: Cells::default(), fault });
    at_once(workload.call(&store, 0));
    store.history().check(Allowance::default())
}

#[test]
fn every_fault_of_a_hold_is_found_by_its_rule() {
    type Row = (&'static str, Fault, &'static str, Rule);
    let table: &[Row] = &[
        ("a settlement that keeps what it says it gave back", keeps, "released", Rule::Refusal),
        ("a settlement that gives back in secret", gives_in_secret, "released", Rule::Order),
        ("a settlement that takes in secret", takes_in_secret, "released", Rule::Refusal),
        ("a settlement that says that it took more", boasts, "released", Rule::Settlement),
        ("a settlement that gives back more than was held", doubles, "released", Rule::Settlement),
        ("a settlement twice", settles_twice, "released", Rule::Settlement),
        ("an overdraft beyond the terms", overdraws, "released", Rule::Reading),
        ("an overdraft beyond the terms", overdraws, "overdrawn", Rule::Reading),
        ("a hold that stays after its end", never_releases, "released", Rule::Refusal),
        ("a hold that is released though it is charged", releases, "charged", Rule::Order),
        ("a hold that runs out early", runs_out_early, "released", Rule::Order),
        ("an extension that is not kept", forgets_extensions, "released", Rule::Order),
    ];
    let mut silent = Vec::new();
    for (what, fault, limit, rule) in table {
        for seed in 0..SEEDS {
            report(sound, seed, limit).assert_sound();
            let report = report(*fault, seed, limit);
            if !report.violations.iter().any(|violation| violation.rule == *rule) {
                silent
                    .push(format!("{what} of {limit}, seed {seed}: {rule:?} is silent\n{report}"));
            }
        }
    }
    assert!(silent.is_empty(), "{}", silent.join("\n"));
}

/// Returns the only charge of a call.
fn only<'c, 'a>(charges: &'c [Charge<'a>]) -> &'c Charge<'a> {
    let [charge] = charges else { panic!("{} charges", charges.len()) };
    charge
}

/// Executes `charges` with the reservation terms `terms` instead of the limits' own terms.
fn by_terms(
    cells: &Cells,
    now: Timestamp,
    charges: &[Charge<'_>],
    terms: impl Fn(ReservationTerms) -> ReservationTerms,
) -> Answer {
    let charge = only(charges);
    let limit: Limit = charge
        .limit
        .clone()
        .with_reservation_terms(terms(*charge.limit.reservation_terms()))
        .unwrap();
    sound(cells, now, &[Charge { limit: &limit, ..*charge }])
}

fn keeps(cells: &Cells, now: Timestamp, charges: &[Charge<'_>]) -> Answer {
    let readings = sound(cells, now, charges)?;
    let charge = only(charges);
    if matches!(charge.operation, Operation::Settle { .. }) && readings[0].refunded > 0 {
        let operation =
            Operation::Charge { cost: Cost::up_to(readings[0].refunded), id: ChargeId(u128::MAX) };
        sound(cells, now, &[Charge { operation, ..*charge }])?;
    }
    Ok(readings)
}

fn gives_in_secret(cells: &Cells, now: Timestamp, charges: &[Charge<'_>]) -> Answer {
    let mut readings = sound(cells, now, charges)?;
    readings[0].refunded = 0;
    Ok(readings)
}

fn takes_in_secret(cells: &Cells, now: Timestamp, charges: &[Charge<'_>]) -> Answer {
    let mut readings = sound(cells, now, charges)?;
    readings[0].added = 0;
    Ok(readings)
}

fn boasts(cells: &Cells, now: Timestamp, charges: &[Charge<'_>]) -> Answer {
    let mut readings = sound(cells, now, charges)?;
    if readings[0].added > 0 {
        readings[0].added += 5;
    }
    Ok(readings)
}

fn doubles(cells: &Cells, now: Timestamp, charges: &[Charge<'_>]) -> Answer {
    let mut readings = sound(cells, now, charges)?;
    readings[0].refunded *= 2;
    Ok(readings)
}

fn settles_twice(cells: &Cells, now: Timestamp, charges: &[Charge<'_>]) -> Answer {
    let mut readings = sound(cells, now, charges)?;
    if matches!(only(charges).operation, Operation::Settle { .. }) {
        readings[0].admission = Admission::Now;
    }
    Ok(readings)
}

fn overdraws(cells: &Cells, now: Timestamp, charges: &[Charge<'_>]) -> Answer {
    by_terms(cells, now, charges, |terms| ReservationTerms {
        overdraft: terms.overdraft + 6,
        ..terms
    })
}

fn never_releases(cells: &Cells, now: Timestamp, charges: &[Charge<'_>]) -> Answer {
    by_terms(cells, now, charges, |terms| ReservationTerms { on_expiry: OnExpiry::Charge, ..terms })
}

fn releases(cells: &Cells, now: Timestamp, charges: &[Charge<'_>]) -> Answer {
    by_terms(cells, now, charges, |terms| ReservationTerms {
        on_expiry: OnExpiry::Release,
        ..terms
    })
}

fn runs_out_early(cells: &Cells, now: Timestamp, charges: &[Charge<'_>]) -> Answer {
    let charge = only(charges);
    let Operation::Reserve { cost, id, until } = charge.operation else {
        return sound(cells, now, charges);
    };
    let half = Timestamp::from_millis(now.as_millis().midpoint(until.as_millis()));
    sound(
        cells,
        now,
        &[Charge { operation: Operation::Reserve { cost, id, until: half }, ..*charge }],
    )
}

fn forgets_extensions(cells: &Cells, now: Timestamp, charges: &[Charge<'_>]) -> Answer {
    let charge = only(charges);
    let Operation::Extend { id, position, .. } = charge.operation else {
        return sound(cells, now, charges);
    };
    // The fault sends `now` as the new end. The end stays unchanged, because an extension never
    // shortens a reservation.
    sound(
        cells,
        now,
        &[Charge { operation: Operation::Extend { id, position, until: now }, ..*charge }],
    )
}
