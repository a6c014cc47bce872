//! Tests with histories created by hand, at the boundary between valid and invalid histories.

use tollgate_conformance::PlainHash;
use tollgate_conformance::history::{
    Allowance, Call, History, Loss, Moment, NEVER, Outcome, RecordedCharge, Report, Rule,
};
use tollgate_core::algo::{Anchor, FixedWindow};
use tollgate_core::{
    Admission, Algorithm, ChargeId, ChargePosition, Cost, DecisionSource, Limit, Millis, Operation,
    Reading, Readings, StoreError, StoredState, Subject, Timestamp, Value,
};

const NOW: u64 = 1_000_000;
pub(super) const RESET: Timestamp = Timestamp::from_millis(NOW + 1_000);
pub(super) const QUOTA: u64 = 10;

pub(super) fn call(issued: Moment, answered: Moment, cost: u64, outcome: Outcome) -> Call {
    let window = FixedWindow::new(QUOTA, Millis::new(1_000), Anchor::FirstRequest).unwrap();
    let limit = Limit::new("core", Algorithm::FixedWindow(window)).unwrap();
    let subject = Subject::new([("user", Value::Clear(b"42"))], &PlainHash);
    let operation =
        Operation::Charge { cost: Cost::new(cost).unwrap(), id: ChargeId(u128::from(issued)) };
    let charges = vec![RecordedCharge { limit, subject, operation }];
    Call { issued, answered, now: Timestamp::from_millis(NOW), charges, outcome }
}

pub(super) fn reading(used: u64) -> Reading {
    let position = ChargePosition(RESET.as_millis());
    Reading {
        used,
        full_reset_at: RESET,
        position,
        found: StoredState::Present,
        ..Reading::default()
    }
}

/// Returns an admitted charge of `cost`, with `used` units used after it.
pub(super) fn admitted(issued: Moment, answered: Moment, cost: u64, used: u64) -> Call {
    call(issued, answered, cost, Outcome::Answered(Readings::one(reading(used))))
}

fn unknown(issued: Moment, cost: u64) -> Call {
    call(issued, NEVER, cost, Outcome::Unknown)
}

fn check(calls: &[Call], allowance: Allowance) -> Report {
    History { calls: calls.to_vec(), ..History::default() }.check(allowance)
}

fn broken_rules(calls: &[Call]) -> Vec<Rule> {
    let report = check(calls, Allowance::default());
    report.violations.iter().map(|violation| violation.rule).collect()
}

#[test]
fn calls_that_overlap_may_be_reported_in_any_order() {
    // The call that was sent first and answered last was counted between the other two calls.
    let calls = [admitted(0, 9, 2, 5), admitted(1, 4, 3, 3), admitted(2, 5, 1, 6)];
    assert_eq!(broken_rules(&calls), []);
    let calls = [admitted(0, 3, 2, 5), admitted(4, 5, 3, 3)];
    assert_eq!(broken_rules(&calls), [Rule::Order]);
}

#[test]
fn a_gap_is_filled_by_calls_without_an_answer_that_were_asked_before_it_was_seen() {
    let seen = [admitted(0, 1, 1, 1), admitted(4, 5, 1, 5)];
    assert_eq!(broken_rules(&seen), [Rule::Refusal]);
    let with = |others: &[Call]| [&seen[..], others].concat();
    assert_eq!(broken_rules(&with(&[unknown(2, 3)])), []);
    assert_eq!(broken_rules(&with(&[unknown(2, 2), unknown(3, 1)])), []);
    assert_eq!(broken_rules(&with(&[unknown(2, 2)])), [Rule::Refusal]);
    assert_eq!(broken_rules(&with(&[unknown(6, 3)])), [Rule::Refusal]);
    let certain = Call { outcome: Outcome::NotCarriedOut, ..unknown(2, 3) };
    assert_eq!(broken_rules(&with(&[certain])), [Rule::Refusal]);
}

