//! Reservations through the limiter: made, extended, settled once, and released at their expiry.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};
use tollgate::limiter::Decision;
use tollgate::limiter::{HoldOutcome, MAX_UNPAID_WAIT, Outcome, RedeemError, Reservation};
use tollgate::model::algo::{Anchor, Concurrency, FixedWindow};
use tollgate::model::policy::{LimitBinding, LimitRef, MatchMode, Plan, Queue, RequestMatch, Rule};
use tollgate::model::{
    Algorithm, Cost, Limit, Millis, Policy, RequestAttributes, ReservationTerms, Store, Subject,
    Timestamp,
};
use tollgate::observe::{ReservationCounts, Reservations};
use tollgate::overrides::{
    Effect, Override, OverrideChange, OverrideScope, OverrideTable, OverrideTarget,
};
use tollgate::store::Memory;
use tollgate::{DecisionRequest, HashKey, Limiter, ManualClock, ReceiptError};

use crate::faulty::{Faulty, Trouble};

const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const MINUTE: Millis = Millis::from_secs(60);

fn window(name: &str, quota: u64, overdraft: u64) -> Limit {
    let window = FixedWindow::new(quota, MINUTE, Anchor::FirstRequest).unwrap();
    let terms =
        ReservationTerms { max: Millis::from_secs(20), overdraft, ..ReservationTerms::default() };
    Limit::new(name, Algorithm::FixedWindow(window)).unwrap().with_reservation_terms(terms).unwrap()
}

/// Returns a policy with 3 requests and 100 tokens per minute and 2 concurrent requests. A request
/// reserves 40 tokens.
fn policy() -> Policy {
    let flight = Concurrency::new(2, Millis::from_secs(5)).unwrap();
    let flight = Limit::new("flight", Algorithm::Concurrency(flight)).unwrap();
    let limits = [window("requests", 3, 0), window("tokens", 100, 10), flight];
    let limits = limits.map(|limit| LimitBinding { limit: Arc::new(limit), per: Vec::new() });
    let uses = [1, 40, 1].into_iter().enumerate();
    let uses =
        uses.map(|(limit, cost)| LimitRef { limit, cost: Cost::new(cost).unwrap() }).collect();
    let rule = Rule::new("all", RequestMatch::default(), uses);
    Policy::new(Vec::new(), limits.into(), vec![rule], MatchMode::FirstMatch).unwrap()
}

fn limiter(key: &HashKey) -> Limiter<Memory> {
    let limiter = Limiter::new(policy(), Memory::default()).with_key(key.clone());
    limiter.with_clock(ManualClock::new(START))
}

const FACTS: RequestAttributes<'static> = RequestAttributes {
    method: "POST",
    path: "/",
    query: None,
    host: None,
    peer: None,
    headers: &(),
};

fn after(millis: u64) -> Timestamp {
    START.after(Millis::new(millis))
}

async fn reserve_at(limiter: &Limiter<impl Store>, now: Timestamp, hold_for: Millis) -> Decision {
    let policy = limiter.policy();
    let plan: Plan<'_> = policy.plan(&FACTS, limiter.key());
    let request = DecisionRequest::new(now, &policy, plan);
    let reservation = Reservation::All(hold_for);
    limiter.decide(DecisionRequest { reservation, ..request }).await
}

/// Returns the used and the reserved units of each limit.
async fn status_at(limiter: &Limiter<Memory>, now: Timestamp) -> [(u64, u64); 3] {
    let policy = limiter.policy();
    let plan = policy.plan(&FACTS, limiter.key());
    let (evaluation, _) = limiter.peek_planned(now, &plan.enforced).await.unwrap();
    let usage: Vec<_> = evaluation.statuses.iter().map(|it| (it.used, it.reserved)).collect();
    usage.try_into().unwrap()
}

/// Returns the actual cost for the tokens, and the reserved units for all other limits.
fn tokens(units: u64) -> impl Fn(&Limit, Cost) -> Cost + Send {
    move |limit, held| if limit.name() == "tokens" { Cost::new(units).unwrap() } else { held }
}

