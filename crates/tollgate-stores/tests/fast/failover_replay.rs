//! Tests that nodes replay the charges that a failover loses, if the nodes had received the answers
//! to these charges.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use proptest::prelude::*;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tollgate::model::algo::{Anchor, FixedWindow, SlidingLog};
use tollgate::model::{
    Admission, Algorithm, CellKey, CellTransfer, Cost, Limit, Millis, Operation, Reading, Refusals,
    Store, StoreError, Subject, Timestamp, assess,
};
use tollgate::store::Memory;
use tollgate_stores::FailoverReplay;
use tollgate_stores::failover_replay::{
    DEFAULT_ENTRIES, DEFAULT_RETENTION, MAX_OUTAGE, MAX_SUBJECT_BYTES, ReplayCounts,
};

use crate::promoted::{Promoted, Servers};
use crate::setup::{
    NOW, WINDOW, apply_one, calls, comparable, fixed, in_flight, of_every_kind, refund, replay,
    take, two_buckets, user,
};

pub(crate) const QUOTA: u64 = 100;

/// Returns the output of a future that never waits, although it may set a timer.
pub(crate) fn at_once<T>(future: impl Future<Output = T>) -> T {
    static TIMERS: LazyLock<Runtime> =
        LazyLock::new(|| Builder::new_current_thread().enable_time().build().expect("a runtime"));
    let _entered = TIMERS.enter();
    crate::setup::at_once(future)
}

/// Returns the servers, and nodes that use them.
pub(crate) fn nodes<const N: usize>() -> (Arc<Servers>, [FailoverReplay<Promoted>; N]) {
    let servers = Arc::<Servers>::default();
    let nodes = std::array::from_fn(|_| FailoverReplay::new(Promoted::on(&servers)));
    (servers, nodes)
}

pub(crate) fn takes(
    store: &impl Store,
    limit: &Limit,
    ids: std::ops::RangeInclusive<u128>,
) -> Reading {
    let taken = ids.map(|id| at_once(apply_one(store, NOW, limit, &user(1), take(1, id))).unwrap());
    taken.last().unwrap()
}

#[test]
fn what_the_replica_lacks_is_there_before_the_next_charge() {
    for limit in of_every_kind(QUOTA) {
        let (servers, [node]) = nodes();
        takes(&node, &limit, 1..=10);
        servers.cut();
        assert_eq!(takes(&node, &limit, 11..=17).used, 17);
        servers.promote(Memory::default());
        assert_eq!(takes(&node, &limit, 18..=18).used, 18, "{limit:?}");
        let replayed = ReplayCounts { replays: 1, limits: 1, units: 7, abandoned: 0 };
        assert_eq!(node.replayed(), replayed, "{limit:?}");
    }
}

/// The bug: every counted refusal was replayed. The store then counted more units than the refusals
/// had filled, and refused the subject for longer than before the failover.
#[test]
fn counted_refusals_were_replayed_beyond_the_quota() {
    let log = Algorithm::SlidingLog(SlidingLog::new(10, WINDOW).unwrap());
    for limit in [two_buckets("two", 10), Limit::new("log", log).unwrap()] {
        let limit = limit.with_refusals(Refusals::Counted).unwrap();
        let (servers, [node]) = nodes();
        assert_eq!(takes(&node, &limit, 1..=100).used, 10, "{limit:?}");
        servers.promote(Memory::default());
        assert_eq!(takes(&node, &limit, 101..=101).used, 10, "{limit:?}");
    }
}

#[test]
fn what_is_read_out_is_whole() {
    let (servers, [node]) = nodes();
    let (limit, subject) = (fixed("core", QUOTA), user(1));
    takes(&node, &limit, 1..=10);
    servers.cut();
    takes(&node, &limit, 11..=17);
    servers.promote(Memory::default());
    let place = CellKey { limit: &limit, subject: &subject };
    let cells = at_once(node.cells(NOW, &[place])).unwrap();
    let used = assess(cells[0].as_ref(), &limit, Cost::PEEK, NOW).used;
    assert_eq!(used, 17);
}