#[test]
fn what_is_counted_exactly_to_the_quota_passes_and_one_more_does_not() {
    let mut calls: Vec<_> =
        (1..=QUOTA).map(|used| admitted(used * 2, used * 2 + 1, 1, used)).collect();
    let refusal = Reading {
        admission: Admission::At(RESET),
        fits_again: Admission::At(RESET),
        ..reading(QUOTA)
    };
    calls.push(call(90, 91, 1, Outcome::Answered(Readings::one(refusal))));
    assert_eq!(broken_rules(&calls), []);
    calls.push(admitted(92, 93, 1, QUOTA));
    assert_eq!(broken_rules(&calls), [Rule::Quota, Rule::Interval, Rule::Order]);
}

#[test]
fn what_a_replica_had_not_heard_of_is_allowed_where_it_is_allowed() {
    // Three units were counted. Two of them were lost and then counted again.
    let calls = [admitted(0, 1, 1, 1), admitted(2, 3, 2, 3), admitted(4, 5, 2, 3)];
    let lost = |lost| check(&calls, Allowance { lost, ..Allowance::default() }).is_sound();
    assert!(lost(2) && !lost(1));
}

#[test]
fn a_loss_ends_every_window_early_and_nothing_else_does() {
    let calls = vec![admitted(0, 1, 9, 9), admitted(6, 7, 9, 9)];
    assert!(broken_rules(&calls).contains(&Rule::Quota));
    let lost = |from, until| {
        let losses = vec![Loss { from, until }];
        History { calls: calls.clone(), losses, ..History::default() }.check(Allowance::default())
    };
    lost(2, 5).assert_sound();
    assert!(!lost(8, 9).is_sound());
    // A call that was sent during the loss may belong to the epoch before or after the loss.
    let during = vec![calls[0].clone(), admitted(3, 4, 1, 10), admitted(6, 7, 2, 3)];
    let losses = vec![Loss { from: 2, until: 5 }];
    History { calls: during, losses, ..History::default() }
        .check(Allowance::default())
        .assert_sound();
}

#[test]
fn a_stand_in_admits_up_to_its_bound() {
    let by_fallback = |issued, cost| {
        let readings = Readings::one(Reading { found: StoredState::Missing, ..reading(cost) });
        let readings = readings.with_source(DecisionSource::Fallback(StoreError::TimedOut));
        call(issued, issued + 1, cost, Outcome::Answered(readings))
    };
    let calls = [by_fallback(0, 2), by_fallback(2, 3), admitted(4, 5, 10, 10)];
    let fallback = |fallback| check(&calls, Allowance { fallback, ..Allowance::default() });
    let report = fallback(5);
    assert!(report.is_sound() && report.fallback == 2, "{report}");
    assert!(!fallback(4).is_sound());
}

#[test]
fn what_stood_in_fills_a_gap_only_where_the_store_may_have_heard_it() {
    let filled_by = |error| {
        let readings = Readings::one(Reading { found: StoredState::Missing, ..reading(3) });
        let readings = readings.with_source(DecisionSource::Fallback(error));
        let by_fallback = call(2, 3, 3, Outcome::Answered(readings));
        let calls = [admitted(0, 1, 1, 1), by_fallback, admitted(4, 5, 1, 5)];
        check(&calls, Allowance { fallback: 3, ..Allowance::default() })
    };
    filled_by(StoreError::TimedOut).assert_sound();
    assert_eq!(filled_by(StoreError::Unavailable).violations[0].rule, Rule::Refusal);
}

