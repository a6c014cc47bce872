//! Refusals without a store call. A refusal is exact if its mode guarantees that, and late by at
//! most the stated time in every other mode.

use std::num::NonZeroU32;
use std::sync::Arc;

use proptest::prelude::*;
use tokio::sync::Semaphore;
use tollgate::model::algo::TokenBucket;
use tollgate::model::policy::{
    Dimension, LimitBinding, LimitRef, MatchMode, Named, RequestMatch, Rule, SubjectSource,
};
use tollgate::model::{
    Admission, Algorithm, Cost, DecisionSource, Limit, Millis, Operation, Policy, Refusals,
    RequestAttributes, Store, StoreError, Timestamp,
};
use tollgate::store::Memory;
use tollgate::{Limiter, ManualClock};
use tollgate_stores::deny_cache::{DenyCache, DenyCacheTtl, MAX_DENY_TTL};
use tollgate_stores::{Fallback, LocalShare};

use crate::faulty::{Faulty, Trouble};
use crate::leased_limits::override_core;
use crate::setup::{
    NOW, WINDOW, apply_one, at_once, calls, charge, comparable, fixed, in_flight, of_every_kind,
    refund, replay, take, until, user,
};
use crate::user::User;

proptest! {
    #[test]
    fn until_the_reset_every_number_is_the_store_s(trace in calls(7, 3), entries in 0..64_usize) {
        let limits = of_every_kind(4);
        let remembering = DenyCache::new(Memory::default())
            .with_ttl(DenyCacheTtl::UntilReset)
            .with_status_max_age(Millis::ZERO)
            .with_entries(entries);
        let twin = Memory::default();
        replay(&trace, &limits, |now, charges| {
            let answer = at_once(remembering.apply(now, charges)).unwrap();
            let exact = twin.apply_now(now, charges).unwrap();
            prop_assert_eq!(comparable(&answer), comparable(&exact));
            Ok(())
        })?;
    }

    #[test]
    fn without_refunds_the_word_is_the_store_s_however_long(
        trace in calls(7, 3),
        hold in 0..100_000_u64,
    ) {
        let limits = of_every_kind(4);
        let remembering =
            DenyCache::new(Memory::default()).with_ttl(DenyCacheTtl::AtMost(Millis::new(hold)));
        let twin = Memory::default();
        replay(&trace, &limits, |now, charges| {
            let answer = at_once(remembering.apply(now, charges)).unwrap();
            let exact = twin.apply_now(now, charges).unwrap();
            prop_assert_eq!(answer.all_admitted(), exact.all_admitted());
            for (reading, charge) in answer.iter().zip(charges) {
                let left = charge.limit.capacity().saturating_sub(reading.used);
                let cost = charge.operation;
                prop_assert!(reading.admission == Admission::Now || cost == take(0, 0) || left < 4);
            }
            Ok(())
        })?;
    }
}

#[test]
fn a_client_at_its_limit_costs_the_store_one_call_a_second() {
    let store = DenyCache::new(Faulty::new()).with_ttl(DenyCacheTtl::UntilReset);
    let (limit, subject) = (fixed("core", 3), user(1));
    let ends = NOW.after(WINDOW);
    for millis in 0..1_000 {
        let now = NOW.after(Millis::new(millis));
        let charges = [charge(&limit, &subject, take(1, millis.into()))];
        let readings = at_once(store.apply(now, &charges)).unwrap();
        let source = if millis < 4 { DecisionSource::Store } else { DecisionSource::DenyCache };
        assert_eq!(readings.source(), source);
        if millis >= 3 {
            assert_eq!((readings[0].admission, readings[0].used), (Admission::At(ends), 3));
        }
    }
    assert_eq!((store.store().calls(), store.hits()), (4, 996));
    let heard_at = NOW.after(Millis::new(3));
    let again = heard_at.after(MAX_DENY_TTL);
    for (now, calls) in [(Timestamp::from_millis(again.as_millis() - 1), 4), (again, 5), (again, 5)]
    {
        at_once(apply_one(&store, now, &limit, &subject, take(1, 0))).unwrap();
        assert_eq!(store.store().calls(), calls, "at {now:?}");
    }
    let last = Timestamp::from_millis(ends.as_millis() - 1);
    assert_ne!(
        at_once(apply_one(&store, last, &limit, &subject, take(1, 0))).unwrap().admission,
        Admission::Now
    );
    assert_eq!(
        at_once(apply_one(&store, ends, &limit, &subject, take(1, 0))).unwrap().admission,
        Admission::Now
    );
    assert_eq!(store.store().calls(), 7, "each more than a second after the one before");
}

