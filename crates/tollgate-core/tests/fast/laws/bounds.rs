//! In no time span does an algorithm admit more units than it promises.

use proptest::prelude::*;
use tollgate_core::Algorithm;

use crate::laws::world::{
    Act, Admitted, World, acts, concurrency, config, fixed_window, sliding_log, sliding_window,
    token_bucket, two_bucket,
};

/// Returns the charges that were admitted, and not refunded, after all operations in `acts`.
fn admitted(algorithm: Algorithm, acts: &[Act]) -> Vec<Admitted> {
    let mut world = World::new(algorithm);
    acts.iter().for_each(|act| {
        world.act(act);
    });
    world.admitted
}

fn net<'a>(charges: impl IntoIterator<Item = &'a Admitted>) -> u64 {
    charges.into_iter().map(Admitted::net).sum()
}

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn no_fixed_window_passes_its_quota(algorithm in fixed_window(), acts in acts()) {
        let Algorithm::FixedWindow(limit) = algorithm else { unreachable!() };
        let admitted = admitted(algorithm, &acts);
        for charge in &admitted {
            let window = admitted.iter().filter(|other| other.position == charge.position);
            prop_assert!(net(window) <= limit.quota());
            let ends = charge.position.0;
            prop_assert!(charge.at < ends && ends <= charge.at + limit.window().get());
        }
    }

    #[test]
    fn no_run_of_blocks_passes_its_quota(algorithm in sliding_window(), acts in acts()) {
        let Algorithm::SlidingWindow(limit) = algorithm else { unreachable!() };
        let block = |charge: &Admitted| charge.at / limit.precision().get();
        let admitted = admitted(algorithm, &acts);
        for last in &admitted {
            let within = |other: &&Admitted| {
                block(other) <= block(last) && block(last) < block(other) + limit.blocks()
            };
            prop_assert!(net(admitted.iter().filter(within)) <= limit.quota());
        }
    }

    #[test]
    fn no_stretch_of_a_log_passes_its_quota(algorithm in sliding_log(), acts in acts()) {
        let Algorithm::SlidingLog(limit) = algorithm else { unreachable!() };
        let admitted = admitted(algorithm, &acts);
        for last in &admitted {
            let within =
                |other: &&Admitted| other.at <= last.at && last.at < other.at + limit.window().get();
            prop_assert!(net(admitted.iter().filter(within)) <= limit.quota());
        }
    }

    /// In any time span, a token bucket admits at most its burst, the tokens that arrive in the
    /// span, and the units that refunds after the first one returned. Those refunds can return too
    /// much, because a position does not reflect the refunds after its charge.
    #[test]
    fn no_stretch_passes_burst_and_rate(algorithm in token_bucket(), acts in acts()) {
        let Algorithm::TokenBucket(limit) = algorithm else { unreachable!() };
        let window = limit.window().get();
        let mut world = World::new(algorithm);
        // The refunded amounts are fractions of a token, because a refund may return only a part of
        // a token.
        let mut given = vec![];
        for act in &acts {
            if let Act::Refund { after, of } = act {
                world.now += after;
                let before = level(&world, &limit);
                let refunded = world.admitted.len().checked_sub(of + 1);
                if world.refund(*of).is_some() {
                    given.push((refunded.unwrap(), level(&world, &limit) - before));
                }
            } else {
                world.act(act);
            }
        }
        let shares: Vec<_> = world.admitted.iter().enumerate().map(|(index, charge)| {
            let back: u64 = given.iter().filter(|(of, _)| *of == index).map(|(_, s)| s).sum();
            (charge.at, charge.cost * window - back)
        }).collect();
        let beside_first: u64 = given.iter().skip_while(|(_, shares)| *shares == 0).skip(1)
            .map(|(_, shares)| shares).sum();
        for (first, (from, _)) in shares.iter().enumerate() {
            let mut sum = 0;
            for (to, taken) in &shares[first..] {
                sum += taken;
                let arrived = limit.quota() * (to - from);
                prop_assert!(sum <= limit.burst() * window + arrived + beside_first);
            }
        }
    }

    /// The estimate is never above the quota. The admitted units are at most twice the quota in any
    /// time span of one window.
    #[test]
    fn a_two_bucket_estimate_stays_below_its_bound(algorithm in two_bucket(), acts in acts()) {
        let Algorithm::TwoBucket(limit) = algorithm else { unreachable!() };
        let mut world = World::new(algorithm);
        for act in &acts {
            world.act(act);
            prop_assert!(world.peek().used <= limit.quota());
        }
        for last in &world.admitted {
            let within =
                |other: &&Admitted| other.at <= last.at && last.at < other.at + limit.window().get();
            prop_assert!(net(world.admitted.iter().filter(within)) <= 2 * limit.quota());
            let bucket = |charge: &Admitted| charge.at / limit.window().get();
            let current = world.admitted.iter().filter(|other| bucket(other) == bucket(last));
            prop_assert!(net(current) <= limit.quota());
        }
    }

    #[test]
    fn no_more_than_the_quota_is_in_flight(algorithm in concurrency(), acts in acts()) {
        let Algorithm::Concurrency(limit) = algorithm else { unreachable!() };
        let mut world = World::new(algorithm);
        for act in &acts {
            world.act(act);
            let now = world.now;
            let held = world.admitted.iter().filter(|charge| {
                charge.refunded.is_none() && now < charge.at + limit.permit_ttl().get()
            });
            prop_assert_eq!(net(held), world.peek().used);
            prop_assert!(world.peek().used <= limit.quota());
        }
    }
}

fn level(world: &World, limit: &tollgate_core::algo::TokenBucket) -> u64 {
    let full = limit.burst() * limit.window().get();
    match &world.cell {
        Some(tollgate_core::Cell::TokenBucket(state)) => {
            full.min(state.level + limit.quota() * (world.now - state.at.as_millis()))
        }
        _ => full,
    }
}