#[tokio::test]
async fn what_is_reserved_is_settled_at_its_real_cost_once() {
    let limiter = limiter(&HashKey::random());
    let mut decision = reserve_at(&limiter, START, MINUTE).await;
    assert!(decision.is_admitted());
    assert_eq!(status_at(&limiter, START).await, [(1, 1), (40, 40), (1, 1)]);
    let text = limiter.seal(decision.receipt.take().unwrap(), START);
    let settled = limiter.settle_at(after(1_000), &text, tokens(15)).await.unwrap();
    assert_eq!(settled.outcome, HoldOutcome::Done);
    let refunded: Vec<_> = settled.limits.iter().map(|it| (it.refunded, it.added)).collect();
    assert_eq!(refunded, [(0, 0), (25, 0), (1, 0)]);
    assert_eq!(status_at(&limiter, after(1_000)).await, [(1, 0), (15, 0), (0, 0)]);
    let again = limiter.settle_at(after(1_001), &text, tokens(0)).await.unwrap();
    assert_eq!(again.outcome, HoldOutcome::Unchanged);
    assert_eq!(status_at(&limiter, after(1_001)).await, [(1, 0), (15, 0), (0, 0)]);
}

#[tokio::test]
async fn one_limit_that_refuses_leaves_nothing_held() {
    let limiter = limiter(&HashKey::random());
    let first = reserve_at(&limiter, START, MINUTE).await.receipt.unwrap();
    let second = reserve_at(&limiter, START, MINUTE).await.receipt.unwrap();
    let third = reserve_at(&limiter, START, MINUTE).await;
    assert!(!third.is_admitted() && third.receipt.is_none());
    let refused: Vec<_> = third.evaluation.refusals().map(|it| it.limit.name()).collect();
    assert_eq!(refused, ["tokens", "flight"]);
    assert_eq!(status_at(&limiter, START).await, [(2, 2), (80, 80), (2, 2)]);
    // The holder of a receipt value needs no text.
    assert_eq!(limiter.settle(first, tokens(5)).await.unwrap().outcome, HoldOutcome::Done);
    limiter.refund(second).await.unwrap();
    assert_eq!(status_at(&limiter, START).await, [(1, 0), (5, 0), (0, 0)]);
}

#[tokio::test]
async fn a_settlement_above_overdraws_as_far_as_the_policy_lets_it() {
    let limiter = limiter(&HashKey::random());
    let receipt = reserve_at(&limiter, START, MINUTE).await.receipt.unwrap();
    let settled = limiter.settle(receipt, tokens(500)).await.unwrap();
    assert_eq!(settled.limits[1].added, 70, "100 and 10 more, less what was held");
    assert_eq!(settled.limits[1].status.remaining, 0);
    assert!(!reserve_at(&limiter, START, MINUTE).await.is_admitted());
}

#[tokio::test]
async fn costs_above_reservation_and_quota_are_charged_in_later_windows() {
    let limiter = limiter(&HashKey::random());
    let receipt = reserve_at(&limiter, START, MINUTE).await.receipt.unwrap();
    limiter.settle(receipt, tokens(320)).await.unwrap();
    assert_eq!(status_at(&limiter, START).await[1], (110, 0), "100, and 10 of the overdraft");
    // 210 units are unpaid: the next window pays 110, the one after it 100.
    let mut now = START;
    for (used, is_admitted) in [(110, false), (100, false), (40, true)] {
        now = now.after(MINUTE);
        let decision = reserve_at(&limiter, now, MINUTE).await;
        assert_eq!(decision.is_admitted(), is_admitted, "{used}");
        assert_eq!(status_at(&limiter, now).await[1].0, used);
    }
}

#[tokio::test]
async fn a_client_that_reserves_less_than_it_costs_pays_in_the_end() {
    let limiter = limiter(&HashKey::random());
    let receipts = [
        reserve_at(&limiter, START, MINUTE).await.receipt.unwrap(),
        reserve_at(&limiter, START, MINUTE).await.receipt.unwrap(),
    ];
    for receipt in receipts {
        limiter.settle(receipt, tokens(100)).await.unwrap();
    }
    let now = START.after(MINUTE);
    assert!(!reserve_at(&limiter, now, MINUTE).await.is_admitted(), "90 of 100 are paid");
    assert_eq!(status_at(&limiter, now).await[1].0, 90);
    assert!(reserve_at(&limiter, now.after(MINUTE), MINUTE).await.is_admitted());
}