#[test]
fn a_refund_elsewhere_is_noticed_in_time() {
    let shared = Arc::new(Memory::default());
    let here = DenyCache::new(Arc::clone(&shared));
    let (limit, subject) = (fixed("core", 1), user(1));
    let taken = at_once(apply_one(&here, NOW, &limit, &subject, take(1, 1))).unwrap();
    assert_ne!(
        at_once(apply_one(&here, NOW, &limit, &subject, take(1, 2))).unwrap().admission,
        Admission::Now
    );
    at_once(apply_one(&shared, NOW, &limit, &subject, refund(1, 1, taken.position))).unwrap();
    let late = here.max_stale_refusal(&limit);
    let before = NOW.after(Millis::new(late.get() - 1));
    assert_ne!(
        at_once(apply_one(&here, before, &limit, &subject, take(1, 3))).unwrap().admission,
        Admission::Now
    );
    let in_time = NOW.after(late);
    assert_eq!(
        at_once(apply_one(&here, in_time, &limit, &subject, take(1, 4))).unwrap().admission,
        Admission::Now
    );
}

#[test]
fn what_was_forgotten_elsewhere_is_noticed_within_a_second() {
    let shared = Arc::new(Memory::default());
    let here = DenyCache::new(Arc::clone(&shared)).with_ttl(DenyCacheTtl::UntilReset);
    let (limit, subject) = (fixed("core", 1), user(1));
    for id in 1..=2 {
        at_once(apply_one(&here, NOW, &limit, &subject, take(1, id))).unwrap();
    }
    at_once(apply_one(&shared, NOW, &limit, &subject, Operation::Reset)).unwrap();
    assert_ne!(
        at_once(apply_one(&here, NOW, &limit, &subject, take(1, 3))).unwrap().admission,
        Admission::Now
    );
    let in_time = NOW.after(MAX_DENY_TTL);
    assert_eq!(
        at_once(apply_one(&here, in_time, &limit, &subject, take(1, 4))).unwrap().admission,
        Admission::Now
    );
    at_once(apply_one(&here, in_time, &limit, &subject, take(1, 5))).unwrap();
    at_once(apply_one(&here, in_time, &limit, &subject, Operation::Reset)).unwrap();
    let at_once_here = at_once(apply_one(&here, in_time, &limit, &subject, take(1, 6))).unwrap();
    assert_eq!(at_once_here.admission, Admission::Now, "what passes here is noticed at once");
}

#[test]
fn a_refusal_is_repeated_only_for_its_quota() {
    let slow = TokenBucket::new(1, WINDOW, 2).unwrap();
    let slow = Limit::new("bucket", Algorithm::TokenBucket(slow)).unwrap();
    // The bucket fills more quickly, or the window has more units.
    for limit in [slow, fixed("core", 2)] {
        let (store, subject) = (DenyCache::new(Memory::default()), user(1));
        let other = limit.with_quota(3, None).unwrap();
        for id in 0..3 {
            at_once(apply_one(&store, NOW, &limit, &subject, take(1, id))).unwrap();
        }
        let source = |limit| {
            let charges = [charge(limit, &subject, take(1, 9))];
            at_once(store.apply(NOW, &charges)).unwrap().source()
        };
        assert_eq!(source(&limit), DecisionSource::DenyCache, "{}", limit.name());
        assert_eq!(source(&other), DecisionSource::Store, "{}", limit.name());
    }
}

/// The bug: a reset removed only the cached refusals under the quota of the reset, which is that of
/// the policy. A client with an override stayed refused at this node.
#[tokio::test]
async fn a_reset_kept_the_refusals_under_the_quota_of_an_override() {
    let source = SubjectSource::Header { header: "x-user".into() };
    let by_user = Dimension { name: "user".into(), source };
    let limits = vec![LimitBinding { limit: Arc::new(fixed("core", 5)), per: vec![0] }];
    let uses = vec![LimitRef { limit: 0, cost: Cost::ONE }];
    let rules = vec![Rule::new("all", RequestMatch::default(), uses)];
    let policy = Policy::new(vec![by_user], limits, rules, MatchMode::FirstMatch).unwrap();
    let store = DenyCache::new(Memory::default()).with_ttl(DenyCacheTtl::UntilReset);
    let limiter = Limiter::new(policy, store).with_clock(ManualClock::new(NOW));
    override_core(&limiter, NOW, "ann", 2).await;
    let request = RequestAttributes {
        method: "GET",
        path: "/",
        query: None,
        host: None,
        peer: None,
        headers: &User("ann"),
    };
    for admitted in [true, true, false, false] {
        assert_eq!(limiter.check(&request).await.is_admitted(), admitted);
    }
    assert_eq!(limiter.store().hits(), 1);
    let ann = [("user", Some("ann"))];
    let named = Named { limit: "core", cost: Cost::PEEK, subject: &ann };
    let plan = limiter.policy().plan_named([named], limiter.key()).unwrap();
    limiter.forget_at(NOW, &plan.planned).await.unwrap();
    assert!(limiter.check(&request).await.is_admitted());
}

