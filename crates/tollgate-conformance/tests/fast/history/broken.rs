//! Tests that each fault is found by the rule for it, which shows that the checker can fail.

use tollgate_conformance::Cells;
use tollgate_conformance::history::{Allowance, Recorded, Refunds, Report, Rule, Workload};
use tollgate_core::Limit;

use super::at_once;
use super::faults::{self, Broken, Fault};

const SEEDS: u64 = 5;
/// The number of calls, enough for several windows of one caller.
const CALLS: u64 = 1_000;

/// Returns the report on one caller that uses the limits with these names.
fn report(fault: Fault, seed: u64, names: &[&str], refunds: Refunds) -> Report {
    let limits = Workload::limits_of_each_kind();
    let named = |limit: &Limit| names.contains(&limit.name());
    let limits = limits.into_iter().filter(named).collect();
    let mut workload = Workload::new(seed, limits, refunds);
    workload.calls = CALLS;
    assert_eq!(workload.limits.len(), names.len(), "{names:?}");
    let store = Recorded::new(Broken { cells: Cells::default(), fault });
    at_once(workload.call(&store, 0));
    store.history().check(Allowance::default())
}

const FIXED: &[&str] = &["first", "calendar"];

#[test]
fn every_fault_is_found_by_its_rule() {
    use Refunds::{Never, Often};
    type Row = (&'static str, Fault, &'static [&'static str], Refunds, Rule);
    let table: &[Row] = &[
        ("an extra admission", faults::admits_one_more, FIXED, Never, Rule::Quota),
        ("an extra admission", faults::admits_one_more, FIXED, Never, Rule::Interval),
        ("a wobbling reset", faults::wobbles, &["first"], Never, Rule::Reset),
        ("a wobbling reset", faults::wobbles, &["calendar"], Often, Rule::Reset),
        ("a late reset", faults::ends_late, FIXED, Never, Rule::Reset),
        ("an early reset", faults::restarts_early, &["first"], Never, Rule::Reset),
        ("an early reset", faults::restarts_early, &["calendar"], Never, Rule::Order),
        ("a forgotten window", faults::finds_nothing, FIXED, Never, Rule::Reset),
        ("a lost update", faults::loses_updates, FIXED, Never, Rule::Interval),
        ("a lost update", faults::loses_updates, FIXED, Never, Rule::Order),
        ("a lost update", faults::loses_updates, FIXED, Often, Rule::Order),
        ("a stale sight", faults::looks_back, FIXED, Never, Rule::Order),
        ("a stale sight", faults::looks_back, FIXED, Often, Rule::Order),
        ("a torn sight", faults::sees_half, FIXED, Never, Rule::Interval),
        ("a charged refusal", faults::charges_refusals, FIXED, Never, Rule::Refusal),
        ("a charged refusal", faults::charges_refusals, FIXED, Often, Rule::Refusal),
        ("an error charged twice", faults::charges_errors_twice, FIXED, Never, Rule::Refusal),
        ("a refund twice", faults::refunds_twice, FIXED, Often, Rule::Refund),
        ("a refund twice", faults::refunds_twice, &["log"], Often, Rule::Refund),
        ("a refund to a later window", faults::refunds_later, FIXED, Often, Rule::Refund),
        ("more back than taken", faults::gives_back_more, FIXED, Often, Rule::Refund),
        ("a refund that was not told", faults::hides_refunds, FIXED, Often, Rule::Order),
        ("a refusal with room", faults::refuses_with_room, FIXED, Never, Rule::Reading),
        ("a refusal with room", faults::refuses_with_room, &["bucket"], Often, Rule::Reading),
        ("more used than there is", faults::passes_the_quota, FIXED, Never, Rule::Reading),
        ("a wait for the past", faults::promises_the_past, &["leases"], Never, Rule::Reading),
        ("a missing reading", faults::leaves_one_out, FIXED, Never, Rule::Reading),
        ("a memory that admits", faults::remembers_to_admit, FIXED, Never, Rule::Reading),
        ("a stand-in without bound", faults::stands_in_for_all, FIXED, Never, Rule::Fallback),
        ("twice the quota", faults::is_lax, &["first"], Never, Rule::Quota),
        ("twice the quota", faults::is_lax, &["calendar"], Often, Rule::Quota),
        ("twice the quota", faults::is_lax, &["blocks"], Never, Rule::Quota),
        ("twice the quota", faults::is_lax, &["two"], Often, Rule::Quota),
        ("twice the quota", faults::is_lax, &["log"], Often, Rule::Quota),
        ("twice the burst", faults::is_lax, &["bucket"], Never, Rule::Quota),
        ("twice the burst", faults::is_lax, &["bucket"], Often, Rule::Quota),
        ("twice as many in flight", faults::is_lax, &["leases"], Often, Rule::Quota),
    ];
    for (what, fault, limits, refunds, rule) in table {
        for seed in 0..SEEDS {
            report(faults::sound, seed, limits, *refunds).assert_sound();
            let report = report(*fault, seed, limits, *refunds);
            let is_found = report.violations.iter().any(|violation| violation.rule == *rule);
            assert!(
                is_found,
                "{what} on {limits:?}, {refunds:?}, seed {seed}: {rule:?} is silent\n{report}"
            );
            assert!(!report.is_sound());
        }
    }
}

#[test]
#[should_panic(expected = "the history is not sound")]
fn whoever_asserts_is_reported() {
    report(faults::wobbles, 0, FIXED, Refunds::Never).assert_sound();
}
