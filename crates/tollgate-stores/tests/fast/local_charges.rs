//! Tests that the units that the fallback admitted are charged when the store answers again.

use std::collections::HashSet;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tollgate::model::{
    Admission, Algorithm, CellKey, CellTransfer, Charge, Cost, DecisionSource, Limit, Millis,
    Operation, Reading, Readings, Refusals, Store, StoreError, Timestamp, assess, key::Subject,
};
use tollgate::store::Memory;
use tollgate_stores::fallback::{Fallback, LocalChargeCounts, MAX_LOCAL_CHARGES};
use tollgate_stores::{LocalShare, QuotaLease};

use crate::faulty::{Faulty, Trouble};
use crate::quota_lease::{EAGER, leased};
use crate::setup::{
    NOW, WINDOW, apply_one, at_once, charge, fixed, of_every_kind, refund, take, user,
};

pub(crate) type Node = Fallback<Faulty, LocalShare<Memory>>;

pub(crate) fn node(nodes: u32) -> Node {
    let share = LocalShare::new(Memory::default(), NonZeroU32::new(nodes).unwrap());
    Fallback::new(Faulty::new(), share)
}

pub(crate) fn one(
    store: &impl Store,
    limit: &Limit,
    subject: &Subject,
    operation: Operation,
) -> Reading {
    at_once(apply_one(store, NOW, limit, subject, operation)).unwrap()
}

pub(crate) fn fails(node: &Node) {
    node.store().usually(Trouble::Lost(StoreError::Unavailable));
}

pub(crate) fn recovers(node: &Node) {
    node.store().usually(Trouble::None);
}

/// Returns the used units that the store has counted.
fn used(node: &Node, limit: &Limit, subject: &Subject) -> u64 {
    one(node.store(), limit, subject, take(0, 0)).used
}

/// Guards against units that nodes admitted during an outage and never charged. All of these units
/// would be admitted beyond the limit.
#[test]
fn what_a_node_admitted_locally_is_charged_once_when_the_store_returns() {
    for limit in of_every_kind(20) {
        if matches!(limit.algorithm(), Algorithm::Concurrency(_)) {
            continue;
        }
        let (node, subject) = (node(2), user(1));
        assert_eq!(one(&node, &limit, &subject, take(4, 1)).admission, Admission::Now);
        fails(&node);
        for id in 2..=4 {
            assert_eq!(one(&node, &limit, &subject, take(2, id)).admission, Admission::Now);
        }
        recovers(&node);
        for (id, expected) in [(5, 11), (6, 12)] {
            let reading = one(&node, &limit, &subject, take(1, id));
            assert_eq!((reading.admission, reading.used), (Admission::Now, expected), "{limit:?}");
        }
        let counts = LocalChargeCounts { charged: 6, ..LocalChargeCounts::default() };
        assert_eq!(node.local_charges(), counts, "{limit:?}");
    }
}

/// A wrapper around the fallback moves a subject after an outage, before the subject's next decision.
#[test]
fn cells_contain_what_was_admitted_locally() {
    let (node, limit, subject) = (node(2), fixed("core", 20), user(1));
    one(&node, &limit, &subject, take(4, 1));
    fails(&node);
    one(&node, &limit, &subject, take(2, 2));
    let cell_keys = [CellKey { limit: &limit, subject: &subject }];
    assert_eq!(at_once(node.cells(NOW, &cell_keys)), Err(StoreError::Unavailable));
    recovers(&node);
    let cells = at_once(node.cells(NOW, &cell_keys)).unwrap();
    assert_eq!(assess(cells[0].as_ref(), &limit, Cost::PEEK, NOW).used, 6);
    let counts = LocalChargeCounts { charged: 2, ..LocalChargeCounts::default() };
    assert_eq!(node.local_charges(), counts);
}

