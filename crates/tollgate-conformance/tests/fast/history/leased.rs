//! Tests with histories of a limit with quota leases, created by hand.

use tollgate_conformance::history::{Allowance, Call, History, Outcome, Report, Rule};
use tollgate_core::{
    Admission, ChargeId, ChargePosition, Cost, Deduplication, LimitMode, Operation, Reading,
    Readings,
};
use tollgate_core::{StoredState, Timestamp};

use super::by_hand::{QUOTA, RESET, admitted, call, reading};

/// Returns the report on `calls` on a leased limit. Nodes may have `leased` units that they have
/// leased and not used.
fn check_history(calls: &[Call], leased: u64) -> Report {
    let mut calls = calls.to_vec();
    for charge in calls.iter_mut().flat_map(|call| &mut call.charges) {
        charge.limit = charge.limit.clone().with_mode(LimitMode::Leased).unwrap();
    }
    let history = History { calls, ..History::default() };
    history.check(Allowance { leased, ..Allowance::default() })
}

fn broken_rules(calls: &[Call], leased: u64) -> Vec<Rule> {
    check_history(calls, leased).violations.iter().map(|violation| violation.rule).collect()
}

/// Returns a refusal of `cost` with `used` units used.
fn refused(issued: u64, cost: u64, used: u64) -> Call {
    let reading = Reading {
        admission: Admission::At(RESET),
        fits_again: Admission::At(RESET),
        ..reading(used)
    };
    call(issued, issued + 1, cost, Outcome::Answered(Readings::one(reading)))
}

/// Returns a refund of `cost` of charge number `of`, with `used` units used after it.
fn refunded(issued: u64, of: u64, cost: u64, used: u64) -> Call {
    let reading = Reading { refunded: cost, ..reading(used) };
    let mut call = call(issued, issued + 1, cost, Outcome::Answered(Readings::one(reading)));
    let (position, deduplication) = (ChargePosition(RESET.as_millis()), Deduplication::ById);
    let (cost, id) = (Cost::new(cost).unwrap(), ChargeId(of.into()));
    call.charges[0].operation = Operation::Refund { cost, position, id, deduplication };
    call
}

#[test]
fn what_others_have_unused_is_seen_used_up_to_its_bound() {
    // One node leases five units and uses two of them. Another node reports all five units as used.
    let calls = [admitted(0, 1, 1, 1), admitted(2, 3, 2, 3), admitted(4, 5, 1, 7)];
    assert_eq!(broken_rules(&calls, 3), []);
    assert_eq!(broken_rules(&calls, 2), [Rule::Lease]);
    assert_eq!(broken_rules(&calls, 0), [Rule::Refusal], "of one node all is exact");
}

#[test]
fn nodes_may_report_the_same_numbers_and_old_ones() {
    let calls = [admitted(0, 1, 1, 1), admitted(2, 3, 1, 9), admitted(4, 5, 1, 2)];
    assert_eq!(broken_rules(&calls, 7), []);
    let same = [admitted(0, 1, 1, 1), admitted(2, 3, 1, 2), admitted(4, 5, 1, 2)];
    assert_eq!(broken_rules(&same, 1), []);
    assert_eq!(broken_rules(&same, 0), [Rule::Interval, Rule::Order]);
}

#[test]
fn a_refusal_is_early_by_what_others_have_at_most() {
    let calls = [admitted(0, 1, 3, 3), refused(2, 1, QUOTA)];
    assert_eq!(broken_rules(&calls, 7), []);
    assert_eq!(broken_rules(&calls, 6), [Rule::Lease]);
    let with_room = [admitted(0, 1, 3, 3), refused(2, 1, QUOTA - 1)];
    assert_eq!(broken_rules(&with_room, 7), [Rule::Reading], "it says itself that one is left");
}

#[test]
fn a_refusal_has_heard_of_what_was_refunded_before() {
    let charges = [admitted(0, 1, 5, 5), admitted(2, 3, 2, 7)];
    let after = [&charges[..], &[refunded(4, 2, 2, 5), refused(6, 1, QUOTA)]].concat();
    assert_eq!(broken_rules(&after, 5), []);
    assert_eq!(broken_rules(&after, 4), [Rule::Lease]);
    let meanwhile = Call { answered: 9, ..refunded(4, 2, 2, 5) };
    let meanwhile = [&charges[..], &[meanwhile, refused(6, 1, QUOTA)]].concat();
    assert_eq!(broken_rules(&meanwhile, 3), []);
    // A node may make a decision from its lease before it receives the refund.
    let by_lease = [&charges[..], &[refunded(4, 2, 2, 5), admitted(6, 7, 1, 9)]].concat();
    assert_eq!(broken_rules(&by_lease, 1), []);
}

#[test]
fn nothing_else_is_weaker() {
    let over = [admitted(0, 1, 5, 5), admitted(2, 3, 5, 10), admitted(4, 5, 1, 10)];
    assert_eq!(broken_rules(&over, QUOTA), [Rule::Quota]);
    let later = Timestamp::from_millis(RESET.as_millis() + 1);
    let reset =
        Reading { full_reset_at: later, position: ChargePosition(later.as_millis()), ..reading(2) };
    let moved = call(2, 3, 1, Outcome::Answered(Readings::one(reset)));
    assert_eq!(broken_rules(&[admitted(0, 1, 1, 1), moved], QUOTA), [Rule::Reset]);
    let nothing = Reading { found: StoredState::Missing, ..reading(1) };
    let anew = call(2, 3, 1, Outcome::Answered(Readings::one(nothing)));
    assert_eq!(broken_rules(&[admitted(0, 1, 1, 1), anew], QUOTA), [Rule::Reset]);
    let twice = [admitted(0, 1, 2, 2), refunded(2, 0, 2, 0), refunded(4, 0, 2, 0)];
    assert!(broken_rules(&twice, QUOTA).contains(&Rule::Refund));
}

#[test]
fn a_limit_that_is_not_leased_is_as_exact_as_ever() {
    let calls = vec![admitted(0, 1, 1, 1), admitted(2, 3, 1, 7)];
    let history = History { calls, ..History::default() };
    let report = history.check(Allowance { leased: QUOTA, ..Allowance::default() });
    assert_eq!(report.violations[0].rule, Rule::Refusal);
}
