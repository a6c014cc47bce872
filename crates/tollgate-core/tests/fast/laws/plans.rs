//! Charges with different quotas that share a counter, such as the quotas of plans. Each charge is
//! decided by its own quota, and frees no units that count for another quota.

use proptest::prelude::*;
use tollgate_core::{Algorithm, Cell, Cost, Limit, Timestamp, assess};

use crate::laws::world::{
    Act, Admitted, World, acts, concurrency, config, fixed_window, sliding_log, sliding_window,
    two_bucket,
};

/// The quota of each operation.
fn quotas() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(1..12_u64, 60)
}

/// Generates an algorithm whose admitted units are an exact number at any time.
fn counting() -> impl Strategy<Value = Algorithm> {
    prop_oneof![fixed_window(), sliding_window(), two_bucket(), sliding_log(), concurrency()]
}

/// Returns whether the last admitted charge fitted the quota of `world`, together with all earlier
/// charges that were admitted and not refunded and still counted.
fn fitted(world: &World) -> bool {
    let Some(last) = world.admitted.last() else { return true };
    let position = last.position.0;
    let units = |counts: &dyn Fn(&Admitted) -> bool| {
        world.admitted.iter().filter(|charge| counts(charge)).map(Admitted::net).sum::<u64>()
    };
    match *world.limit.algorithm() {
        Algorithm::FixedWindow(limit) => {
            units(&|charge| charge.position.0 == position) <= limit.quota()
        }
        Algorithm::SlidingWindow(limit) => {
            units(&|charge| charge.position.0 + limit.blocks() > position) <= limit.quota()
        }
        Algorithm::SlidingLog(limit) => {
            units(&|charge| charge.position.0 + limit.window().get() > position) <= limit.quota()
        }
        Algorithm::TwoBucket(limit) => {
            let window = limit.window().get();
            let previous = units(&|charge| charge.position.0 + 1 == position);
            let current = units(&|charge| charge.position.0 == position);
            let weight = previous * (window - world.now % window) + current * window;
            weight <= limit.quota() * window
        }
        Algorithm::Concurrency(limit) => {
            units(&|charge| charge.at + limit.permit_ttl().get() > world.now) <= limit.quota()
        }
        Algorithm::TokenBucket(_) => true,
    }
}

fn used(cell: Option<&Cell>, limit: &Limit, now: u64) -> u64 {
    assess(cell, limit, Cost::PEEK, Timestamp::from_millis(now)).used
}

fn world(algorithm: Algorithm, counts_refusals: bool) -> World {
    let world = World::new(algorithm);
    if counts_refusals { world.counting_refusals() } else { world }
}

proptest! {
    #![proptest_config(config(2_000))]

    #[test]
    fn an_admitted_charge_fits_its_own_quota(
        algorithm in counting(), acts in acts(), quotas in quotas(), counts_refusals: bool,
    ) {
        let mut world = world(algorithm, counts_refusals);
        let limit = world.limit.clone();
        for (act, quota) in acts.iter().zip(quotas) {
            world.limit = limit.with_quota(quota, None).unwrap();
            let admitted = world.admitted.len();
            world.act(act);
            prop_assert!(world.admitted.len() == admitted || fitted(&world), "{world:?}");
        }
    }

    /// A token bucket is no such counter: its tokens arrive at the rate of the quota that charges.
    #[test]
    fn a_charge_frees_no_units_of_another_quota(
        algorithm in counting(), acts in acts(), quotas in quotas(), counts_refusals: bool,
    ) {
        let mut world = world(algorithm, counts_refusals);
        let limit = world.limit.clone();
        for (act, quota) in acts.iter().zip(quotas) {
            world.limit = limit.with_quota(quota, None).unwrap();
            let before = world.cell.clone();
            world.act(act);
            if matches!(act, Act::Take { .. }) {
                let used = |cell: Option<&Cell>| used(cell, &limit, world.now);
                prop_assert!(used(world.cell.as_ref()) >= used(before.as_ref()), "{world:?}");
            }
        }
    }

    /// The log of a limit has at most as many entries as the largest of its quotas.
    #[test]
    fn a_log_grows_at_most_to_the_largest_quota(
        algorithm in sliding_log(), acts in acts(), quotas in quotas(), counts_refusals: bool,
    ) {
        let mut world = world(algorithm, counts_refusals);
        let limit = world.limit.clone();
        let mut largest = 0;
        for (act, quota) in acts.iter().zip(quotas) {
            world.limit = limit.with_quota(quota, None).unwrap();
            largest = quota.max(largest);
            world.act(act);
            if let Some(Cell::SlidingLog(state)) = &world.cell {
                prop_assert!(state.entries.len() as u64 <= largest, "{state:?}");
                let used: u64 = state.entries.iter().map(|entry| entry.used).sum();
                prop_assert!(used <= largest, "{state:?}");
            }
        }
    }
}