#[test]
fn without_a_repair_it_is_lost() {
    let (servers, [node]) = nodes();
    let limit = fixed("core", QUOTA);
    takes(&node, &limit, 1..=10);
    servers.cut();
    takes(&node, &limit, 11..=17);
    servers.promote(Memory::default());
    let bare = node.with_retention(Millis::ZERO).with_entries(DEFAULT_ENTRIES);
    assert_eq!(takes(&bare, &limit, 18..=18).used, 11);
}

#[test]
fn nothing_is_joined_that_is_there_and_no_epoch_is_repaired_twice() {
    let (servers, [node]) = nodes();
    let limit = fixed("core", QUOTA);
    takes(&node, &limit, 1..=10);
    servers.promote(Memory::default());
    assert_eq!(takes(&node, &limit, 11..=12).used, 12);
    assert_eq!(node.store().joined.load(Ordering::SeqCst), 0);
    assert_eq!(node.replayed(), ReplayCounts { replays: 1, ..ReplayCounts::default() });
}

#[test]
fn a_refund_that_passed_is_not_undone() {
    for limit in of_every_kind(QUOTA) {
        let (servers, [node]) = nodes();
        let last = takes(&node, &limit, 1..=10);
        servers.cut();
        takes(&node, &limit, 11..=12);
        let give_back = refund(1, 12, last.position);
        at_once(apply_one(&node, NOW, &limit, &user(1), give_back)).unwrap();
        servers.promote(Memory::default());
        assert_eq!(takes(&node, &limit, 13..=13).used, 12, "{limit:?}");
    }
}

#[test]
fn what_was_forgotten_stays_forgotten() {
    for limit in of_every_kind(QUOTA) {
        let (servers, [node]) = nodes();
        takes(&node, &limit, 1..=10);
        at_once(apply_one(&node, NOW, &limit, &user(1), Operation::Reset)).unwrap();
        servers.promote(Memory::default());
        assert_eq!(takes(&node, &limit, 11..=11).used, 1, "{limit:?}");
    }
}

#[test]
fn a_renewed_lease_ends_when_it_was_renewed_to() {
    let (servers, [node]) = nodes();
    let limit = in_flight("flight", QUOTA);
    takes(&node, &limit, 1..=2);
    servers.cut();
    let later = NOW.after(Millis::from_secs(1));
    let renew = Operation::Renew { id: tollgate::model::ChargeId(1) };
    let renewed = at_once(apply_one(&node, later, &limit, &user(1), renew)).unwrap();
    servers.promote(Memory::default());
    let look = at_once(apply_one(&node, later, &limit, &user(1), take(1, 3))).unwrap();
    assert_eq!((look.used, look.full_reset_at), (3, renewed.full_reset_at));
    let first_over = NOW.after(limit.window());
    let left = at_once(apply_one(&node, first_over, &limit, &user(1), take(1, 4))).unwrap();
    assert_eq!(left.used, 3, "the lease that was not renewed is over");
}

#[test]
fn nodes_lose_what_others_admitted_in_between_and_no_more() {
    let limit = fixed("core", QUOTA);
    for (of_first, of_second, meanwhile) in [(5, 7, 3), (5, 3, 7), (9, 0, 4), (0, 6, 2)] {
        let (servers, [first, second]) = nodes();
        takes(&first, &limit, 1..=10);
        servers.cut();
        let mut used = 10;
        for (node, units) in [(&first, of_first), (&second, of_second)] {
            if units > 0 {
                used = takes(node, &limit, 1..=units).used;
            }
        }
        servers.promote(Memory::default());
        let admitted = used + meanwhile;
        takes(&first, &limit, 1..=u128::from(meanwhile));
        let seen = takes(&second, &limit, 1..=1).used;
        let elsewhere = u64::try_from(of_second).unwrap();
        let bound = FailoverReplay::<Promoted>::max_lost_units(elsewhere, meanwhile);
        assert_eq!(admitted + 1 - seen, bound, "{of_first} {of_second} {meanwhile}");
    }
}

