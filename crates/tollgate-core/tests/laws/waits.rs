//! Whoever waits as long as told gets in, and nobody sooner.

use std::sync::Arc;

use proptest::prelude::*;
use tollgate_core::{Cost, Fit, Standing, Timestamp, Verdict};

use crate::world::{World, acts, any_algorithm, config};

proptest! {
    #![proptest_config(config(1_500))]

    #[test]
    fn the_wait_is_exact(algorithm in any_algorithm(), acts in acts(), cost in 0..14_u64) {
        let mut world = World::new(algorithm);
        acts.iter().for_each(|act| { world.act(act); });
        let reading = world.take(cost);
        let fits_at = |at| world.assess_at(at, cost).fit == Fit::Now;
        let now = Timestamp::from_millis(world.now);
        let limit = Arc::new(world.limit.clone());
        let standing = Standing::new(limit, Cost::new(cost).unwrap(), &reading);
        let verdict = Verdict { now, standings: vec![standing] };
        match reading.fit {
            Fit::Now => prop_assert!(verdict.is_admitted()),
            Fit::Never => {
                prop_assert!(cost > world.limit.capacity());
                prop_assert_eq!(verdict.retry_after(), None);
                prop_assert!(!fits_at(world.now + 1_000_000_000));
            }
            Fit::At(ready_at) => {
                let ready_at = ready_at.as_millis();
                let wait = verdict.retry_after().unwrap().get();
                prop_assert_eq!(world.now + wait, ready_at);
                prop_assert!(wait > 0 && fits_at(ready_at) && !fits_at(ready_at - 1));
                prop_assert!((ready_at..ready_at + 300).all(fits_at), "and stays so");
                let enough = verdict.standings[0].remaining >= cost.max(1);
                prop_assert!(!enough, "a refusal never shows enough");
            }
        }
    }

    /// Once an admitted charge no longer fits again, the reset told is when it does.
    #[test]
    fn the_reset_is_exact(algorithm in any_algorithm(), acts in acts(), cost in 1..6_u64) {
        let mut world = World::new(algorithm);
        acts.iter().for_each(|act| { world.act(act); });
        let reading = world.take(cost);
        let fits_at = |at| world.assess_at(at, cost).fit == Fit::Now;
        match reading.again {
            Fit::Now => prop_assert!(fits_at(world.now)),
            Fit::Never => prop_assert!(cost > world.limit.capacity()),
            Fit::At(at) => {
                prop_assert!(fits_at(at.as_millis()) && !fits_at(at.as_millis() - 1));
            }
        }
        let whole_at = reading.whole_at.as_millis();
        prop_assert!(whole_at >= world.now);
        prop_assert_eq!(world.peek_at(whole_at).used, 0);
    }
}