#[test]
fn calls_for_others_charge_what_was_admitted_locally() {
    let (node, limit) = (node(2), fixed("core", 20));
    fails(&node);
    for number in 1..=9 {
        one(&node, &limit, &user(number), take(3, 1));
    }
    recovers(&node);
    // The failed attempt is long enough ago for another attempt.
    let later = NOW.after(Millis::new(50));
    at_once(apply_one(&node, later, &limit, &user(99), take(1, 2))).unwrap();
    for number in 1..=9 {
        assert_eq!(used(&node, &limit, &user(number)), 3, "of user {number}");
    }
}

#[test]
fn what_the_limit_has_no_room_for_is_counted() {
    let (node, limit, subject) = (node(2), fixed("core", 20), user(1));
    fails(&node);
    one(&node, &limit, &subject, take(8, 1));
    // Another node charges the same limit and subject.
    recovers(&node);
    one(node.store(), &limit, &subject, take(15, 2));
    let reading = one(&node, &limit, &subject, take(1, 3));
    assert!(matches!(reading.admission, Admission::At(_)), "{reading:?}");
    assert_eq!(reading.used, 20);
    let counts = LocalChargeCounts { charged: 5, exceeded: 3, ..LocalChargeCounts::default() };
    assert_eq!(node.local_charges(), counts);
}

/// A store of which another node uses one unit before each call, while `is_contended` is set.
struct Contended {
    store: Faulty,
    is_contended: AtomicBool,
}

impl Store for Contended {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        if self.is_contended.load(Ordering::Relaxed) {
            let Charge { limit, subject, .. } = charges[0];
            apply_one(&self.store, now, limit, subject, take(1, 99)).await?;
        }
        self.store.apply(now, charges).await
    }
}

#[test]
fn units_that_still_fitted_were_given_up_after_four_attempts() {
    let (limit, subject) = (fixed("core", 20), user(1));
    let store = Contended { store: Faulty::new(), is_contended: AtomicBool::new(false) };
    let node = Fallback::new(store, LocalShare::new(Memory::default(), NonZeroU32::MIN));
    node.store().store.usually(Trouble::Lost(StoreError::Unavailable));
    one(&node, &limit, &subject, take(12, 1));
    node.store().store.usually(Trouble::None);
    one(&node.store().store, &limit, &subject, take(9, 2));
    node.store().is_contended.store(true, Ordering::Relaxed);
    // Before each attempt, one unit fewer is free than before: 10, 9, 8 and 7.
    assert_eq!(one(&node, &limit, &subject, take(0, 3)).used, 9 + 5);
    assert_eq!(node.local_charges(), NOTHING);
    node.store().is_contended.store(false, Ordering::Relaxed);
    assert_eq!(one(&node, &limit, &subject, take(0, 4)).used, 20);
    assert_eq!(node.local_charges(), LocalChargeCounts { charged: 6, exceeded: 6, ..NOTHING });
}

/// A call for another subject attempts each charge only once, so it does not know yet whether the
/// store counts the part that fits.
#[test]
fn a_call_for_another_subject_gives_up_no_units_before_the_rest_was_charged() {
    let (node, limit, subject) = (node(1), fixed("core", 20), user(1));
    fails(&node);
    one(&node, &limit, &subject, take(12, 1));
    recovers(&node);
    one(node.store(), &limit, &subject, take(15, 2));
    let later = NOW.after(Millis::new(50));
    at_once(apply_one(&node, later, &limit, &user(2), take(1, 3))).unwrap();
    assert_eq!(node.local_charges(), LocalChargeCounts::default());
    assert_eq!(one(&node, &limit, &subject, take(0, 4)).used, 20);
    let counts = LocalChargeCounts { charged: 5, exceeded: 7, ..LocalChargeCounts::default() };
    assert_eq!(node.local_charges(), counts);
}

