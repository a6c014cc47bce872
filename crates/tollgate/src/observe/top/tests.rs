//! Tests of rankings by weight, over time.

use tollgate_core::algo::{Anchor, FixedWindow};
use tollgate_core::policy::{LimitBinding, MatchMode};
use tollgate_core::{Admission, Algorithm, Cost, LimitStatus, Reading, Value};

use super::*;
use crate::HashKey;

const START: Timestamp = Timestamp::from_millis(1_700_000_100_000);

fn limit(name: &str) -> Arc<Limit> {
    let window = FixedWindow::new(10, Millis::from_secs(60), Anchor::FirstRequest).unwrap();
    Arc::new(Limit::new(name, Algorithm::FixedWindow(window)).unwrap())
}

fn policy(limits: &[&Arc<Limit>]) -> Policy {
    let limits =
        limits.iter().map(|limit| LimitBinding { limit: Arc::clone(limit), per: Vec::new() });
    Policy::new(Vec::new(), limits.collect(), Vec::new(), MatchMode::FirstMatch).unwrap()
}

fn planned(limit: &Arc<Limit>, user: &str, cost: u64) -> PlannedCharge {
    let key = HashKey::from_secret(b"a test's key");
    let subject = Subject::new([("user", Value::Clear(user.as_bytes()))], &key);
    PlannedCharge::new(Arc::clone(limit), subject, Cost::new(cost).unwrap())
}

/// Passes an evaluation of the charges in `planned` to `top`. `planned` pairs each charge with its
/// admission.
fn record(top: &Top, now: Timestamp, planned: &[(PlannedCharge, Admission)]) {
    let statuses = planned.iter().map(|(planned, admission)| {
        let reading = Reading { admission: *admission, ..Reading::default() };
        LimitStatus::new(Arc::clone(&planned.limit), planned.cost, &reading)
    });
    let evaluation = Evaluation { now, statuses: statuses.collect() };
    let planned: Vec<_> = planned.iter().map(|(planned, _)| planned.clone()).collect();
    top.evaluated(&planned, &evaluation);
}

/// A ranking as plain values: each limit with its subjects, and the units and the error of each
/// subject.
type RankedSubjects = Vec<(String, Vec<(String, u64, u64)>)>;

fn ranked(top: &Top, by: RankBy, now: Timestamp) -> RankedSubjects {
    let row = |one: TopSubject| (one.subject.to_string(), one.units, one.error);
    let of_limit =
        |top: TopOfLimit| (top.limit.into(), top.subjects.into_iter().map(row).collect());
    top.ranked(by, None, 10, now).into_iter().map(of_limit).collect()
}

#[test]
fn charges_and_refusals_are_ranked_apart_and_only_who_refused_is_blamed() {
    let (core, day) = (limit("core"), limit("day"));
    let top = Top::new(&policy(&[&core, &day]), START);
    for (user, cost) in [("a", 1), ("b", 5), ("a", 2), ("peek", 0)] {
        record(&top, START, &[(planned(&core, user, cost), Admission::Now)]);
    }
    let refused = Admission::At(START.after(Millis::from_secs(1)));
    record(
        &top,
        START,
        &[(planned(&core, "a", 9), refused), (planned(&day, "a", 9), Admission::Now)],
    );
    let row = |user: &str, units| (format!("user={user}"), units, 0);
    let charged = vec![("core".to_owned(), vec![row("b", 5), row("a", 3)])];
    assert_eq!(ranked(&top, RankBy::Charged, START), charged);
    assert_eq!(ranked(&top, RankBy::Refused, START), [("core".to_owned(), vec![row("a", 9)])]);
    assert_eq!(top.ranked(RankBy::Charged, Some("core"), 1, START)[0].subjects.len(), 1);
    assert!(top.ranked(RankBy::Charged, Some("day"), 1, START).is_empty());
}

#[test]
fn what_is_reported_covers_the_running_period_and_the_one_before() {
    let core = limit("core");
    let top = Top::new(&policy(&[&core]), START);
    assert_eq!(top.since(START), START);
    record(&top, START, &[(planned(&core, "a", 1), Admission::Now)]);
    let next = START.after(TOP_PERIOD);
    record(&top, next, &[(planned(&core, "a", 2), Admission::Now)]);
    let both = ranked(&top, RankBy::Charged, next);
    assert_eq!(both[0].1, [("user=a".to_owned(), 3, 0)]);
    let later = next.after(TOP_PERIOD);
    assert_eq!(ranked(&top, RankBy::Charged, later)[0].1, [("user=a".to_owned(), 2, 0)]);
    assert!(top.since(later) > START && top.since(later) <= next);
    // After a long time without decisions the ranking is empty.
    let long_after = later.after(TOP_PERIOD).after(TOP_PERIOD);
    assert!(ranked(&top, RankBy::Charged, long_after).is_empty());
}

#[test]
fn the_heavy_stay_among_any_number_of_others() {
    let core = limit("core");
    let top = Top::new(&policy(&[&core]), START);
    for round in 0..3_000_u32 {
        record(&top, START, &[(planned(&core, "heavy", 2), Admission::Now)]);
        record(&top, START, &[(planned(&core, &format!("light {round}"), 1), Admission::Now)]);
    }
    let ranked = top.ranked(RankBy::Charged, None, usize::MAX, START);
    let [TopOfLimit { subjects, .. }] = &*ranked else { panic!("{ranked:?}") };
    assert!(subjects.len() <= TOP_SUBJECTS);
    assert_eq!(subjects[0].subject.to_string(), "user=heavy");
    assert!(subjects[0].units >= 6_000 && subjects[0].units - subjects[0].error <= 6_000);
}

#[test]
fn a_limit_goes_on_where_the_policy_is_replaced() {
    let (core, new) = (limit("core"), limit("core"));
    let top = Top::new(&policy(&[&core]), START);
    record(&top, START, &[(planned(&core, "a", 1), Admission::Now)]);
    top.on_policy_replaced(&policy(&[&new]));
    record(&top, START, &[(planned(&new, "a", 1), Admission::Now)]);
    assert_eq!(ranked(&top, RankBy::Charged, START)[0].1, [("user=a".to_owned(), 2, 0)]);
}
