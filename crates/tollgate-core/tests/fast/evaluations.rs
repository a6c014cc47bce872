//! What an evaluation reports to clients: refusals, the tightest limit, and the status after a
//! refund.

use std::sync::Arc;

use tollgate_core::algo::{Anchor, Concurrency, FixedWindow};
use tollgate_core::{
    Admission, Algorithm, Cost, Evaluation, Limit, LimitStatus, Millis, Reading, Timestamp,
    Visibility,
};

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

fn limit(name: &str, quota: u64) -> Limit {
    let window = FixedWindow::new(quota, Millis::from_secs(60), Anchor::Calendar).unwrap();
    Limit::new(name, Algorithm::FixedWindow(window)).unwrap()
}

/// Returns a reading in which `used` units are used until `wait` ms from now.
fn reading(used: u64, admission: Admission, wait: u64) -> Reading {
    let full_reset_at = NOW.after(Millis::new(wait));
    Reading { used, admission, fits_again: admission, full_reset_at, ..Reading::default() }
}

fn status(limit: Limit, used: u64) -> LimitStatus {
    LimitStatus::new(Arc::new(limit), Cost::ONE, &reading(used, Admission::Now, 1_000))
}

fn refused(limit: Limit, wait: u64) -> LimitStatus {
    let used = limit.capacity();
    let reading = reading(used, Admission::At(NOW.after(Millis::new(wait))), wait);
    LimitStatus::new(Arc::new(limit), Cost::ONE, &reading)
}

fn evaluation(statuses: Vec<LimitStatus>) -> Evaluation {
    Evaluation { now: NOW, statuses }
}

fn name(status: Option<&LimitStatus>) -> Option<&str> {
    status.map(|status| status.limit.name())
}

fn hidden(limit: Limit) -> Limit {
    limit.with_visibility(Visibility::Hidden)
}

#[test]
fn the_tightest_limit_has_the_fewest_units_and_then_the_smallest_share() {
    let tightest = |statuses: &[(&str, u64, u64)]| {
        let status = |&(name, quota, used)| status(limit(name, quota), used);
        let evaluation = evaluation(statuses.iter().map(status).collect());
        assert!(evaluation.is_admitted());
        assert_eq!(name(evaluation.tightest()), name(evaluation.tightest_visible()));
        name(evaluation.tightest()).map(str::to_owned)
    };
    assert_eq!(tightest(&[]), None);
    for (one, other) in [
        (("a", 100, 98), ("b", 10, 7)),
        (("a", 100, 97), ("b", 10, 7)),
        (("a", 10, 10), ("b", 9, 9)),
        // The products of these shares do not fit in 64 bits.
        (("a", 1 << 52, 1), ("b", (1 << 52) - 1, 0)),
    ] {
        assert_eq!(tightest(&[one, other]).as_deref(), Some("a"));
        let is_tie = one.1 == one.2;
        assert_eq!(tightest(&[other, one]).as_deref(), Some(if is_tie { "b" } else { "a" }));
    }
}

#[test]
fn a_refusal_is_explained_by_the_visible_limit_with_the_longest_wait() {
    let tightest = |statuses| {
        let evaluation = evaluation(statuses);
        assert!(!evaluation.is_admitted() && !evaluation.never_fits());
        name(evaluation.tightest()).map(str::to_owned)
    };
    let (short, long) = (|name| refused(limit(name, 5), 10), |name| refused(limit(name, 5), 20));
    let free = || status(limit("free", 1), 1);
    assert_eq!(tightest(vec![free(), short("a"), long("b")]).as_deref(), Some("b"));
    assert_eq!(tightest(vec![long("a"), short("b"), free()]).as_deref(), Some("a"));
    assert_eq!(tightest(vec![long("a"), long("b")]).as_deref(), Some("a"), "the first of equals");
    let secret = || refused(hidden(limit("secret", 5)), 30);
    assert_eq!(tightest(vec![secret(), short("b")]).as_deref(), Some("b"));
    assert_eq!(tightest(vec![free(), secret()]), None, "no other limit explains the refusal");
}