#[test]
fn units_of_the_fallback_fill_a_gap_if_nodes_charge_them_later() {
    let by_fallback = |issued, cost, error| {
        let reading = Readings::one(Reading { found: StoredState::Missing, ..reading(cost) });
        let reading = reading.with_source(DecisionSource::Fallback(error));
        call(issued, issued + 1, cost, Outcome::Answered(reading))
    };
    let allowance = Allowance { fallback: 3, charged_later: true, ..Allowance::default() };
    let gap_of = |units: u64, calls: &[Call]| -> Vec<Rule> {
        let mut calls = calls.to_vec();
        calls.extend([admitted(0, 1, 1, 1), admitted(4, 5, 1, 2 + units)]);
        check(&calls, allowance).violations.iter().map(|violation| violation.rule).collect()
    };
    let during = [by_fallback(2, 3, StoreError::Unavailable)];
    for units in 0..=3 {
        assert_eq!(gap_of(units, &during), [], "the store may count some of them");
    }
    assert_eq!(gap_of(4, &during), [Rule::Refusal], "more than the fallback admitted");
    let after = [by_fallback(6, 3, StoreError::Unavailable)];
    assert_eq!(gap_of(3, &after), [Rule::Refusal], "nothing was admitted by then");
}

#[test]
fn units_that_are_held_for_a_while_are_seen_up_to_their_bound() {
    // Three units were used for the second charge, and not for the third charge. These are the
    // units of a call that the limit of another subject refused.
    let other = || Subject::new([("user", Value::Clear(b"43"))], &PlainHash);
    let mut full = admitted(0, 1, QUOTA, QUOTA);
    full.charges[0].subject = other();
    let refused_elsewhere = |answered| {
        let refusal = Reading { admission: Admission::At(RESET), ..reading(QUOTA) };
        let readings = Outcome::Answered([reading(2), refusal].into_iter().collect());
        let mut call = call(2, answered, 3, readings);
        call.charges.push(RecordedCharge { subject: other(), ..call.charges[0].clone() });
        call
    };
    let seen = [admitted(0, 1, 1, 1), admitted(4, 5, 1, 5), admitted(8, 9, 1, 3)];
    let held = |held, answered| {
        let calls = [&seen[..], &[full.clone(), refused_elsewhere(answered)]].concat();
        check(&calls, Allowance { held, ..Allowance::default() })
    };
    held(3, 7).assert_sound();
    assert_eq!(held(2, 7).violations[0].rule, Rule::Refusal);
    // The refund was answered earlier, so its units had been refunded before they were observed.
    assert_eq!(held(3, 3).violations[0].rule, Rule::Refusal);
    let unrefunded =
        |unrefunded| check(&seen[..2], Allowance { unrefunded, ..Allowance::default() });
    unrefunded(3).assert_sound();
    assert_eq!(unrefunded(2).violations[0].rule, Rule::Refusal);
    let forgotten = [admitted(0, 1, 2, 2), admitted(2, 3, 1, 2)];
    let report = check(&forgotten, Allowance { held: 9, ..Allowance::default() });
    assert_eq!(report.violations[0].rule, Rule::Order);
}

#[test]
fn a_violation_names_the_limit_the_subject_and_both_answers() {
    let calls = [admitted(0, 1, 2, 2), admitted(2, 3, 2, 3), admitted(4, 5, 2, 5)];
    let report = check(&calls, Allowance::default()).to_string();
    for part in [
        "3 calls: 3 admitted",
        "Interval: core of user=42: two charges were given the same 1 units",
        "call 0 (0..1) charge 2 at 1000000: admitted, used 2, full reset at 1001000",
        "call 1 (2..3) charge 2 at 1000000: admitted, used 3, full reset at 1001000",
    ] {
        assert!(report.contains(part), "{part} is not in\n{report}");
    }
}

/// A window that a promoted replica had not received may start again. A window that the replica had
/// received may not.
#[test]
fn what_was_opened_in_a_cut_may_be_gone_and_nothing_before() {
    let later = Timestamp::from_millis(RESET.as_millis() + 100);
    let anew = Reading { full_reset_at: later, found: StoredState::Missing, ..reading(1) };
    let calls = [admitted(4, 5, 2, 2), call(8, 9, 1, Outcome::Answered(Readings::one(anew)))];
    let checked = |from, until| {
        let cuts = vec![Loss { from, until }];
        let history = History { calls: calls.to_vec(), cuts, ..History::default() };
        let report = history.check(Allowance { lost: 2, ..Allowance::default() });
        report.violations.iter().map(|violation| violation.rule).collect::<Vec<_>>()
    };
    assert_eq!(checked(3, 7), []);
    assert_eq!(checked(6, 7), [Rule::Reset, Rule::Reset]);
}

