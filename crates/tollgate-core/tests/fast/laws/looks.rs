//! The status that is computed from a peek, compared with the status of the charge.

use std::sync::Arc;

use proptest::prelude::*;
use tollgate_core::reading::StoredState;
use tollgate_core::{
    Admission, Algorithm, ChargeId, Cost, LimitStatus, Operation, Timestamp, decide,
};

use crate::laws::world::{World, acts, any_algorithm, config};

proptest! {
    #![proptest_config(config(1_500))]

    /// The status that is computed from a peek has the numbers of the charge. Its reset time is
    /// never earlier than that of the charge.
    #[test]
    fn a_look_tells_what_its_charge_will(
        algorithm in any_algorithm(), acts in acts(), cost in 1..6_u64,
    ) {
        let mut world = World::new(algorithm);
        acts.iter().for_each(|act| { world.act(act); });
        let (now, cost) = (Timestamp::from_millis(world.now), Cost::new(cost).unwrap());
        let (seen, cell) = decide(world.cell.clone(), &world.limit, Operation::Peek { cost }, now);
        let limit = Arc::new(world.limit.clone());
        if seen.admission != Admission::Now {
            return Ok(());
        }
        let status = LimitStatus::new(Arc::clone(&limit), cost, &seen).charged(now);

        let take = Operation::Charge { cost, id: ChargeId(u128::MAX) };
        let (taken, _) = decide(cell, &limit, take, now);
        let real = LimitStatus::new(Arc::clone(&limit), cost, &taken);
        prop_assert!(status.resets_at >= real.resets_at, "{status:?} {real:?}");
        if !matches!(algorithm, Algorithm::TokenBucket(_) | Algorithm::TwoBucket(_)) {
            prop_assert_eq!((status.used, status.remaining), (real.used, real.remaining));
        }
        // Fractions of a unit are rounded up, so the used units can differ by one.
        prop_assert!(status.used.abs_diff(real.used) <= 1);
        let was_given_back = seen.used == 0 && seen.found == StoredState::Present;
        if matches!(algorithm, Algorithm::FixedWindow(_)) && !was_given_back {
            prop_assert_eq!(status, real);
        }
    }
}