#[test]
fn what_is_older_than_the_memory_is_not_joined() {
    let (servers, [node]) = nodes();
    let limit = fixed("core", QUOTA);
    servers.cut();
    takes(&node, &limit, 1..=10);
    servers.promote(Memory::default());
    let later = NOW.after(DEFAULT_RETENTION).after(Millis::new(1));
    let used = at_once(apply_one(&node, later, &limit, &user(1), take(1, 11))).unwrap().used;
    assert_eq!(used, 1);
}

#[test]
fn an_outage_adds_a_bounded_time_to_the_retention() {
    let hour = FixedWindow::new(QUOTA, Millis::from_secs(3_600), Anchor::FirstRequest).unwrap();
    let limit = Limit::new("core", Algorithm::FixedWindow(hour)).unwrap();
    let oldest = DEFAULT_RETENTION.get() + MAX_OUTAGE.get();
    // The length of the outage, the age of the charge, and the used units after another charge.
    let cases = [
        (MAX_OUTAGE, oldest, 2),
        (Millis::from_secs(600), oldest, 2),
        (Millis::from_secs(600), oldest + 1, 1),
    ];
    for (outage, age, used) in cases {
        let (servers, [node]) = nodes();
        servers.cut();
        takes(&node, &limit, 1..=1);
        node.store().outage.store(outage.get(), Ordering::SeqCst);
        servers.promote(Memory::default());
        let later = NOW.after(Millis::new(age));
        let reading = at_once(apply_one(&node, later, &limit, &user(1), take(1, 2))).unwrap();
        assert_eq!(reading.used, used, "{outage:?}, {age}");
    }
}

#[test]
fn units_that_another_node_refunded_count_again_and_no_others() {
    for limit in of_every_kind(QUOTA) {
        let ((servers, [refunds, replays]), subject) = (nodes(), user(1));
        takes(&replays, &limit, 1..=6);
        let charge = apply_one(&replays, NOW, &limit, &subject, take(4, 7));
        let position = at_once(charge).unwrap().position;
        let back = apply_one(&refunds, NOW, &limit, &subject, refund(4, 7, position));
        assert_eq!(at_once(back).unwrap().used, 6, "{limit:?}");
        servers.promote(Memory::default());
        assert_eq!(takes(&refunds, &limit, 8..=8).used, 7, "{limit:?}");
        // The older status of 10 units includes the unit that was charged since, unless the limit's
        // charges are joined one by one.
        let after = takes(&replays, &limit, 9..=9).used;
        let refused = after - 8;
        assert!((3..=4).contains(&refused), "{refused}, {limit:?}");
        assert_eq!(replays.replayed().units, refused, "{limit:?}");
        assert_eq!(takes(&refunds, &limit, 10..=10).used, after + 1, "{limit:?}");
    }
}

#[test]
fn memory_is_bounded_and_keeps_the_newest() {
    let (servers, [node]) = nodes();
    let node = node.with_entries(64);
    let limit = fixed("core", QUOTA);
    let at = |number: u64| NOW.after(Millis::new(number / 16));
    let takes = |node: &FailoverReplay<Promoted>, number| {
        at_once(apply_one(node, at(20_000), &limit, &user(number), take(1, 1))).unwrap().used
    };
    servers.cut();
    for number in 0..20_000 {
        at_once(apply_one(&node, at(number), &limit, &user(number), take(1, 1))).unwrap();
    }
    servers.promote(Memory::default());
    assert_eq!(takes(&node, 19_999), 2);
    let kept = node.replayed().limits;
    assert!((1..=64).contains(&kept), "{kept}");
    assert!(node.max_bytes() < 64 * 256);
    let (_, [whole]) = nodes();
    assert!(whole.max_bytes() < 2 << 20, "{}", whole.max_bytes());
}

