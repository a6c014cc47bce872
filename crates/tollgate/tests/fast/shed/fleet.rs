//! Tests of load shedding by the fleet, over a store that answers and a store that does not.

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tollgate::limiter::AdmissionPermits;
use tollgate::model::policy::shedding::{FleetShedding, ShedMode, Shedding};
use tollgate::model::policy::{MatchMode, Priority};
use tollgate::model::{Charge, Millis, Policy, Readings, Store, StoreError, Timestamp};
use tollgate::overrides::{
    Effect, Override, OverrideChange, OverrideScope, OverrideStore, OverrideTarget, SheddingTarget,
};
use tollgate::shed::{ShedCause, ShedCount, ShedDecision};
use tollgate::store::Memory;
use tollgate::{Limiter, ManualClock, Revision};

const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const LEASE: Millis = Millis::from_secs(60);

/// Returns a policy with ten slots, two of them reserved for critical requests.
fn policy(mode: ShedMode) -> Policy {
    let pools = FleetShedding::limits(10, 2, LEASE).unwrap();
    let policy = Policy::new(Vec::new(), pools.into(), Vec::new(), MatchMode::default()).unwrap();
    let fleet = FleetShedding { mode, pool: 0, noncritical: 1 };
    policy.with_shedding(Shedding { fleet: Some(fleet), ..Shedding::default() }).unwrap()
}

struct World<S> {
    limiter: Limiter<S>,
    clock: Arc<ManualClock>,
}

impl<S: Store> World<S> {
    fn new(mode: ShedMode, store: S) -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let limiter = Limiter::new(policy(mode), store).with_clock(Arc::clone(&clock));
        Self { limiter, clock }
    }

    fn enter(&self, priority: Priority) -> Result<AdmissionPermits, ShedDecision> {
        let policy: Arc<Revision> = self.limiter.policy();
        now(self.limiter.enter(self.limiter.now(), &policy, priority))
    }

    fn take(&self, priority: Priority, count: usize) -> Vec<AdmissionPermits> {
        (0..count).map(|_| self.enter(priority).unwrap()).collect()
    }

    fn release(&self, permits: Vec<AdmissionPermits>) {
        for place in permits {
            now(self.limiter.refund(place.fleet.unwrap())).unwrap();
        }
    }
}

/// Returns the value of a future that must be ready at once.
fn now<T>(future: impl Future<Output = T>) -> T {
    let future = std::pin::pin!(future);
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it waits"),
    }
}

#[test]
fn a_share_is_kept_for_critical_requests() {
    let world = World::new(ShedMode::Enforce, Memory::default());
    let others = world.take(Priority::Write, 8);
    for priority in [Priority::Test, Priority::Read, Priority::Write] {
        let shed = world.enter(priority).unwrap_err();
        assert_eq!((shed.priority, shed.cause), (priority, ShedCause::Fleet));
    }
    let critical = world.take(Priority::Critical, 2);
    assert_eq!(world.enter(Priority::Critical).unwrap_err().cause, ShedCause::Fleet);
    // A slot that others release is free for every request that is permitted to use it.
    world.release(others);
    let critical = critical.into_iter().chain(world.take(Priority::Critical, 8)).collect();
    assert!(world.enter(Priority::Read).is_err(), "critical requests may have them all");
    world.release(critical);
    assert!(world.enter(Priority::Read).is_ok());
    assert_eq!(world.limiter.worker().counts().read().map(|count| count.shed).sum::<u64>(), 5);
}

#[test]
fn nodes_that_share_a_store_share_the_pool() {
    let store = Arc::new(Memory::default());
    let nodes = [(); 4].map(|()| World::new(ShedMode::Enforce, Arc::clone(&store)));
    let permits: Vec<_> = nodes.iter().map(|node| node.take(Priority::Read, 2)).collect();
    assert!(nodes.iter().all(|node| node.enter(Priority::Write).is_err()));
    let critical = nodes[3].take(Priority::Critical, 2);
    assert!(nodes.iter().all(|node| node.enter(Priority::Critical).is_err()));
    nodes[3].release(critical);
    for (node, permits) in nodes.iter().zip(permits) {
        node.release(permits);
    }
    assert_eq!(nodes[0].take(Priority::Test, 8).len(), 8);
}