#[tokio::test]
async fn a_client_that_disconnects_while_its_unpaid_cost_is_charged_still_owes_it() {
    let limiter = Limiter::new(policy(), Faulty::new()).with_clock(ManualClock::new(START));
    let receipt = reserve_at(&limiter, START, MINUTE).await.receipt.unwrap();
    limiter.settle(receipt, tokens(200)).await.unwrap();
    let now = START.after(MINUTE);
    // 90 units are unpaid. The first client leaves during the first of the two calls that charge
    // them, the second client during the second call.
    for calls_before in 0..2 {
        let gate = Arc::new(Semaphore::new(0));
        let answered = std::iter::repeat_n(Trouble::None, calls_before);
        limiter.store().next(answered.chain([Trouble::Held(gate)]));
        let before = limiter.store().calls();
        timeout(Duration::ZERO, reserve_at(&limiter, now, MINUTE)).await.expect_err("held");
        assert_eq!(limiter.store().calls(), before + calls_before + 1);
    }
    assert!(!reserve_at(&limiter, now, MINUTE).await.is_admitted(), "90 of 100 are paid");
}

/// Returns a limiter whose client has 90 unpaid units, and the start of the window after the window
/// in which the client used them.
async fn in_debt() -> (Limiter<Faulty>, Timestamp) {
    let limiter = Limiter::new(policy(), Faulty::new()).with_clock(ManualClock::new(START));
    let receipt = reserve_at(&limiter, START, MINUTE).await.receipt.unwrap();
    limiter.settle(receipt, tokens(200)).await.unwrap();
    (limiter, START.after(MINUTE))
}

#[tokio::test]
async fn a_burst_waits_until_its_unpaid_cost_is_charged() {
    let (limiter, now) = in_debt().await;
    let gate = Arc::new(Semaphore::new(0));
    limiter.store().next([Trouble::Held(Arc::clone(&gate))]);
    let mut first = pin!(reserve_at(&limiter, now, MINUTE));
    timeout(Duration::ZERO, &mut first).await.expect_err("the first call is held");
    let calls = limiter.store().calls();
    let mut second = pin!(reserve_at(&limiter, now, MINUTE));
    timeout(Duration::ZERO, &mut second).await.expect_err("the unpaid cost is being charged");
    assert_eq!(limiter.store().calls(), calls);
    gate.add_permits(1);
    let (first, second) = tokio::join!(first, second);
    assert!(!first.is_admitted() && !second.is_admitted(), "90 of 100 are paid");
    // The second request charges nothing again, because the first request charged the whole cost.
    assert_eq!(limiter.store().calls(), calls + 3);
}

