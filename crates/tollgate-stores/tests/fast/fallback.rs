//! Decisions of the fallback while the store does not answer.

use std::num::NonZeroU32;
use std::sync::Arc;

use tollgate::model::policy::{
    LimitBinding, LimitRef, MatchMode, Named, OnFailure, PathPattern, RequestMatch, Rule,
};
use tollgate::model::{
    Admission, ChargeId, Cost, DecisionSource, Limit, Millis, Operation, Policy, Reading,
    RequestAttributes, Store, StoreError, Subject,
};
use tollgate::store::Memory;
use tollgate::{DecisionRequest, Limiter, ManualClock};
use tollgate_stores::fallback::{
    DENY_RETRY_AFTER, Fallback, FallbackChoice, FallbackCounts, FixedAnswer,
};
use tollgate_stores::{Atomic, FallbackStore, LocalShare, Shard, Sharded};

use crate::faulty::{Faulty, Trouble};
use crate::setup::{
    NOW, WINDOW, apply_one, at_once, charge, fixed, in_flight, key, refund, take, user,
};

fn local_share() -> LocalShare<Memory> {
    LocalShare::new(Memory::default(), NonZeroU32::MIN)
}

fn fails(store: &Fallback<Faulty, impl FallbackStore>) {
    store.store().usually(Trouble::Lost(StoreError::Unavailable));
}

fn recovers(store: &Fallback<Faulty, impl FallbackStore>) {
    store.store().usually(Trouble::None);
}

fn one(store: &impl Store, limit: &Limit, subject: &Subject, operation: Operation) -> Reading {
    at_once(apply_one(store, NOW, limit, subject, operation)).unwrap()
}

#[test]
fn every_answer_of_the_stand_in_is_marked_and_counted() {
    let store = Fallback::new(Faulty::new(), local_share());
    let (limit, subject) = (fixed("core", 5), user(1));
    let call = |id| at_once(store.apply(NOW, &[charge(&limit, &subject, take(1, id))])).unwrap();
    assert_eq!(call(1).source(), DecisionSource::Store);
    for (id, error) in [(2, StoreError::TimedOut), (3, StoreError::Full)] {
        store.store().next([Trouble::Lost(error)]);
        assert_eq!(call(id).source(), DecisionSource::Fallback(error));
    }
    assert_eq!(call(4).source(), DecisionSource::Store);
    assert_eq!(store.counts(), FallbackCounts { fallback_decisions: 2, unanswered: 0 });
}

#[test]
fn what_was_charged_at_one_side_is_refunded_there_only() {
    let store = Fallback::new(Faulty::new(), local_share());
    let (limit, subject) = (fixed("core", 10), user(1));
    let there = one(&store, &limit, &subject, take(2, 1));
    fails(&store);
    let here = one(&store, &limit, &subject, take(3, 2));
    assert_eq!((here.used, here.full_reset_at), (5, there.full_reset_at), "the share goes on");
    recovers(&store);
    // The store and the fallback have windows that end at the same time, so only the position
    // distinguishes the two windows.
    let refunded = one(&store, &limit, &subject, refund(3, 2, here.position));
    assert_eq!(refunded.refunded, 3);
    assert_eq!(one(&store, &limit, &subject, take(0, 3)).used, 2);
    let other = user(2);
    let both = [
        charge(&limit, &subject, refund(2, 1, there.position)),
        charge(&limit, &other, take(1, 4)),
    ];
    let readings = at_once(store.apply(NOW, &both)).unwrap();
    assert_eq!((readings[0].refunded, readings[0].used, readings[1].used), (2, 0, 1));
}

#[test]
fn refunds_of_both_sides_travel_together() {
    let store = Fallback::new(Faulty::new(), local_share());
    let (limit, first, second) = (fixed("core", 10), user(1), user(2));
    let there = one(&store, &limit, &first, take(2, 1));
    fails(&store);
    let here = one(&store, &limit, &second, take(3, 1));
    let both = [
        charge(&limit, &first, refund(2, 1, there.position)),
        charge(&limit, &second, refund(3, 1, here.position)),
    ];
    let error = at_once(store.apply(NOW, &both)).unwrap_err();
    assert_eq!(error, StoreError::Unavailable, "the store's own cannot be given back now");
    recovers(&store);
    let here = one(&store, &limit, &second, take(1, 2));
    assert_eq!(here.used, 1, "the store never heard of the other charge");
    let refunded = one(&store, &limit, &first, refund(2, 1, there.position));
    assert_eq!((refunded.refunded, refunded.used), (2, 0));
    assert_eq!(store.counts(), FallbackCounts { fallback_decisions: 1, unanswered: 1 });
}

#[test]
fn leases_are_renewed_and_ended_where_they_are_held() {
    let store = Fallback::new(Faulty::new(), local_share());
    let (limit, subject) = (in_flight("flight", 4), user(1));
    fails(&store);
    let held = one(&store, &limit, &subject, take(1, 7));
    recovers(&store);
    let later = NOW.after(Millis::new(1_000));
    let renew = |id| {
        at_once(apply_one(&store, later, &limit, &subject, Operation::Renew { id: ChargeId(id) }))
    };
    let renewed = renew(7).unwrap();
    assert_eq!((renewed.admission, renewed.full_reset_at), (Admission::Now, later.after(WINDOW)));
    assert_eq!(renew(8).unwrap().admission, Admission::Never);
    assert_eq!(one(&store, &limit, &subject, refund(1, 7, held.position)).refunded, 1);
    assert_eq!(renew(7).unwrap().admission, Admission::Never);
}