/// The store refused the whole charge and did not answer the charge for the part that fits. Then a
/// client refunded more units than this part.
#[test]
fn units_that_did_not_fit_were_given_up_before_the_rest_was_charged() {
    let (node, limit, subject) = (node(2), fixed("core", 20), user(1));
    fails(&node);
    let here = one(&node, &limit, &subject, take(8, 1));
    recovers(&node);
    one(node.store(), &limit, &subject, take(15, 2));
    node.store().next([Trouble::None, Trouble::Lost(StoreError::Unavailable)]);
    one(&node, &limit, &subject, take(0, 3));
    fails(&node);
    assert_eq!(one(&node, &limit, &subject, refund(6, 1, here.position)).refunded, 6);
    recovers(&node);
    assert_eq!(one(&node, &limit, &subject, take(0, 4)).used, 17, "15 and the 2 that remain");
    let counts = LocalChargeCounts { charged: 2, ..LocalChargeCounts::default() };
    assert_eq!(node.local_charges(), counts);
}

#[test]
fn an_unknown_outcome_is_never_charged_twice() {
    let (node, limit, subject) = (node(2), fixed("core", 20), user(1));
    // The store charged the call, but its answer was lost.
    node.store().next([Trouble::Unheard(StoreError::TimedOut)]);
    one(&node, &limit, &subject, take(3, 1));
    assert_eq!(one(&node, &limit, &subject, take(1, 2)).used, 4);
    fails(&node);
    one(&node, &limit, &subject, take(5, 3));
    recovers(&node);
    node.store().next([Trouble::Unheard(StoreError::TimedOut)]);
    one(&node, &limit, &subject, take(1, 4));
    assert_eq!(used(&node, &limit, &subject), 9, "the charge without an answer, once");
    // The last call was not sent, so the store is charged for it now.
    assert_eq!(one(&node, &limit, &subject, take(1, 5)).used, 11);
    let counts = LocalChargeCounts { charged: 1, unknown: 5, ..LocalChargeCounts::default() };
    assert_eq!(node.local_charges(), counts);
}

#[test]
fn what_was_refunded_or_is_over_is_not_charged() {
    let (node, limit, subject) = (node(2), fixed("core", 20), user(1));
    fails(&node);
    let here = one(&node, &limit, &subject, take(4, 1));
    one(&node, &limit, &subject, take(2, 2));
    assert_eq!(one(&node, &limit, &subject, refund(4, 1, here.position)).refunded, 4);
    one(&node, &limit, &user(2), take(2, 3));
    recovers(&node);
    assert_eq!(one(&node, &limit, &subject, take(1, 4)).used, 3);
    fails(&node);
    one(&node, &limit, &user(3), take(2, 5));
    recovers(&node);
    let later = NOW.after(WINDOW).after(Millis::new(1));
    let reading = at_once(apply_one(&node, later, &limit, &user(3), take(1, 6))).unwrap();
    assert_eq!(reading.used, 1, "its window is over");
}

/// A store of two shards, one of which may be down.
struct TwoShards {
    store: Memory,
    /// The subjects of the shard that is down.
    down: HashSet<Subject>,
    are_both_down: AtomicBool,
}

impl Store for TwoShards {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        let is_down = charges.iter().any(|charge| self.down.contains(charge.subject));
        if is_down || self.are_both_down.load(Ordering::Relaxed) {
            return Err(StoreError::Unavailable);
        }
        self.store.apply(now, charges).await
    }
}

/// Guards against entries of a shard that stays down, which would prevent the charges of other
/// shards' entries.
#[test]
fn a_shard_that_stays_down_does_not_keep_others_from_being_charged() {
    const SUBJECTS: u64 = 600;
    let limit = fixed("core", 20);
    let down = (0..SUBJECTS).filter(|number| number % 2 == 0).map(user).collect();
    let store = TwoShards { store: Memory::default(), down, are_both_down: AtomicBool::new(true) };
    let node = Fallback::new(store, LocalShare::new(Memory::default(), NonZeroU32::MIN));
    for number in 0..SUBJECTS {
        one(&node, &limit, &user(number), take(1, 1));
    }
    node.store().are_both_down.store(false, Ordering::Relaxed);
    for pass in 1..=20 {
        at_once(node.charge_local(NOW.after(Millis::new(50 * pass))));
    }
    assert_eq!(node.local_charges().charged, SUBJECTS / 2);
}

