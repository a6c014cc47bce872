//! Rebalances between shard maps: no additional window, and no lost unit.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use proptest::prelude::*;
use tokio::runtime::Builder;
use tokio::sync::Semaphore;
use tollgate::model::{Admission, Millis, Refusals, Store, StoreError, Subject};
use tollgate::store::Memory;
use tollgate_stores::atomic::Partitions;
use tollgate_stores::rebalance::{Phase, Shards};
use tollgate_stores::{Atomic, Deadline, Rebalance, Shard, Sharded};

use crate::faulty::{Faulty, Trouble};
use crate::setup::{
    NOW, apply_one, calls, charge, comparable, fixed, key, of_every_kind, refund, replay, take,
    two_buckets, until, user,
};

/// Returns a shard map with these names, weights and stores.
pub(crate) fn map<S>(shards: &[(&str, u32, &Arc<S>)]) -> Sharded<Arc<S>> {
    let shard = |(name, weight, store): &(&str, u32, &Arc<S>)| Shard {
        name: (*name).into(),
        weight: *weight,
        store: Arc::clone(store),
    };
    Sharded::new(key(), shards.iter().map(shard)).unwrap()
}

/// The stores of three shards. A test adds the third shard.
pub(crate) struct Fleet(pub(crate) [Arc<Memory>; 3]);

impl Fleet {
    pub(crate) fn new() -> Self {
        Self([(); 3].map(|()| Arc::default()))
    }

    pub(crate) fn before(&self) -> Sharded<Arc<Memory>> {
        map(&[("north", 1, &self.0[0]), ("south", 1, &self.0[1])])
    }

    pub(crate) fn after(&self) -> Sharded<Arc<Memory>> {
        map(&[("north", 1, &self.0[0]), ("south", 1, &self.0[1]), ("west", 1, &self.0[2])])
    }

    pub(crate) fn node(&self) -> Rebalance<Memory> {
        Rebalance::new(self.before(), self.after())
    }
}

proptest! {
    /// A single node that passes through all phases behaves like one store, while all stores
    /// answer.
    #[test]
    fn whoever_moves_goes_on_where_it_was(
        trace in calls(7, 3), lead_at in 0..100_usize,
    ) {
        let (fleet, runtime) =
            (Fleet::new(), Builder::new_current_thread().enable_time().build().unwrap());
        let (old, node) = (Atomic::new(fleet.before()), fleet.node());
        let (limits, one) = (of_every_kind(4), Memory::default());
        let mut step = 0;
        replay(&trace, &limits, |now, charges| {
            step += 1;
            if step > lead_at {
                node.enter(Phase::Cutover);
            }
            let subject = charges[0].subject;
            let own: Vec<_> =
                charges.iter().filter(|charge| charge.subject == subject).copied().collect();
            // Some nodes use only the old map until a node enters the cutover.
            let knows_old = step % 3 == 0 && step <= lead_at;
            let answer = runtime.block_on(async {
                if knows_old { old.apply(now, &own).await } else { node.apply(now, &own).await }
            });
            let answer = answer.unwrap();
            prop_assert_eq!(comparable(&answer), comparable(&one.apply_now(now, &own).unwrap()));
            Ok(())
        })?;
    }
}