#[test]
fn a_subject_that_is_too_long_is_charged_all_the_same() {
    let (servers, [node]) = nodes();
    let limit = fixed("core", QUOTA);
    let long = [b'x'; MAX_SUBJECT_BYTES];
    let value = tollgate::model::Value::Clear(&long);
    let subject = Subject::new([("user", value)], &crate::setup::key());
    for used in 1..=3 {
        let reading = at_once(apply_one(&node, NOW, &limit, &subject, take(1, 1))).unwrap();
        assert_eq!(reading.used, used);
    }
    servers.cut();
    servers.promote(Memory::default());
    assert_eq!(at_once(apply_one(&node, NOW, &limit, &subject, take(1, 1))).unwrap().used, 4);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_take_it_holds_nobody_back_for_long() {
    let (servers, [node]) = nodes();
    let node = node.with_time(Duration::from_millis(40));
    let limit = fixed("core", QUOTA);
    servers.cut();
    takes(&node, &limit, 1..=10);
    servers.promote(Memory::default());
    node.store().hangs.store(true, Ordering::SeqCst);
    let started = tokio::time::Instant::now();
    let used = apply_one(&node, NOW, &limit, &user(1), take(1, 11)).await.unwrap().used;
    assert_eq!(used, 1);
    assert_eq!(started.elapsed(), Duration::from_millis(40));
    assert_eq!(
        node.replayed(),
        ReplayCounts { replays: 1, abandoned: 1, ..ReplayCounts::default() }
    );
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_gives_up_leaves_the_repair_to_the_next() {
    let (servers, [node]) = nodes();
    let limit = fixed("core", QUOTA);
    servers.cut();
    takes(&node, &limit, 1..=10);
    servers.promote(Memory::default());
    node.store().hangs.store(true, Ordering::SeqCst);
    let subject = user(1);
    let call = apply_one(&node, NOW, &limit, &subject, take(1, 11));
    assert!(tokio::time::timeout(Duration::from_millis(15), call).await.is_err());
    node.store().hangs.store(false, Ordering::SeqCst);
    let used = apply_one(&node, NOW, &limit, &subject, take(1, 11)).await.unwrap().used;
    assert_eq!(used, 11);
}

/// The defect: state that could not be joined was joined at the next attempt, however much later
/// that was. Other nodes had used the store since.
#[tokio::test(start_paused = true)]
async fn a_replay_that_was_interrupted_for_long_joins_no_old_state() {
    let day = Millis::from_secs(86_400);
    let window = FixedWindow::new(QUOTA, day, Anchor::Calendar).unwrap();
    let limit = Limit::new("core", Algorithm::FixedWindow(window)).unwrap();
    let reach = DEFAULT_RETENTION.get() + MAX_OUTAGE.get();
    for (pause, used_after) in [(reach, 11), (reach + 1, 1)] {
        let (servers, [node]) = nodes();
        servers.cut();
        takes(&node, &limit, 1..=10);
        servers.promote(Memory::default());
        node.store().outage.store(day.get(), Ordering::SeqCst);
        node.store().is_lost.store(true, Ordering::SeqCst);
        assert_eq!(node.replay(NOW).await, Err(StoreError::Unavailable));
        tokio::time::advance(Duration::from_millis(pause)).await;
        node.store().is_lost.store(false, Ordering::SeqCst);
        let later = NOW.after(Millis::new(pause));
        let reading = apply_one(&node, later, &limit, &user(1), take(1, 11)).await.unwrap();
        assert_eq!(reading.used, used_after, "{pause}");
    }
}

/// Polls `future` once, and asserts that the future waits.
pub(crate) async fn waits(mut future: Pin<&mut impl Future>) {
    poll_fn(|context| {
        assert!(future.as_mut().poll(context).is_pending(), "it does not wait");
        Poll::Ready(())
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_last_word_that_comes_while_others_repair_is_not_lost() {
    let (servers, [node]) = nodes();
    let (limit, subject) = (fixed("core", QUOTA), user(1));
    servers.cut();
    takes(&node, &limit, 1..=10);
    let gate = Arc::new(Semaphore::new(0));
    *node.store().answers.lock() = Some(Arc::clone(&gate));
    let mut last = pin!(apply_one(&node, NOW, &limit, &subject, take(1, 11)));
    waits(last.as_mut()).await;
    servers.promote(Memory::default());
    node.store().hangs.store(true, Ordering::SeqCst);
    {
        let mut repair = pin!(node.replay(NOW));
        waits(repair.as_mut()).await;
        node.store().hangs.store(false, Ordering::SeqCst);
        *node.store().answers.lock() = None;
        gate.add_permits(1);
        assert_eq!(last.await.unwrap().used, 11);
    }
    assert_eq!(apply_one(&node, NOW, &limit, &subject, take(1, 12)).await.unwrap().used, 12);
}

/// The answer of a charge arrives after the answer of a refund that the store executed later.
#[tokio::test]
async fn a_late_answer_does_not_undo_a_refund() {
    let (servers, [node]) = nodes();
    let (limit, subject) = (fixed("core", QUOTA), user(1));
    servers.cut();
    let first = takes(&node, &limit, 1..=10);
    let gate = Arc::new(Semaphore::new(0));
    *node.store().answers.lock() = Some(Arc::clone(&gate));
    let mut late = pin!(apply_one(&node, NOW, &limit, &subject, take(1, 11)));
    waits(late.as_mut()).await;
    *node.store().answers.lock() = None;
    let back =
        apply_one(&node, NOW, &limit, &subject, refund(4, 10, first.position)).await.unwrap();
    assert_eq!(back.used, 7);
    gate.add_permits(1);
    assert_eq!(late.await.unwrap().used, 11);
    servers.promote(Memory::default());
    assert_eq!(apply_one(&node, NOW, &limit, &subject, take(1, 12)).await.unwrap().used, 8);
}

#[test]
fn who_sees_an_epoch_settled_is_not_held_back() {
    let (servers, [node]) = nodes();
    let (limit, node) = (fixed("core", QUOTA), Arc::new(node));
    servers.promote(Memory::default());
    let (other, of) = (Arc::clone(&node), limit.clone());
    *node.store().before_release.lock() = Some(Box::new(move || {
        let subject = user(2);
        let charge = pin!(apply_one(&*other, NOW, &of, &subject, take(1, 1)));
        let polled = charge.poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending(), "it waits for the release: {polled:?}");
    }));
    assert_eq!(takes(&*node, &limit, 1..=1).used, 1);
    assert!(node.store().before_release.lock().is_none(), "nothing was released");
}

#[test]
fn a_node_that_nobody_asks_repairs_too() {
    let limit = fixed("core", QUOTA);
    let (servers, [busy, idle]) = nodes();
    takes(&busy, &limit, 1..=10);
    servers.cut();
    takes(&busy, &limit, 11..=12);
    takes(&idle, &limit, 13..=20);
    servers.promote(Memory::default());
    at_once(idle.replay(NOW)).unwrap();
    assert_eq!(takes(&busy, &limit, 21..=21).used, 21);
}

#[test]
fn looks_are_never_held_back() {
    let (servers, [node]) = nodes();
    let limit = fixed("core", QUOTA);
    takes(&node, &limit, 1..=10);
    servers.promote(Memory::default());
    let look = Operation::Peek { cost: Cost::new(1).unwrap() };
    assert_eq!(
        at_once(apply_one(&node, NOW, &limit, &user(1), look)).unwrap().admission,
        Admission::Now
    );
    assert_eq!(node.replayed(), ReplayCounts::default());
}

proptest! {
    /// With a single node, no answer shows a failover, whatever data the replica had when
    /// replication stopped.
    #[test]
    fn through_one_node_nothing_is_lost(trace in calls(7, 3), cut in 0..100_usize, lag in 1..20_usize) {
        let limits = of_every_kind(6);
        let (servers, [node]) = nodes();
        let node = node.with_retention(Millis::from_secs(1 << 20));
        let healthy = Memory::default();
        let mut call = 0;
        replay(&trace, &limits, |now: Timestamp, charges| {
            if call == cut {
                servers.cut();
            }
            if call == cut + lag {
                servers.promote(Memory::default());
            }
            call += 1;
            let expected = at_once(healthy.apply(now, charges)).unwrap();
            let found = at_once(node.apply(now, charges)).unwrap();
            // A peek is not held back until the replay, so its answer may differ.
            if !charges.iter().all(|charge| charge.operation.is_read_only()) {
                prop_assert_eq!(comparable(&found), comparable(&expected), "call {}", call);
            }
            Ok(())
        })?;
    }
}