#[test]
fn without_any_answer_the_store_s_error_stands() {
    let mute = Faulty::new();
    mute.usually(Trouble::Lost(StoreError::Full));
    let store = Fallback::new(Faulty::new(), LocalShare::new(mute, NonZeroU32::MIN));
    fails(&store);
    let answer = at_once(apply_one(&store, NOW, &fixed("core", 5), &user(1), take(1, 1)));
    assert_eq!(answer.unwrap_err(), StoreError::Unavailable);
    assert_eq!(store.counts(), FallbackCounts { fallback_decisions: 0, unanswered: 1 });
}

#[test]
fn always_says_the_same_and_never_admits_the_impossible() {
    let (limit, subject) = (fixed("core", 5), user(1));
    for (word, admission, used) in [
        (FixedAnswer::Allow, Admission::Now, 0),
        (FixedAnswer::Deny, Admission::At(NOW.after(DENY_RETRY_AFTER)), 5),
    ] {
        let fallback_store = FallbackChoice::<Memory>::FixedAnswer(word);
        let store = Fallback::new(Faulty::new(), fallback_store);
        fails(&store);
        for id in 0..20 {
            let reading = one(&store, &limit, &subject, take(1, id));
            assert_eq!((reading.admission, reading.used), (admission, used));
            let back = one(&store, &limit, &subject, refund(1, id, reading.position));
            assert_eq!(back.refunded, 0);
        }
        assert_eq!(one(&store, &limit, &subject, take(6, 99)).admission, Admission::Never);
        recovers(&store);
        assert_eq!(one(&store, &limit, &subject, take(1, 100)).used, 1);
    }
}

#[test]
fn a_fallback_in_every_shard_keeps_what_spans_them_whole() {
    let shard = |number: u32| Shard {
        name: format!("shard-{number}").into(),
        weight: 1,
        store: Fallback::new(Faulty::new(), FallbackChoice::Local(local_share())),
    };
    let store = Atomic::new(Sharded::new(key(), [shard(0), shard(1)]).unwrap());
    let shards = store.partitions().shards();
    let at_home = |name: &str| {
        (0..)
            .map(user)
            .find(|subject| &*store.partitions().shard_for(subject).name == name)
            .unwrap()
    };
    let (here, there) = (at_home("shard-0"), at_home("shard-1"));
    let (wide, narrow) = (fixed("wide", 5), fixed("narrow", 1));
    fails(&shards[0].store);
    let charges = [charge(&wide, &here, take(1, 1)), charge(&narrow, &there, take(1, 1))];
    let admitted = at_once(store.apply(NOW, &charges)).unwrap();
    assert!(admitted.all_admitted());
    assert_eq!(admitted.source(), DecisionSource::Fallback(StoreError::Unavailable));
    let refused = at_once(store.apply(NOW, &charges)).unwrap();
    assert_eq!((refused[0].used, refused[1].used), (1, 1), "given back to the share");
    assert!(!refused.all_admitted());
    assert_eq!(store.unrefunded(), 0);
}

/// Regression test for a fallback that decided on limits charged by name although their rule has
/// `on_failure: allow`.
#[test]
fn on_failure_allow_holds_for_limits_charged_by_name() {
    let limit = LimitBinding { limit: Arc::new(fixed("core", 1)), per: Vec::new() };
    let limits = vec![LimitRef { limit: 0, cost: Cost::ONE }];
    let on_failure = OnFailure::Allow;
    let rule = Rule { on_failure, ..Rule::new("all", RequestMatch::default(), limits) };
    let policy = Policy::new(Vec::new(), vec![limit], vec![rule], MatchMode::FirstMatch).unwrap();
    let limiter = Limiter::new(policy, Fallback::new(Faulty::new(), local_share()));
    fails(limiter.store());
    for _ in 0..3 {
        let policy = limiter.policy();
        let named = Named { limit: "core", cost: Cost::ONE, subject: &[] };
        let plan = policy.plan_named([named], limiter.key()).unwrap();
        let request = DecisionRequest::of_charges(NOW, &policy, plan.planned, plan.on_failure);
        let decision = at_once(limiter.decide(request));
        let failure = DecisionSource::Failure(StoreError::Unavailable);
        assert_eq!((decision.source, decision.is_admitted()), (failure, true));
    }
}

#[test]
fn a_decision_reports_who_made_it_and_its_receipt_knows_where() {
    let limit = LimitBinding { limit: Arc::new(fixed("core", 2)), per: Vec::new() };
    let paths = vec![PathPattern::parse("/**").unwrap()];
    let limits = vec![LimitRef { limit: 0, cost: Cost::ONE }];
    let rule = Rule::new("all", RequestMatch { paths, ..RequestMatch::default() }, limits);
    let policy = Policy::new(Vec::new(), vec![limit], vec![rule], MatchMode::FirstMatch).unwrap();
    let limiter = Limiter::new(policy, Fallback::new(Faulty::new(), local_share()))
        .with_clock(ManualClock::new(NOW));
    let attributes = RequestAttributes {
        method: "GET",
        path: "/",
        query: None,
        host: None,
        peer: None,
        headers: &(),
    };
    let check = || at_once(limiter.check(&attributes));
    let first = check();
    assert_eq!((first.source, first.is_admitted()), (DecisionSource::Store, true));
    fails(limiter.store());
    let second = check();
    let local = DecisionSource::Fallback(StoreError::Unavailable);
    assert_eq!((second.source, second.is_admitted()), (local, true));
    let third = check();
    assert_eq!((third.source, third.is_admitted()), (local, false), "its share decides");
    at_once(limiter.refund_at(NOW, second.receipt.unwrap())).unwrap();
    assert!(check().is_admitted());
    let lost = at_once(limiter.refund_at(NOW, first.receipt.unwrap()));
    assert_eq!(lost, Err(StoreError::Unavailable));
}