proptest! {
    /// Nodes in neighbouring phases behave like one store. The nodes are called in turn while
    /// windows end and open.
    #[test]
    fn nodes_in_neighbouring_phases_open_one_window(
        trace in calls(7, 3), asked in prop::collection::vec(0..3_u8, 100), lead_at in 0..100_usize,
    ) {
        let (fleet, runtime) =
            (Fleet::new(), Builder::new_current_thread().enable_time().build().unwrap());
        let (old, behind, ahead) = (Atomic::new(fleet.before()), fleet.node(), fleet.node());
        let (limits, one) = (of_every_kind(4), Memory::default());
        let first_request = [fixed("first", 4), fixed("second", 2)];
        let limits = first_request.into_iter().chain(limits).take(7).collect::<Vec<_>>();
        let mut step = 0;
        replay(&trace, &limits, |now, charges| {
            step += 1;
            if step > lead_at {
                ahead.enter(Phase::Cutover);
            }
            let subject = charges[0].subject;
            let own: Vec<_> =
                charges.iter().filter(|charge| charge.subject == subject).copied().collect();
            let node = asked.get(step).copied().unwrap_or(0);
            let answer = runtime.block_on(async {
                match node {
                    // Some calls use only the old map until a node enters the cutover.
                    0 if step <= lead_at => old.apply(now, &own).await,
                    0 | 1 => behind.apply(now, &own).await,
                    _ => ahead.apply(now, &own).await,
                }
            });
            let (answer, exact) = (answer.unwrap(), one.apply_now(now, &own).unwrap());
            let met = (own[0].limit, now, node);
            prop_assert_eq!(comparable(&answer), comparable(&exact), "{:?}", met);
            Ok(())
        })?;
    }
}

#[tokio::test]
async fn shards_that_move_are_a_store_in_every_phase() {
    for phase in [Phase::DualWrite, Phase::Cutover, Phase::Done] {
        let node = Fleet::new().node();
        node.enter(phase);
        tollgate_conformance::check(&node, &format!("carry-{phase:?}")).await;
    }
}

/// Three nodes change phases one after the other. Each limit is charged through all three nodes.
#[tokio::test]
async fn of_a_limit_exactly_the_quota_is_admitted_through_a_move() {
    let fleet = Fleet::new();
    let old = Atomic::new(fleet.before());
    let nodes = [fleet.node(), fleet.node(), fleet.node()];
    let limit = fixed("core", 60);
    let users: Vec<Subject> = (0..60).map(user).collect();
    let moving = users.iter().filter(|user| nodes[0].moves(user)).count();
    assert!((8..=35).contains(&moving), "a third moves, not {moving} of 60");
    let mut admitted = vec![0_u64; users.len()];
    let mut resets = vec![None; users.len()];
    for step in 0..80_usize {
        // The nodes enter the cutover one after the other, from call 40 on.
        let leading = step.saturating_sub(40) / 5;
        nodes.iter().take(leading).for_each(|node| node.enter(Phase::Cutover));
        for (number, subject) in users.iter().enumerate() {
            let node = (step + number) % 4;
            let take = take(1, step as u128);
            let reading = match nodes.get(node) {
                Some(node) => apply_one(node, NOW, &limit, subject, take).await,
                None if leading == 0 => apply_one(&old, NOW, &limit, subject, take).await,
                None => apply_one(&nodes[0], NOW, &limit, subject, take).await,
            };
            let reading = reading.unwrap();
            admitted[number] += u64::from(reading.admission == Admission::Now);
            let reset = *resets[number].get_or_insert(reading.full_reset_at);
            assert_eq!(reading.full_reset_at, reset, "the reset stays");
        }
    }
    assert!(admitted.iter().all(|units| *units == 60), "{admitted:?}");
    assert!(nodes.iter().all(|node| node.transferred() > 0 && node.diverged() == 0));
}

/// Returns a subject that moves from its old owner to the added shard.
pub(crate) fn mover<S: Store>(node: &Rebalance<S>) -> Subject {
    (0..).map(user).find(|user| node.moves(user)).unwrap()
}

#[tokio::test]
async fn a_receipt_is_redeemed_at_both_owners_and_by_the_new_one_alone() {
    let node = Fleet::new().node();
    let (limit, subject) = (fixed("core", 5), mover(&node));
    let first = apply_one(&node, NOW, &limit, &subject, take(3, 1)).await.unwrap();
    let second = apply_one(&node, NOW, &limit, &subject, take(2, 2)).await.unwrap();
    let back = apply_one(&node, NOW, &limit, &subject, refund(3, 1, first.position)).await.unwrap();
    assert_eq!((back.refunded, back.used), (3, 2));
    let used = async |shards: &Shards<Memory>| {
        apply_one(shards, NOW, &limit, &subject, take(0, 0)).await.unwrap().used
    };
    assert_eq!((used(node.before()).await, used(node.after()).await), (2, 2));
    node.enter(Phase::Cutover);
    let back =
        apply_one(&node, NOW, &limit, &subject, refund(2, 2, second.position)).await.unwrap();
    assert_eq!((back.refunded, back.used), (2, 0));
}

