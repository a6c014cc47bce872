//! A refund returns at most the charged units, and returns them only to the window, block or bucket
//! of the charge.

use proptest::prelude::*;
use tollgate_core::Algorithm;
use tollgate_core::decide::refundable_until;

use crate::laws::world::{
    Act, World, acts, any_algorithm, config, fixed_window, sliding_log, sliding_window, two_bucket,
};

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn refunds_give_what_was_charged_at_most(algorithm in any_algorithm(), acts in acts()) {
        let mut world = World::new(algorithm);
        for act in &acts {
            let Act::Refund { after, of } = act else {
                world.act(act);
                continue;
            };
            world.now += after;
            let before = (world.peek().used, world.cell.clone());
            let Some(index) = world.admitted.len().checked_sub(of + 1) else { continue };
            let charge = world.admitted[index].clone();
            let Some(reading) = world.refund(*of) else { continue };
            prop_assert!(reading.refunded <= charge.cost);
            let less = before.0.checked_sub(reading.used);
            prop_assert!(less.is_some_and(|less| less <= reading.refunded));
            if reading.refunded == 0 {
                prop_assert_eq!(&world.cell, &before.1, "nothing given back, nothing changed");
            }
            let until = refundable_until(&world.limit, charge.position).as_millis();
            if until > 0 && world.now >= until {
                prop_assert_eq!(reading.refunded, 0, "its window is over");
            }
        }
    }

    /// A refund directly after a charge cancels the charge. A token bucket may need one more
    /// millisecond, because the refund is rounded down to whole milliseconds.
    #[test]
    fn a_refund_at_once_undoes_the_charge(
        algorithm in any_algorithm(), acts in acts(), cost in 1..6_u64
    ) {
        let mut world = World::new(algorithm);
        acts.iter().for_each(|act| { world.act(act); });
        let (charged, mut without) = (world.admitted.len(), world.clone());
        world.take(cost);
        if world.admitted.len() == charged {
            return Ok(());
        }
        let refunded = world.refund(0).unwrap().refunded;
        let needs_a_millisecond = matches!(algorithm, Algorithm::TokenBucket(_));
        if needs_a_millisecond {
            (world.now, without.now) = (world.now + 1, without.now + 1);
        } else {
            prop_assert_eq!(refunded, cost);
        }
        prop_assert_eq!(world.peek().used, without.peek().used);
    }

    /// Until its window is over, a refund returns the whole charge.
    #[test]
    fn a_charge_is_refunded_until_its_window_is_over(
        algorithm in prop_oneof![fixed_window(), sliding_window(), two_bucket(), sliding_log()],
        acts in acts(), cost in 1..6_u64,
    ) {
        let mut world = World::new(algorithm);
        acts.iter().for_each(|act| { world.act(act); });
        let charged = world.admitted.len();
        world.take(cost);
        let Some(charge) = world.admitted.get(charged) else { return Ok(()) };
        let until = refundable_until(&world.limit, charge.position).as_millis();
        for (now, refunded) in [(until - 1, cost), (until, 0)] {
            let mut world = world.clone();
            world.now = now;
            prop_assert_eq!(world.refund(0).unwrap().refunded, refunded);
        }
    }
}