#[test]
fn a_store_that_stays_away_is_asked_once_more_at_most() {
    let (node, limit, subject) = (node(2), fixed("core", 20), user(1));
    fails(&node);
    for id in 1..=5 {
        let before = node.store().calls();
        one(&node, &limit, &subject, take(1, id));
        assert_eq!(node.store().calls() - before, 1);
    }
}

#[test]
fn refusals_that_count_are_charged_too() {
    let limit = fixed("hammered", 4).with_refusals(Refusals::Counted).unwrap();
    let (node, subject) = (node(1), user(1));
    fails(&node);
    for id in 1..=6 {
        one(&node, &limit, &subject, take(1, id));
    }
    recovers(&node);
    assert!(one(&node, &limit, &subject, take(1, 7)).used > 4);
}

/// Guards against resets that differ between nodes during an outage in answers that do not report
/// the fallback.
#[test]
fn a_node_that_had_not_seen_a_subject_reports_its_own_reset_as_a_fallback() {
    let (seen, unseen) = (node(2), node(2));
    let (limit, subject) = (fixed("core", 20), user(1));
    let apply_at = |node: &Node, after, id| {
        let charges = [charge(&limit, &subject, take(1, id))];
        let readings = at_once(node.apply(NOW.after(Millis::new(after)), &charges)).unwrap();
        (readings.source(), readings[0].full_reset_at)
    };
    let (source, reset) = apply_at(&seen, 0, 1);
    assert_eq!((source, reset), (DecisionSource::Store, NOW.after(WINDOW)));
    fails(&seen);
    fails(&unseen);
    let fallback = DecisionSource::Fallback(StoreError::Unavailable);
    assert_eq!(apply_at(&seen, 5_000, 2), (fallback, reset), "the window that it saw continues");
    let own = NOW.after(Millis::new(5_000)).after(WINDOW);
    assert_eq!(
        apply_at(&unseen, 5_000, 3),
        (fallback, own),
        "a window of its own, and the source shows it"
    );
    recovers(&seen);
    assert_eq!(apply_at(&seen, 6_000, 4), (DecisionSource::Store, reset));
}

#[test]
fn the_table_is_bounded() {
    let (node, limit) = (node(2), fixed("core", 4));
    fails(&node);
    for number in 0..MAX_LOCAL_CHARGES as u64 + 5 {
        one(&node, &limit, &user(number), take(1, 1));
    }
    assert_eq!(node.local_charges().dropped, 5);
}

/// A store that answers after some time.
struct Slow {
    store: Faulty,
    delay: AtomicU64,
}

impl Store for Slow {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        sleep(Duration::from_millis(self.delay.load(Ordering::Relaxed))).await;
        self.store.apply(now, charges).await
    }
}

/// Returns a node that admitted 8 units by its fallback, on a limit on which other nodes charged 15
/// of 20 units. The store needs 10 ms for an answer.
async fn after_an_outage(limit: &Limit, subject: &Subject) -> Fallback<Slow, LocalShare<Memory>> {
    let share = LocalShare::new(Memory::default(), NonZeroU32::new(2).unwrap());
    let store = Slow { store: Faulty::new(), delay: AtomicU64::new(0) };
    let node = Fallback::new(store, share).with_budget(Duration::from_millis(15));
    node.store().store.usually(Trouble::Lost(StoreError::Unavailable));
    apply_one(&node, NOW, limit, subject, take(8, 1)).await.unwrap();
    node.store().store.usually(Trouble::None);
    apply_one(&node.store().store, NOW, limit, subject, take(15, 2)).await.unwrap();
    node.store().delay.store(10, Ordering::Relaxed);
    node
}