/// If two owners report the same usage in whole units, the returned reading is the reading of the
/// owner that has counted more charges.
#[tokio::test]
async fn a_fading_unit_that_one_owner_has_not_heard_of_delays_who_comes_again() {
    let fleet = Fleet::new();
    let (behind, ahead, one) = (fleet.node(), fleet.node(), Memory::default());
    ahead.enter(Phase::Cutover);
    let limit = two_buckets("two", 4);
    let subject = mover(&behind);
    let later = NOW.after(Millis::from_secs(75));
    let asked = [(&ahead, NOW, 1), (&behind, NOW, 3), (&behind, later, 1)];
    for (id, (node, now, cost)) in asked.into_iter().enumerate() {
        let take = charge(&limit, &subject, take(cost, id as u128));
        let answer = node.apply(now, &[take]).await.unwrap();
        assert_eq!(comparable(&answer), comparable(&one.apply_now(now, &[take]).unwrap()), "{id}");
    }
}

#[tokio::test]
async fn what_a_new_owner_did_not_answer_is_made_good() {
    let two = Two::new();
    let node = two.node();
    let (limit, subject) = (fixed("core", 5), mover(&node));
    apply_one(&node, NOW, &limit, &subject, take(1, 1)).await.unwrap();
    two.new.next([Trouble::Lost(StoreError::Unavailable)]);
    let reading = apply_one(&node, NOW, &limit, &subject, take(2, 2)).await.unwrap();
    assert_eq!(
        (reading.admission, reading.used, node.diverged()),
        (Admission::Now, 3, 1),
        "the caller hears nothing"
    );
    let next = apply_one(&node, NOW, &limit, &subject, take(1, 3)).await.unwrap();
    let led = apply_one(node.after(), NOW, &limit, &subject, take(0, 0)).await.unwrap();
    assert_eq!((next.used, led.used), (4, 4));
}

/// Two shards. The second shard is added to the map.
pub(crate) struct Two {
    pub(crate) old: Arc<Faulty>,
    pub(crate) new: Arc<Faulty>,
}

impl Two {
    pub(crate) fn new() -> Self {
        Self { old: Arc::new(Faulty::new()), new: Arc::new(Faulty::new()) }
    }

    pub(crate) fn before(&self) -> Sharded<Arc<Faulty>> {
        map(&[("north", 1, &self.old)])
    }

    pub(crate) fn node(&self) -> Rebalance<Faulty> {
        let after = map(&[("north", 1, &self.old), ("west", 1, &self.new)]);
        Rebalance::new(self.before(), after)
    }
}

/// A node that uses only the old map charged the old owner alone, so the new owner has counted less.
/// A node in dual write charges while a node in cutover waits for one of its calls.
#[tokio::test(start_paused = true)]
async fn a_charge_during_the_transfer_is_never_lost() {
    for is_new_held in [true, false] {
        for calls_before in 0..8 {
            let two = Two::new();
            let (behind, ahead) = (two.node(), two.node());
            let only_old = Atomic::new(two.before());
            let (limit, subject) = (fixed("core", 10), mover(&ahead));
            apply_one(&behind, NOW, &limit, &subject, take(1, 1)).await.unwrap();
            apply_one(&only_old, NOW, &limit, &subject, take(1, 2)).await.unwrap();
            ahead.enter(Phase::Cutover);
            let (gate, held) =
                (Arc::new(Semaphore::new(0)), if is_new_held { &two.new } else { &two.old });
            held.next((0..calls_before).map(|_| Trouble::None));
            held.next([Trouble::Held(Arc::clone(&gate))]);
            let mut waits = pin!(apply_one(&ahead, NOW, &limit, &subject, take(1, 3)));
            let mut first = now_or_never(waits.as_mut()).await;
            held.clear();
            let place = format!("after {calls_before} calls, {is_new_held}");
            apply_one(&behind, NOW, &limit, &subject, take(1, 4)).await.expect(&place);
            gate.add_permits(1);
            if first.is_none() {
                first = Some(waits.await);
            }
            assert_eq!(first.unwrap().unwrap().admission, Admission::Now, "{place}");
            let led = apply_one(ahead.after(), NOW, &limit, &subject, take(0, 0)).await.unwrap();
            assert_eq!(led.used, 4, "{place}");
        }
    }
}

