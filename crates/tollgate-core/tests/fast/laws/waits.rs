//! A client that waits for the reported time is admitted. A client that waits for less is refused.

use std::sync::Arc;

use proptest::prelude::*;
use tollgate_core::{Admission, Cost, Evaluation, LimitStatus, Timestamp};

use crate::laws::world::{World, acts, any_algorithm, config};

proptest! {
    #![proptest_config(config(1_500))]

    #[test]
    fn the_wait_is_exact(algorithm in any_algorithm(), acts in acts(), cost in 0..14_u64) {
        let mut world = World::new(algorithm);
        acts.iter().for_each(|act| { world.act(act); });
        let reading = world.take(cost);
        let fits_at = |at| world.assess_at(at, cost).admission == Admission::Now;
        let now = Timestamp::from_millis(world.now);
        let limit = Arc::new(world.limit.clone());
        let status = LimitStatus::new(limit, Cost::new(cost).unwrap(), &reading);
        let evaluation = Evaluation { now, statuses: vec![status] };
        match reading.admission {
            Admission::Now => prop_assert!(evaluation.is_admitted()),
            Admission::Never => {
                prop_assert!(cost > world.limit.capacity());
                prop_assert_eq!(evaluation.retry_after(), None);
                prop_assert!(!fits_at(world.now + 1_000_000_000));
            }
            Admission::At(ready_at) => {
                let ready_at = ready_at.as_millis();
                let wait = evaluation.retry_after().unwrap().get();
                prop_assert_eq!(world.now + wait, ready_at);
                prop_assert!(wait > 0 && fits_at(ready_at) && !fits_at(ready_at - 1));
                prop_assert!((ready_at..ready_at + 300).all(fits_at), "and stays so");
                let enough = evaluation.statuses[0].remaining >= cost.max(1);
                prop_assert!(!enough, "a refusal never shows enough");
            }
        }
    }

    /// If a charge is admitted and does not fit again, the reported reset is the first time at
    /// which it fits again.
    #[test]
    fn the_reset_is_exact(algorithm in any_algorithm(), acts in acts(), cost in 1..6_u64) {
        let mut world = World::new(algorithm);
        acts.iter().for_each(|act| { world.act(act); });
        let reading = world.take(cost);
        let fits_at = |at| world.assess_at(at, cost).admission == Admission::Now;
        match reading.fits_again {
            Admission::Now => prop_assert!(fits_at(world.now)),
            Admission::Never => prop_assert!(cost > world.limit.capacity()),
            Admission::At(at) => {
                prop_assert!(fits_at(at.as_millis()) && !fits_at(at.as_millis() - 1));
            }
        }
        let full_reset_at = reading.full_reset_at.as_millis();
        prop_assert!(full_reset_at >= world.now);
        prop_assert_eq!(world.peek_at(full_reset_at).used, 0);
    }
}
