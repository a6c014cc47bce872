//! Peeks through the wrappers. A peek is sent to the store, its answer is not cached, and a peek is
//! not all or nothing.

use std::num::NonZeroU32;

use tollgate::model::{
    Admission, Cost, DecisionSource, Operation, Reading, Readings, Store, StoreError,
};
use tollgate::store::Memory;
use tollgate_stores::deny_cache::DenyCacheTtl;
use tollgate_stores::fallback::{FallbackStore, FixedAnswer};
use tollgate_stores::{DenyCache, Fallback, LocalShare};

use crate::atomic::two_faulty;
use crate::faulty::{Faulty, Trouble};
use crate::setup::{NOW, apply_one, at_once, charge, fixed, of_every_kind, take, user};

fn peek(cost: u64) -> Operation {
    Operation::Peek { cost: Cost::new(cost).unwrap() }
}

#[test]
fn a_look_at_what_was_refused_is_asked_all_the_same() {
    let store = DenyCache::new(Faulty::new()).with_ttl(DenyCacheTtl::UntilReset);
    let limit = fixed("core", 1);
    for id in 0..3 {
        at_once(apply_one(&store, NOW, &limit, &user(1), take(1, id))).unwrap();
    }
    let before = store.store().calls();
    for _ in 0..5 {
        let seen = at_once(apply_one(&store, NOW, &limit, &user(1), peek(1))).unwrap();
        assert_eq!((seen.admission, seen.used), (Admission::At(seen.full_reset_at), 1));
    }
    assert_eq!(store.store().calls(), before + 5);
    // The refusal of a peek is not cached. A charge that the store would refuse is also sent once.
    let seen = at_once(apply_one(&store, NOW, &limit, &user(2), peek(2))).unwrap();
    assert_eq!(seen.admission, Admission::Never);
    assert_eq!(
        at_once(apply_one(&store, NOW, &limit, &user(2), take(1, 1))).unwrap().admission,
        Admission::Now
    );
}

#[test]
fn a_share_goes_on_from_what_a_primary_reported() {
    let nodes = NonZeroU32::new(4).unwrap();
    for stale in [peek(1), take(0, 9)] {
        let share = LocalShare::new(Memory::default(), nodes);
        let (limit, subject) = (fixed("core", 100), user(1));
        let reading = |used| -> Readings {
            let full_reset_at = NOW.after(limit.window());
            std::iter::once(Reading { used, full_reset_at, ..Reading::default() }).collect()
        };
        share.observe(NOW, &[charge(&limit, &subject, take(60, 1))], &reading(60));
        // A replica that lags may answer read-only calls.
        share.observe(NOW, &[charge(&limit, &subject, stale)], &reading(0));
        let seen = at_once(apply_one(&share, NOW, &limit, &subject, peek(1))).unwrap();
        assert_eq!(seen.used, 100 - share.part_of(40), "{stale:?}");
    }
}

#[test]
fn a_stand_in_answers_looks_as_it_answers_takes() {
    for word in [FixedAnswer::Allow, FixedAnswer::Deny] {
        let store = Fallback::new(Faulty::new(), word);
        store.store().usually(Trouble::Lost(StoreError::Unavailable));
        for cost in [0, 1, 100, 101] {
            let limit = fixed("core", 100);
            let seen = at_once(apply_one(&store, NOW, &limit, &user(1), peek(cost))).unwrap();
            let taken = at_once(apply_one(&store, NOW, &limit, &user(1), take(cost, 1))).unwrap();
            assert_eq!(seen, taken, "{word:?} {cost}");
        }
    }
}

#[test]
fn looks_over_several_homes_are_one_call_to_each() {
    let (store, users) = two_faulty();
    let subjects = users.map(user);
    for limit in of_every_kind(4) {
        at_once(apply_one(&store, NOW, &limit, &subjects[0], take(4, 1))).unwrap();
        let calls =
            || store.partitions().shards().iter().map(|shard| shard.store.calls()).sum::<usize>();
        let before = calls();
        let charges = [0, 1].map(|place| charge(&limit, &subjects[place], peek(1)));
        let seen = at_once(store.apply(NOW, &charges)).unwrap();
        assert_ne!(seen[0].admission, Admission::Now, "{}", limit.name());
        assert_eq!((seen[1].admission, seen[1].used), (Admission::Now, 0), "{}", limit.name());
        assert_eq!(seen.source(), DecisionSource::Store);
        assert_eq!(calls(), before + 2, "nothing is given back");
    }
}