/// Polls `future` once.
async fn now_or_never<F: Future>(future: Pin<&mut F>) -> Option<F::Output> {
    let mut future = future;
    poll_fn(|cx| {
        Poll::Ready(match future.as_mut().poll(cx) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        })
    })
    .await
}

/// The caller is cancelled while one of the owners is slow, or the answer of the old owner is lost
/// after the owner counted the charge.
#[tokio::test(start_paused = true)]
async fn what_a_caller_did_not_wait_for_is_made_good() {
    let slow = || Trouble::Held(Arc::new(Semaphore::new(0)));
    let unheard = || Trouble::Unheard(StoreError::TimedOut);
    // The fault of each owner, and the units that the old owner counted.
    let cases = [
        ([Trouble::None, slow()], 2),
        ([slow(), Trouble::None], 0),
        ([unheard(), Trouble::None], 2),
    ];
    for ([at_old, at_new], counted) in cases {
        let two = Two::new();
        let node = two.node();
        let (limit, subject) = (fixed("core", 9), mover(&node));
        apply_one(&node, NOW, &limit, &subject, take(1, 1)).await.unwrap();
        let met = format!("{at_old:?}, {at_new:?}");
        two.old.next([at_old]);
        two.new.next([at_new]);
        let impatient = Deadline::new(&node).with_budget(Duration::from_millis(5));
        let left = apply_one(&impatient, NOW, &limit, &subject, take(2, 2)).await;
        assert_eq!(left.unwrap_err(), StoreError::TimedOut, "{met}");
        assert_eq!(node.diverged(), 1, "{met}");
        // Remove faults that were not used.
        two.new.clear();
        let next = apply_one(&node, NOW, &limit, &subject, take(1, 3)).await.unwrap();
        let led = apply_one(node.after(), NOW, &limit, &subject, take(0, 0)).await.unwrap();
        assert_eq!((next.used, led.used), (counted + 2, counted + 2), "{met}");
    }
}

/// A node in cutover cannot reach the old owner.
#[tokio::test]
async fn who_cannot_be_asked_for_is_left_behind() {
    let two = Two::new();
    let node = two.node();
    let (limit, subject) = (fixed("core", 5), mover(&node));
    apply_one(node.before(), NOW, &limit, &subject, take(4, 1)).await.unwrap();
    node.enter(Phase::Cutover);
    two.old.next([Trouble::Lost(StoreError::Unavailable)]);
    let reading = apply_one(&node, NOW, &limit, &subject, take(1, 2)).await.unwrap();
    assert_eq!((reading.used, node.failed_transfers(), node.transferred()), (1, 1, 0));
    let found = apply_one(&node, NOW, &limit, &subject, take(1, 3)).await.unwrap();
    assert_eq!((found.used, node.failed_transfers(), node.transferred()), (5, 1, 1));
}