#[test]
fn hidden_limits_are_not_reported() {
    let (shown, hidden) = (status(limit("a", 9), 0), status(hidden(limit("b", 9)), 9));
    assert!(shown.is_visible() && !hidden.is_visible());
    let evaluation = evaluation(vec![hidden.clone(), shown]);
    assert_eq!(name(evaluation.tightest()), Some("a"));
    assert_eq!(self::evaluation(vec![hidden]).tightest_visible(), None);
}

#[test]
fn the_retry_is_after_the_longest_wait_unless_the_cost_never_fits() {
    let never =
        || LimitStatus::new(Arc::new(limit("c", 5)), Cost::ONE, &reading(0, Admission::Never, 9));
    let free = || status(limit("free", 9), 1);
    let both = evaluation(vec![refused(limit("a", 5), 10), free(), refused(limit("b", 5), 20)]);
    assert_eq!(both.refusals().map(|one| one.limit.name()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!((both.retry_after(), both.never_fits()), (Some(Millis::new(20)), false));
    let mixed = evaluation(vec![refused(limit("a", 5), 10), never()]);
    assert_eq!((mixed.retry_after(), mixed.never_fits()), (None, true));
    assert!(never().is_refusal() && !mixed.is_admitted());
    let admitted = evaluation(vec![free()]);
    assert!(admitted.is_admitted() && !admitted.never_fits() && !free().is_refusal());
    assert_eq!((admitted.retry_after(), admitted.refusals().count()), (None, 0));
}

#[test]
fn a_refund_returns_the_cost_but_no_permit() {
    let cost = Cost::new(3).unwrap();
    let of =
        |limit: Limit| LimitStatus::new(Arc::new(limit), cost, &reading(4, Admission::Now, 1_000));
    let permits = Concurrency::new(9, Millis::from_secs(1)).unwrap();
    let permits = of(Limit::new("permits", Algorithm::Concurrency(permits)).unwrap());
    let window = of(limit("window", 9));
    let refunded = evaluation(vec![window.clone(), permits.clone()]).refunded();
    let expected = LimitStatus { used: 1, remaining: 8, ..window };
    assert_eq!(refunded, evaluation(vec![expected, permits]));
}

#[test]
fn all_used_units_of_a_concurrency_limit_are_reserved() {
    let permits = Concurrency::new(9, Millis::from_secs(1)).unwrap();
    let permits = Limit::new("permits", Algorithm::Concurrency(permits)).unwrap();
    let reading = Reading { reserved: 2, ..reading(4, Admission::Now, 1_000) };
    let reserved = |limit| LimitStatus::new(Arc::new(limit), Cost::ONE, &reading).reserved;
    assert_eq!(reserved(permits), 4);
    assert_eq!(reserved(limit("window", 9)), 2);
}

#[test]
fn a_reused_evaluation_equals_a_new_one() {
    let limits = [limit("a", 5), limit("b", 9), limit("c", 7)].map(Arc::new);
    let mut reused = Evaluation::default();
    for (round, order) in
        [&[0_usize, 1][..], &[0, 1], &[1, 0, 2], &[2], &[], &[2, 1, 0]].into_iter().enumerate()
    {
        let now = NOW.after(Millis::new(round as u64));
        let readings = order.iter().map(|&index| {
            let used = (round + index) as u64 % 4;
            (&limits[index], Cost::up_to(used), reading(used, Admission::At(now), used * 10))
        });
        let readings: Vec<_> = readings.collect();
        let new = readings
            .iter()
            .map(|(limit, cost, reading)| LimitStatus::new(Arc::clone(limit), *cost, reading));
        let new = Evaluation { now, statuses: new.collect() };
        reused.replace(now, readings.iter().map(|(limit, cost, reading)| (*limit, *cost, reading)));
        assert_eq!(reused, new, "round {round}");
    }
    assert_eq!(Evaluation::without_statuses(NOW), evaluation(Vec::new()));
}