/// The store refuses a charge, and then executes a reset. The answer to the reset arrives first.
#[tokio::test]
async fn a_refusal_that_arrives_after_a_reset_is_not_cached() {
    let here = DenyCache::new(Faulty::new()).with_ttl(DenyCacheTtl::UntilReset);
    let (limit, subject) = (fixed("core", 1), user(1));
    apply_one(&here, NOW, &limit, &subject, take(1, 1)).await.unwrap();
    let gate = Arc::new(Semaphore::new(0));
    here.store().next([Trouble::Late(Arc::clone(&gate))]);
    let reset = async {
        until(|| here.store().calls() == 2).await;
        apply_one(&here, NOW, &limit, &subject, Operation::Reset).await.unwrap();
        gate.add_permits(1);
    };
    let (refused, ()) = tokio::join!(apply_one(&here, NOW, &limit, &subject, take(1, 2)), reset);
    assert_ne!(refused.unwrap().admission, Admission::Now);
    let taken = apply_one(&here, NOW, &limit, &subject, take(1, 3)).await.unwrap();
    assert_eq!(taken.admission, Admission::Now);
}

#[test]
fn a_refund_that_passes_here_is_noticed_at_once() {
    for deny_cache_ttl in [DenyCacheTtl::UntilReset, DenyCacheTtl::AtMost(WINDOW)] {
        let store = DenyCache::new(Memory::default()).with_ttl(deny_cache_ttl);
        let (limit, subject) = (fixed("core", 1), user(1));
        let call =
            |operation| at_once(apply_one(&store, NOW, &limit, &subject, operation)).unwrap();
        let taken = call(take(1, 1));
        assert_ne!(call(take(1, 2)).admission, Admission::Now);
        assert_ne!(call(take(1, 3)).admission, Admission::Now);
        assert_eq!(store.hits(), 1);
        assert_eq!(call(refund(1, 1, taken.position)).refunded, 1);
        assert_eq!(call(take(1, 4)).admission, Admission::Now);
    }
}

#[test]
fn one_line_turns_it_off_for_all_or_for_one_limit() {
    let refuses_twice = |store: &DenyCache<Faulty>, name| {
        let (limit, subject) = (fixed(name, 1), user(1));
        for id in 0..4 {
            at_once(apply_one(store, NOW, &limit, &subject, take(1, id))).unwrap();
        }
        store.hits()
    };
    let off = DenyCache::new(Faulty::new()).with_ttl(DenyCacheTtl::Off);
    assert_eq!(refuses_twice(&off, "core"), 0);
    let except = DenyCache::new(Faulty::new()).with_ttl_for("core", DenyCacheTtl::Off);
    assert_eq!(refuses_twice(&except, "core"), 0);
    assert_eq!(refuses_twice(&except, "search"), 2);
    assert_eq!(except.max_stale_refusal(&fixed("core", 1)), Millis::ZERO);
}

#[test]
fn what_might_be_otherwise_is_asked() {
    let store = DenyCache::new(Faulty::new()).with_ttl(DenyCacheTtl::UntilReset);
    let subject = user(1);
    let (core, flight) = (fixed("core", 2), in_flight("flight", 1));
    let hammered = fixed("hammered", 1).with_refusals(Refusals::Counted).unwrap();
    let other_quota = fixed("core", 3);
    for limit in [&core, &flight, &hammered] {
        for id in 0..3 {
            at_once(apply_one(&store, NOW, limit, &subject, take(1, id))).unwrap();
        }
    }
    let decided = |now, limit, operation| {
        let before = store.store().calls();
        let reading = at_once(apply_one(&store, now, limit, &subject, operation)).unwrap();
        assert_eq!(store.store().calls() - before, 1, "{limit:?}");
        reading
    };
    assert_eq!(decided(NOW, &core, take(0, 9)).used, 2, "a peek");
    assert_eq!(
        decided(NOW, &core, take(3, 9)).admission,
        Admission::Never,
        "more than it can ever hold"
    );
    assert_eq!(
        decided(NOW, &other_quota, take(1, 9)).admission,
        Admission::Now,
        "a limit that was changed"
    );
    assert_ne!(decided(NOW, &flight, take(1, 9)).admission, Admission::Now, "what ends any moment");
    assert_eq!(decided(NOW, &hammered, take(1, 9)).used, 4, "what counts refusals");
    decided(Timestamp::from_millis(NOW.as_millis() - 1), &core, take(1, 9));
    let other = user(2);
    let both = [charge(&core, &subject, take(1, 9)), charge(&flight, &other, take(1, 9))];
    let before = store.store().calls();
    assert!(!at_once(store.apply(NOW, &both)).unwrap().all_admitted());
    assert_eq!(store.store().calls() - before, 1, "nothing is known of the other limit");
}