/// A promoted replica opened a window again. After that, a node sent the lost window to the
/// replica.
#[test]
fn a_window_that_was_lost_in_a_cut_and_reported_again_counts_what_the_one_between_did() {
    let later = Timestamp::from_millis(RESET.as_millis() + 100);
    let anew = |used| Reading {
        full_reset_at: later,
        position: ChargePosition(later.as_millis()),
        ..reading(used)
    };
    let readings =
        |issued, reading| call(issued, issued + 1, 1, Outcome::Answered(Readings::one(reading)));
    let lost = [admitted(4, 5, 1, 1)];
    let between =
        [readings(8, Reading { found: StoredState::Missing, ..anew(1) }), readings(10, anew(2))];
    let checked = |used, cuts| {
        let calls = [&lost[..], &between[..], &[admitted(12, 13, 1, used)]].concat();
        let history = History { calls, cuts, ..History::default() };
        let report = history.check(Allowance { lost: 2, ..Allowance::default() });
        report.violations.iter().map(|violation| violation.rule).collect::<Vec<_>>()
    };
    let cut = || vec![Loss { from: 3, until: 7 }];
    assert_eq!(checked(3, cut()), []);
    assert_eq!(checked(5, cut()), [Rule::Refusal], "more than both counted");
    assert!(checked(3, Vec::new()).contains(&Rule::Refusal), "nothing was lost");
}

/// Returns a settlement of the reservation `id` with the given reading.
fn settled(issued: Moment, id: u128, cost: u64, reading: Reading) -> Call {
    let readings =
        Outcome::Answered(Readings::one(Reading { admission: Admission::Now, ..reading }));
    let mut call = call(issued, issued + 1, 0, readings);
    call.charges[0].operation = Operation::Settle {
        id: ChargeId(id),
        position: reading.position,
        cost: Cost::new(cost).unwrap(),
    };
    call
}

#[test]
fn a_reservation_is_settled_once_and_by_the_difference() {
    let mut reserved = admitted(0, 1, 5, 5);
    let until = Timestamp::from_millis(NOW + 500);
    reserved.charges[0].operation =
        Operation::Reserve { cost: Cost::new(5).unwrap(), id: ChargeId(7), until };
    let broken = |calls: &[Call]| broken_rules(&[&[reserved.clone()], calls].concat());
    let settlement = |rules: Vec<Rule>| rules.contains(&Rule::Settlement);
    let below = |refunded| Reading { refunded, ..reading(5 - refunded) };
    let above = |added| Reading { added, ..reading(5 + added) };
    assert!(!settlement(broken(&[settled(2, 7, 3, below(2))])));
    assert!(!settlement(broken(&[settled(2, 7, 3, below(1))])), "of a bucket that refilled");
    assert!(settlement(broken(&[settled(2, 7, 3, below(3))])), "more than it held beyond");
    assert!(!settlement(broken(&[settled(2, 7, 8, above(3))])));
    assert!(settlement(broken(&[settled(2, 7, 8, above(4))])), "more than it cost");
    assert!(settlement(broken(&[settled(2, 8, 0, below(1))])), "of what nobody reserved");
    assert!(settlement(broken(&[settled(2, 7, 5, below(0)), settled(4, 7, 5, below(0))])));
    let again = Call { ..settled(4, 7, 0, below(0)) };
    let unchanged = Reading { admission: Admission::Never, ..reading(3) };
    let again = Call { outcome: Outcome::Answered(Readings::one(unchanged)), ..again };
    assert!(!settlement(broken(&[settled(2, 7, 3, below(2)), again])), "it says so");
}