/// Guards against a first decision after an outage that waits for up to four charges, with a
/// deadline for each charge.
#[tokio::test(start_paused = true)]
async fn a_decision_after_an_outage_takes_no_longer_than_the_budget() {
    let (limit, subject) = (fixed("core", 20), user(1));
    let node = after_an_outage(&limit, &subject).await;
    let started = Instant::now();
    let readings = node.apply(NOW, &[charge(&limit, &subject, take(1, 3))]).await.unwrap();
    assert!(started.elapsed() <= Duration::from_millis(16), "{:?}", started.elapsed());
    // The call was not sent to the store, so the store is charged for the call later.
    assert_eq!(readings.source(), DecisionSource::Fallback(StoreError::Unavailable));
    assert_eq!(node.local_charges(), LocalChargeCounts { unknown: 5, ..NOTHING });
    // The store did not execute the charge of the five units, so the other three and the unit of the
    // call fit.
    node.store().delay.store(0, Ordering::Relaxed);
    node.apply(NOW, &[charge(&limit, &subject, take(1, 4))]).await.unwrap();
    assert_eq!(node.local_charges(), LocalChargeCounts { charged: 4, unknown: 5, ..NOTHING });
}

/// Guards against units that are neither charged nor counted if the caller disconnects during their
/// charge.
#[tokio::test(start_paused = true)]
async fn units_of_a_caller_that_disconnects_are_kept_or_counted() {
    let (limit, subject) = (fixed("core", 20), user(1));
    let node = after_an_outage(&limit, &subject).await;
    let operation = [charge(&limit, &subject, take(1, 3))];
    let dropped = timeout(Duration::from_millis(5), node.apply(NOW, &operation)).await;
    assert!(dropped.is_err(), "it was answered");
    assert_eq!(node.local_charges(), LocalChargeCounts { unknown: 8, ..NOTHING });
}

pub(crate) const NOTHING: LocalChargeCounts =
    LocalChargeCounts { charged: 0, exceeded: 0, unknown: 0, dropped: 0 };

/// A node's units did not fit the limit while another node had a lease. After the other node
/// refunded its lease, the store also admits these units: as many units beyond the limit as the
/// store had refused before.
#[test]
fn a_lease_that_is_returned_after_an_outage_exceeds_the_limit_by_what_was_refused() {
    let (limit, subject) = (leased(&fixed("core", 100)), user(1));
    let store = Arc::new(Faulty::new());
    let holder = QuotaLease::new(Arc::clone(&store), EAGER);
    let share = LocalShare::new(Memory::default(), NonZeroU32::new(2).unwrap());
    let node = Fallback::new(Arc::clone(&store), share);
    let mut id = 0;
    let mut admitted = |node: &dyn Fn(Operation) -> Reading| {
        id += 1;
        node(take(1, id)).admission == Admission::Now
    };
    let by_holder = |operation| one(&holder, &limit, &subject, operation);
    let by_other = |operation| one(&*store, &limit, &subject, operation);
    let by_node = |operation| one(&node, &limit, &subject, operation);

    let mut total = 0;
    for _ in 0..2 {
        total += u64::from(admitted(&by_holder));
    }
    let held = one(&*store, &limit, &subject, take(0, 0)).used - total;
    // Another node uses up the remaining units.
    while admitted(&by_other) {
        total += 1;
    }
    assert!(held > 5 && total == 100 - held, "{held} held, {total} admitted");
    store.usually(Trouble::Lost(StoreError::Unavailable));
    for _ in 0..5 {
        total += u64::from(admitted(&by_node));
    }
    store.usually(Trouble::None);
    assert!(!admitted(&by_node));
    assert_eq!(node.local_charges().exceeded, 5);
    at_once(holder.refund_all(NOW));
    while admitted(&by_node) {
        total += 1;
    }
    assert_eq!(total, 100 + 5);
}