/// A node in cutover uses the last units. A node in dual write then also refuses.
#[tokio::test]
async fn what_the_new_owner_refuses_is_refunded_at_the_old_one() {
    let fleet = Fleet::new();
    let (behind, ahead) = (fleet.node(), fleet.node());
    ahead.enter(Phase::Cutover);
    let (limit, subject) = (fixed("core", 5), mover(&behind));
    let other = fixed("beside", 9);
    apply_one(&ahead, NOW, &limit, &subject, take(4, 1)).await.unwrap();
    let both = [charge(&limit, &subject, take(2, 2)), charge(&other, &subject, take(1, 2))];
    let refused = behind.apply(NOW, &both).await.unwrap();
    assert_ne!(refused[0].admission, Admission::Now);
    assert_eq!(refused[0].used, 4, "as the new owner says");
    for (limit, used) in [(&limit, 4), (&other, 0)] {
        let reading = apply_one(&ahead, NOW, limit, &subject, take(0, 0)).await.unwrap();
        assert_eq!(reading.used, used);
    }
    assert_eq!(
        apply_one(&behind, NOW, &limit, &subject, take(1, 3)).await.unwrap().admission,
        Admission::Now
    );
    assert_ne!(
        apply_one(&ahead, NOW, &limit, &subject, take(1, 4)).await.unwrap().admission,
        Admission::Now
    );
}

/// Charges of subjects that do not move are refunded too. The readings show the status after the
/// refund.
#[tokio::test]
async fn what_stays_reads_as_if_it_had_not_been_charged() {
    let two = Two::new();
    let (behind, ahead) = (two.node(), two.node());
    ahead.enter(Phase::Cutover);
    let (limit, subject) = (fixed("core", 5), mover(&behind));
    let staying = (0..).map(user).find(|user| !behind.moves(user)).unwrap();
    let (beside, fresh) = (fixed("beside", 9), fixed("fresh", 9));
    let hammered = fixed("hammered", 9).with_refusals(Refusals::Counted).unwrap();
    apply_one(&behind, NOW, &beside, &staying, take(3, 1)).await.unwrap();
    apply_one(&ahead, NOW, &limit, &subject, take(4, 2)).await.unwrap();
    let gate = Arc::new(Semaphore::new(0));
    let calls = two.new.calls();
    two.new.next([Trouble::Held(Arc::clone(&gate))]);
    let charges = [
        charge(&limit, &subject, take(2, 3)),
        charge(&beside, &staying, take(1, 3)),
        charge(&fresh, &staying, take(1, 3)),
        charge(&hammered, &staying, take(1, 3)),
    ];
    let meanwhile = async {
        // Another request charges the subject that does not move, before the new owner has refused.
        until(|| two.new.calls() == calls + 1).await;
        apply_one(&ahead, NOW, &fresh, &staying, take(1, 4)).await.unwrap();
        gate.add_permits(1);
    };
    let (refused, ()) = tokio::join!(behind.apply(NOW, &charges), meanwhile);
    let refused = refused.unwrap();
    assert_ne!(refused[0].admission, Admission::Now);
    let used: Vec<_> = refused.iter().map(|reading| reading.used).collect();
    assert_eq!(used, [4, 3, 1, 1]);
    for (limit, used) in [(&beside, 3), (&fresh, 1), (&hammered, 1)] {
        let reading = apply_one(&ahead, NOW, limit, &staying, take(0, 0)).await.unwrap();
        assert_eq!(reading.used, used, "{limit:?}");
    }
    assert_eq!(behind.diverged(), 0);
}

#[test]
fn maps_are_alike_by_names_and_weights() {
    let fleet = Fleet::new();
    let [north, south, _] = &fleet.0;
    let version = |shards: &[(&str, u32, &Arc<Memory>)]| map(shards).version();
    let one = version(&[("north", 1, north), ("south", 2, south)]);
    assert_eq!(version(&[("south", 2, north), ("north", 1, south)]), one);
    assert_ne!(version(&[("north", 2, north), ("south", 1, south)]), one);
    assert_ne!(version(&[("north", 1, north)]), one);
    assert_eq!(one.to_string().len(), 16);
}

#[test]
fn homes_are_asked_for_by_the_map_that_comes() {
    let node = Fleet::new().node();
    let subject = mover(&node);
    assert_eq!(
        node.after().partitions().partition(&subject),
        2,
        "only the added shard gains subjects"
    );
}