#[test]
fn a_node_that_dies_gives_its_places_back_by_their_lease() {
    let world = World::new(ShedMode::Enforce, Memory::default());
    let lost = world.take(Priority::Read, 8);
    drop(lost);
    assert!(world.enter(Priority::Read).is_err());
    world.clock.advance(LEASE);
    assert!(world.enter(Priority::Read).is_ok());
}

#[test]
fn in_shadow_mode_all_pass_and_what_would_be_shed_is_counted() {
    let world = World::new(ShedMode::Shadow, Memory::default());
    let permits = world.take(Priority::Read, 12);
    assert_eq!(permits.iter().filter(|place| place.fleet.is_some()).count(), 8);
    let counts: Vec<_> =
        world.limiter.worker().counts().read().filter(|count| count.shadowed > 0).collect();
    assert_eq!(counts.len(), 1);
    assert_eq!((counts[0].priority, counts[0].cause), (Priority::Read, ShedCause::Fleet));
    assert_eq!((counts[0].shed, counts[0].shadowed), (0, 4));
}

#[test]
fn switched_off_the_store_is_not_asked() {
    let world = World::new(ShedMode::Off, Silent);
    assert!(world.take(Priority::Read, 50).iter().all(|place| place.fleet.is_none()));
}

#[test]
fn a_policy_that_switches_it_off_holds_at_once() {
    let world = World::new(ShedMode::Enforce, Memory::default());
    let _held = world.take(Priority::Read, 8);
    assert!(world.enter(Priority::Read).is_err());
    world.limiter.replace_policy(policy(ShedMode::Off).into());
    assert!(world.enter(Priority::Read).is_ok());
    world.limiter.replace_policy(policy(ShedMode::Enforce).into());
    assert!(world.enter(Priority::Read).is_err(), "those in flight are counted still");
}

#[test]
fn a_switch_calms_it_until_the_switch_ends() {
    let world = World::new(ShedMode::Enforce, Memory::default());
    let _held = world.take(Priority::Read, 8);
    let set_override = |effect| {
        let target =
            OverrideScope { limit: None, target: OverrideTarget::Shedding(SheddingTarget::Fleet) };
        let expires_at = START.after(Millis::from_secs(60));
        let reason = "it sheds partners".into();
        let change = OverrideChange::Set(Override { target, effect, expires_at, reason });
        now(world.limiter.overrides().change(START, change)).unwrap();
    };
    set_override(Effect::Counted);
    assert!(world.enter(Priority::Read).is_ok());
    let counted = || {
        let mut counts = world.limiter.worker().counts().read();
        let is_it =
            |count: &ShedCount| (count.priority, count.cause) == (Priority::Read, ShedCause::Fleet);
        counts.find(is_it).map(|count| (count.shadowed, count.shed)).unwrap()
    };
    assert_eq!(counted(), (1, 0));
    set_override(Effect::Unlimited);
    assert!(world.enter(Priority::Read).unwrap().fleet.is_none(), "no store is asked");
    assert_eq!(counted(), (1, 0));
    world.clock.advance(Millis::from_secs(60));
    // The permits of the first requests have expired too.
    let _held = world.take(Priority::Read, 8);
    assert!(world.enter(Priority::Read).is_err());
}

#[test]
fn a_store_without_an_answer_sheds_nobody() {
    let world = World::new(ShedMode::Enforce, Silent);
    assert_eq!(world.take(Priority::Test, 50).len(), 50);
}

/// A store that never answers.
struct Silent;

impl Store for Silent {
    async fn apply(&self, _: Timestamp, _: &[Charge<'_>]) -> Result<Readings, StoreError> {
        Err(StoreError::Unavailable)
    }
}