#[tokio::test]
async fn a_waiting_request_charges_the_unpaid_cost_if_the_charging_client_disconnects() {
    let (limiter, now) = in_debt().await;
    let never = Arc::new(Semaphore::new(0));
    limiter.store().next([Trouble::Held(never)]);
    let mut first = Box::pin(reserve_at(&limiter, now, MINUTE));
    timeout(Duration::ZERO, &mut first).await.expect_err("the first call is held");
    let mut second = pin!(reserve_at(&limiter, now, MINUTE));
    timeout(Duration::ZERO, &mut second).await.expect_err("the unpaid cost is being charged");
    drop(first);
    assert!(!second.await.is_admitted(), "90 of 100 are paid");
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_for_the_charge_of_an_unpaid_cost_for_a_bounded_time() {
    let (limiter, now) = in_debt().await;
    let never = Arc::new(Semaphore::new(0));
    limiter.store().next([Trouble::Held(never)]);
    let mut first = pin!(reserve_at(&limiter, now, MINUTE));
    timeout(Duration::ZERO, &mut first).await.expect_err("the first call is held");
    let started = Instant::now();
    assert!(reserve_at(&limiter, now, MINUTE).await.is_admitted());
    assert!((MAX_UNPAID_WAIT..MAX_UNPAID_WAIT * 2).contains(&started.elapsed()));
}

/// The bug: a decision that waited too long for the charge of one unpaid cost also skipped the
/// unpaid costs of the limits after it.
#[tokio::test(start_paused = true)]
async fn a_long_wait_for_one_unpaid_cost_skipped_the_unpaid_costs_of_later_limits() {
    let limiter = Limiter::new(policy(), Faulty::new()).with_clock(ManualClock::new(START));
    let receipt = reserve_at(&limiter, START, MINUTE).await.receipt.unwrap();
    // One request and 90 tokens are unpaid.
    let real = |limit: &Limit, held: Cost| match limit.name() {
        "requests" => Cost::new(4).unwrap(),
        "tokens" => Cost::new(200).unwrap(),
        _ => held,
    };
    limiter.settle(receipt, real).await.unwrap();
    let now = START.after(MINUTE);
    let never = Arc::new(Semaphore::new(0));
    limiter.store().next([Trouble::Held(never)]);
    let mut first = pin!(reserve_at(&limiter, now, MINUTE));
    timeout(Duration::ZERO, &mut first).await.expect_err("the charge of the requests is held");
    let started = Instant::now();
    let second = reserve_at(&limiter, now, MINUTE).await;
    let refused: Vec<_> = second.evaluation.refusals().map(|it| it.limit.name()).collect();
    assert_eq!(refused, ["tokens"], "90 of 100 are paid");
    assert!((MAX_UNPAID_WAIT..MAX_UNPAID_WAIT * 2).contains(&started.elapsed()));
}

/// The bug: a request that waited in a queue did not pay a cost that arose while it waited.
#[tokio::test(start_paused = true)]
async fn a_request_in_a_queue_did_not_pay_the_cost_of_the_request_before_it() {
    let clock = Arc::new(ManualClock::new(START));
    let limiter = Limiter::new(policy(), Memory::default()).with_clock(Arc::clone(&clock));
    let policy = limiter.policy();
    let request = || {
        let mut plan = policy.plan(&FACTS, limiter.key());
        // One request takes both slots.
        plan.enforced[2].cost = Cost::new(2).unwrap();
        let queue = Some(Queue { wait: Millis::from_secs(10), length: 1 });
        let reservation = Reservation::All(MINUTE);
        DecisionRequest { reservation, queue, ..DecisionRequest::new(START, &policy, plan) }
    };
    let first = limiter.decide(request()).await.receipt.unwrap();
    let mut second = pin!(limiter.decide(request()));
    timeout(Duration::ZERO, &mut second).await.expect_err("no slot is free");
    limiter.settle(first, tokens(200)).await.unwrap();
    clock.advance(MINUTE);
    let second = second.await;
    let refused: Vec<_> = second.evaluation.refusals().map(|it| it.limit.name()).collect();
    assert_eq!(refused, ["tokens"], "90 of 100 are paid");
}

#[tokio::test]
async fn a_reset_cancels_carried_over_costs() {
    let limiter = limiter(&HashKey::random());
    let receipt = reserve_at(&limiter, START, MINUTE).await.receipt.unwrap();
    limiter.settle(receipt, tokens(320)).await.unwrap();
    let policy = limiter.policy();
    let planned = policy.plan(&FACTS, limiter.key()).enforced;
    limiter.forget_at(START, &planned).await.unwrap();
    assert!(reserve_at(&limiter, START, MINUTE).await.is_admitted(), "nothing is unpaid");
    assert_eq!(status_at(&limiter, START).await[1], (40, 40));
}

#[tokio::test]
async fn a_reset_during_the_charge_of_an_unpaid_cost_cancels_the_cost() {
    let (limiter, now) = in_debt().await;
    let gate = Arc::new(Semaphore::new(0));
    limiter.store().next([Trouble::Held(gate)]);
    timeout(Duration::ZERO, async {
        tokio::join!(reserve_at(&limiter, now, MINUTE), async {
            let planned = limiter.policy().plan(&FACTS, limiter.key()).enforced;
            limiter.forget_at(now, &planned).await.unwrap();
        })
    })
    .await
    .expect_err("the first call is held");
    // The reset arrived at the store, and the client of the first request disconnected.
    assert!(reserve_at(&limiter, now, MINUTE).await.is_admitted(), "nothing is unpaid");
}

/// The bug: a request that charged an unpaid cost during a reset charged the whole cost after the
/// reset, although the reset cancelled the cost.
#[tokio::test]
async fn a_cost_that_a_reset_cancelled_was_charged_after_the_reset() {
    // The store executes the reset before one of the two calls that charge the cost. The answer to
    // the reset arrives after both calls.
    for calls_before in 0..2 {
        let (limiter, now) = in_debt().await;
        let planned = limiter.policy().plan(&FACTS, limiter.key()).enforced;
        let (charge, answer) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let answered = std::iter::repeat_n(Trouble::None, calls_before);
        let held = [Trouble::Held(Arc::clone(&charge)), Trouble::Late(Arc::clone(&answer))];
        limiter.store().next(answered.chain(held));
        let mut first = pin!(reserve_at(&limiter, now, MINUTE));
        timeout(Duration::ZERO, &mut first).await.expect_err("the charge is held");
        let mut reset = pin!(limiter.forget_at(now, &planned));
        timeout(Duration::ZERO, &mut reset).await.expect_err("the answer is late");
        charge.add_permits(1);
        let first = first.await;
        answer.add_permits(1);
        reset.await.unwrap();
        assert_eq!(first.evaluation.statuses[1].used, 40, "{calls_before}");
        assert!(first.is_admitted() && reserve_at(&limiter, now, MINUTE).await.is_admitted());
    }
}

#[tokio::test]
async fn a_settlement_has_the_room_that_an_override_gives() {
    let key = HashKey::random();
    let limiter = limiter(&key);
    let no_subject = Subject::new([], &key).veiled(&key);
    let target = OverrideScope {
        limit: Some("tokens".into()),
        target: OverrideTarget::subject(&no_subject),
    };
    let effect = Effect::Quota { quota: 1_000, burst: None };
    let raised = Override { target, effect, expires_at: after(60_000), reason: "a test".into() };
    let table = OverrideTable::default().changed(&OverrideChange::Set(raised), START).unwrap();
    limiter.overrides().set(Arc::new(table));
    let mut decision = reserve_at(&limiter, START, MINUTE).await;
    let text = limiter.seal(decision.receipt.take().unwrap(), START);
    let settled = limiter.settle_at(START, &text, tokens(500)).await.unwrap();
    assert_eq!(settled.limits[1].added, 460);
    assert_eq!(settled.limits[1].status.remaining, 500);
}

#[tokio::test]
async fn what_nobody_settles_is_released_at_its_end_and_can_be_put_off() {
    let limiter = limiter(&HashKey::random());
    let mut decision = reserve_at(&limiter, START, MINUTE).await;
    let text = limiter.seal(decision.receipt.take().unwrap(), START);
    let extended = limiter.extend_at(after(4_000), &text, Millis::from_secs(10)).await.unwrap();
    assert_eq!(extended.outcome, HoldOutcome::Done);
    assert_eq!(extended.until, after(9_000), "one lease from then");
    assert_eq!(status_at(&limiter, after(8_999)).await, [(1, 1), (40, 40), (1, 1)]);
    assert_eq!(status_at(&limiter, after(19_999)).await, [(1, 1), (40, 40), (0, 0)]);
    assert_eq!(status_at(&limiter, after(20_000)).await, [(0, 0); 3], "the longest hold");
    let text = extended.receipt.unwrap();
    let late = limiter.extend_at(after(20_000), &text, MINUTE).await.unwrap();
    assert_ne!(late.outcome, HoldOutcome::Done);
    assert!(late.receipt.is_none());
    let late = limiter.settle_at(after(20_000), &text, tokens(1)).await.unwrap();
    assert_ne!(late.outcome, HoldOutcome::Done);
    let old = limiter.settle_at(after(100_000), &text, tokens(1)).await.unwrap();
    assert_eq!(old.outcome, HoldOutcome::Expired);
    assert_eq!(status_at(&limiter, after(100_000)).await, [(0, 0); 3]);
}

#[tokio::test]
async fn a_receipt_releases_what_it_reserved_whichever_way_it_is_refunded() {
    let limiter = limiter(&HashKey::random());
    let mut first = reserve_at(&limiter, START, MINUTE).await;
    let first = limiter.seal(first.receipt.take().unwrap(), START);
    let mut second = reserve_at(&limiter, START, MINUTE).await;
    let second = limiter.seal(second.receipt.take().unwrap(), START);
    assert_eq!(limiter.release_at(START, &first).await.unwrap().outcome, Outcome::Refunded);
    assert_eq!(limiter.redeem_at(START, &second).await.unwrap().outcome, Outcome::Refunded);
    assert_eq!(status_at(&limiter, START).await, [(0, 0); 3]);
    assert_eq!(limiter.release_at(START, &first).await.unwrap().outcome, Outcome::Unchanged);
}

#[tokio::test]
async fn receipts_of_charges_and_of_other_keys_settle_nothing() {
    let limiter = limiter(&HashKey::random());
    let policy = limiter.policy();
    let plan = policy.plan(&FACTS, limiter.key());
    let mut charged = limiter.decide(DecisionRequest::new(START, &policy, plan)).await;
    let charged = limiter.seal(charged.receipt.take().unwrap(), START);
    let refused = limiter.settle_at(START, &charged, tokens(0)).await.unwrap_err();
    assert_eq!(refused, RedeemError::Receipt(ReceiptError::NotReserved));
    let refused = limiter.extend_at(START, &charged, MINUTE).await.unwrap_err();
    assert_eq!(refused, RedeemError::Receipt(ReceiptError::NotReserved));
    let foreign = self::limiter(&HashKey::random());
    let mut theirs = reserve_at(&foreign, START, MINUTE).await;
    let theirs = foreign.seal(theirs.receipt.take().unwrap(), START);
    let refused = limiter.settle_at(START, &theirs, tokens(0)).await.unwrap_err();
    assert_eq!(refused, RedeemError::Receipt(ReceiptError::Foreign));
    assert_eq!(status_at(&limiter, START).await, [(1, 0), (40, 0), (1, 1)]);
}

#[tokio::test]
async fn what_is_held_is_counted_where_it_is_taken_and_ended() {
    let holds = Arc::new(Reservations::new(&policy()));
    let limiter = limiter(&HashKey::random()).with_observer(Arc::clone(&holds));
    assert_eq!(holds.limits(), []);
    let kept = reserve_at(&limiter, START, MINUTE).await.receipt.unwrap();
    let text = limiter.seal(kept, START);
    let released = reserve_at(&limiter, START, MINUTE).await.receipt.unwrap();
    assert!(!reserve_at(&limiter, START, MINUTE).await.is_admitted(), "it opens nothing");
    assert_eq!(
        limiter.settle_at(START, &text, tokens(5)).await.unwrap().outcome,
        HoldOutcome::Done
    );
    limiter.settle_at(START, &text, tokens(5)).await.unwrap();
    limiter.refund_at(START, released).await.unwrap();
    let counts = |limit: &str, late| ReservationCounts {
        limit: limit.into(),
        opened: 2,
        settled: 1,
        released: 1,
        late,
        unanswered: 0,
    };
    assert_eq!(holds.limits(), ["requests", "tokens", "flight"].map(|limit| counts(limit, 1)));

    // A permit of a charge counts as held; units counted in a window do not.
    let charged = limiter.check(&FACTS).await.receipt.unwrap();
    let [.., flight] = &holds.limits()[..] else { panic!("nothing is held") };
    assert_eq!((&*flight.limit, flight.opened, flight.released), ("flight", 3, 1));
    limiter.replace_policy(policy().into());
    limiter.refund_at(START.after(Millis::from_secs(6)), charged).await.unwrap();
    let [requests, _, flight] = &holds.limits()[..] else { panic!("rows are gone") };
    assert_eq!((flight.released, flight.late), (1, 2), "it ended by itself before");
    assert_eq!((requests.opened, requests.released), (2, 1));
}