#[test]
fn beside_a_refusal_other_limits_are_shown_for_a_stated_time() {
    let beside = Millis::new(250);
    let store = DenyCache::new(Faulty::new())
        .with_ttl(DenyCacheTtl::UntilReset)
        .with_status_max_age(beside);
    let (full, wide, subject) = (fixed("full", 1), fixed("wide", 9), user(1));
    let charges = [charge(&full, &subject, take(1, 1)), charge(&wide, &subject, take(1, 1))];
    let used_of_wide =
        |millis| at_once(store.apply(NOW.after(Millis::new(millis)), &charges)).unwrap()[1].used;
    assert_eq!((used_of_wide(0), used_of_wide(1)), (1, 1));
    at_once(apply_one(store.store(), NOW, &wide, &subject, take(5, 2))).unwrap();
    assert_eq!(used_of_wide(beside.get()), 1, "as it was when it was last asked");
    assert_eq!(used_of_wide(beside.get() + 1), 6);
}

#[test]
fn what_a_stand_in_refused_is_not_remembered() {
    let share = LocalShare::new(Memory::default(), NonZeroU32::MIN);
    let store =
        DenyCache::new(Fallback::new(Faulty::new(), share)).with_ttl(DenyCacheTtl::UntilReset);
    let (limit, subject) = (fixed("core", 1), user(1));
    store.store().store().next([(); 2].map(|()| Trouble::Lost(StoreError::TimedOut)));
    let admission =
        |id| at_once(apply_one(&store, NOW, &limit, &subject, take(1, id))).unwrap().admission;
    assert_eq!(admission(1), Admission::Now);
    assert_ne!(admission(2), Admission::Now);
    assert_eq!(admission(3), Admission::Now, "the store never heard of the others");
}

#[test]
fn what_is_used_up_refuses_every_cost_and_what_is_not_only_the_same() {
    let store = DenyCache::new(Faulty::new()).with_ttl(DenyCacheTtl::UntilReset);
    let (limit, subject) = (fixed("core", 4), user(1));
    let call = |cost, id| {
        let before = store.hits();
        let reading = at_once(apply_one(&store, NOW, &limit, &subject, take(cost, id))).unwrap();
        (reading.admission == Admission::Now, reading.used, store.hits() - before)
    };
    assert_eq!(call(3, 1), (true, 3, 0));
    assert_eq!(call(3, 2), (false, 3, 0));
    assert_eq!(call(3, 3), (false, 3, 0), "a smaller one may come between");
    assert_eq!(call(1, 4), (true, 4, 0));
    assert_eq!(call(3, 5), (false, 4, 0));
    for cost in 1..=4 {
        assert_eq!(call(cost, 6), (false, 4, 1));
    }
}

#[test]
fn what_was_to_be_remembered_for_longer_is_asked_again_once_that_is_set_again() {
    let store = DenyCache::new(Faulty::new()).with_ttl(DenyCacheTtl::UntilReset);
    let (limit, subject) = (fixed("core", 3), user(1));
    let decided = |later: u64, cost| {
        let charges = [charge(&limit, &subject, take(cost, later.into()))];
        at_once(store.apply(NOW.after(Millis::new(later)), &charges)).unwrap().source()
    };
    decided(0, 3);
    assert_eq!([decided(0, 1), decided(20, 1)], [DecisionSource::Store, DecisionSource::DenyCache]);
    store.set_ttl(DenyCacheTtl::AtMost(Millis::new(5)));
    let expected = [DecisionSource::Store, DecisionSource::DenyCache, DecisionSource::Store];
    assert_eq!([decided(20, 1), decided(24, 1), decided(25, 1)], expected);
    store.set_ttl(DenyCacheTtl::Off);
    assert_eq!(decided(25, 1), DecisionSource::Store);
}
