//! Which operations change a cell.

use proptest::prelude::*;
use tollgate_core::decide::{Plain, charge_plain, expires_at};
use tollgate_core::{
    Admission, Algorithm, Cell, ChargeId, Cost, Operation, StoredState, Timestamp, charge_bytes,
    decide,
};

use crate::laws::world::{
    Act, START, World, acts, any_algorithm, config, fixed_window, sliding_log, sliding_window,
    token_bucket,
};

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn refused_charges_and_peeks_change_nothing(algorithm in any_algorithm(), acts in acts()) {
        let mut world = World::new(algorithm);
        for act in &acts {
            let before = world.cell.clone();
            let reading = world.act(act);
            let Act::Take { cost, .. } = act else { continue };
            if *cost == 0 || reading.unwrap().admission != Admission::Now {
                prop_assert_eq!(&world.cell, &before);
            }
        }
    }

    /// A peek reports the same admission as a charge of the same cost, and does not change the
    /// cell.
    #[test]
    fn looks_tell_and_change_nothing(
        algorithm in any_algorithm(), acts in acts(), counts: bool, cost in 0..12_u64,
    ) {
        let mut world = World::new(algorithm);
        if counts {
            world = world.counting_refusals();
        }
        acts.iter().for_each(|act| { world.act(act); });
        let (now, cost) = (Timestamp::from_millis(world.now), Cost::new(cost).unwrap());
        let (seen, cell) = decide(world.cell.clone(), &world.limit, Operation::Peek { cost }, now);
        prop_assert_eq!(&cell, &world.cell);
        let take = Operation::Charge { cost, id: ChargeId(u128::MAX) };
        let (taken, after) = decide(cell, &world.limit, take, now);
        prop_assert!(take.is_read_only() <= (after == world.cell));
        if taken.admission == Admission::Now || !counts {
            prop_assert_eq!((seen.admission, seen.found), (taken.admission, taken.found));
        } else {
            prop_assert_ne!(seen.admission, Admission::Now);
        }
        prop_assert_eq!(seen.fits_again, seen.admission);
        prop_assert_eq!(seen.used, world.peek().used);
    }

    /// The bug: a store kept only one window of a two-bucket estimate, and of a sliding window whose
    /// blocks do not divide the window.
    #[test]
    fn no_cell_outlives_the_lifetime_of_its_limit(algorithm in any_algorithm(), acts in acts()) {
        let mut world = World::new(algorithm);
        for act in &acts {
            world.act(act);
            let Some(cell) = &world.cell else { continue };
            let now = Timestamp::from_millis(world.now);
            let latest = now.after(world.limit.cell_lifetime());
            prop_assert!(expires_at(cell, &world.limit) <= latest, "{cell:?}");
        }
    }

    #[test]
    fn a_peek_sees_what_the_last_charge_left(algorithm in any_algorithm(), acts in acts()) {
        let mut world = World::new(algorithm);
        for act in &acts {
            let Some(reading) = world.act(act) else { continue };
            prop_assert_eq!(world.peek().used, reading.used);
            prop_assert!(reading.used <= world.limit.capacity());
        }
    }

    /// Within one window, `used` decreases only by refunds, and the reset time does not change.
    #[test]
    fn a_window_grows_towards_one_reset(algorithm in fixed_window(), acts in acts()) {
        let mut world = World::new(algorithm);
        let mut window: Option<(u64, u64)> = None;
        for act in &acts {
            let Some(reading) = world.act(act) else { continue };
            let reset = reading.full_reset_at.as_millis();
            if let (Some((open, used)), Act::Take { .. }) = (window, act)
                && world.now < open
            {
                prop_assert_eq!(reset, open);
                prop_assert!(reading.used >= used);
            }
            if world.cell.is_some() && (reading.used > 0 || window.is_some_and(|w| world.now < w.0)) {
                window = Some((reset, reading.used));
            }
        }
    }

    /// A plain state leads to the same decisions as the cell that contains it.
    #[test]
    fn plain_states_are_no_other_step(
        algorithm in prop_oneof![fixed_window(), token_bucket()], acts in acts(), counts: bool,
        cost in 0..12_u64, late in -200_i64..200,
    ) {
        let mut world = World::new(algorithm);
        if counts {
            world = world.counting_refusals();
        }
        acts.iter().for_each(|act| { world.act(act); });
        let Some(cell) = world.cell.clone() else { return Ok(()) };
        world.now = world.now.saturating_add_signed(late * 100);
        let (now, cost) = (Timestamp::from_millis(world.now), Cost::new(cost).unwrap());
        let plain = Plain::try_from(cell.clone()).unwrap();
        let (reading, next) = charge_plain(plain, &world.limit, cost, now).unwrap();
        let operation = Operation::Charge { cost, id: ChargeId(1) };
        prop_assert_eq!((reading, Some(next.into())), decide(Some(cell), &world.limit, operation, now));
        if reading.admission == Admission::Now && cost != Cost::PEEK {
            // The memory store depends on this equality.
            prop_assert_eq!(reading.full_reset_at, expires_at(&next.into(), &world.limit));
        }
    }

    #[test]
    fn a_plain_state_of_another_kind_is_left_to_the_cells(
        window in fixed_window(), bucket in token_bucket(),
    ) {
        let now = Timestamp::from_millis(START);
        for (of, by) in [(window, bucket), (bucket, window)] {
            let mut world = World::new(of);
            world.take(1);
            let plain = Plain::try_from(world.cell.unwrap()).unwrap();
            let limit = World::new(by).limit;
            prop_assert_eq!(charge_plain(plain, &limit, Cost::ONE, now), None);
        }
    }

    /// From the time `expires_at` on, a cell leads to the same decisions as a missing cell.
    #[test]
    fn cells_that_are_over_say_nothing(
        algorithm in any_algorithm(), acts in acts(), late in 0..3_u64, cost in 0..12_u64
    ) {
        let mut world = World::new(algorithm);
        acts.iter().for_each(|act| { world.act(act); });
        let Some(cell) = &world.cell else { return Ok(()) };
        let expires_at = expires_at(cell, &world.limit).as_millis();
        world.now = world.now.max(expires_at) + late;
        let mut fresh = world.clone();
        fresh.cell = None;
        prop_assert_eq!(world.assess_at(world.now, cost), fresh.assess_at(world.now, cost));
        let reading = world.take(cost);
        prop_assert_eq!(reading, fresh.take(cost));
        if cost > 0 && reading.admission == Admission::Now {
            prop_assert_eq!(&world.cell, &fresh.cell);
        }
    }

    /// A cell expires when all of its units are free. A list of blocks or entries can end with an
    /// empty one after a refund, and then expires later.
    #[test]
    fn a_cell_expires_when_its_units_are_free(
        algorithm in any_algorithm(), acts in acts(), later in 0..200_u64,
    ) {
        let mut world = World::new(algorithm);
        let is_list = matches!(algorithm, Algorithm::SlidingWindow(_) | Algorithm::SlidingLog(_));
        let takes = acts.iter().filter(|act| !is_list || matches!(act, Act::Take { .. }));
        takes.for_each(|act| { world.act(act); });
        let reading = world.peek_at(world.now + later);
        if reading.used > 0 {
            let cell = world.cell.as_ref().unwrap();
            prop_assert_eq!(expires_at(cell, &world.limit), reading.full_reset_at);
        }
    }

    /// A charge is made on the bytes of a sliding window exactly if it changes only the newest
    /// block, and if a second charge of the same cost would fit.
    #[test]
    fn charges_of_the_newest_block_are_made_on_bytes(
        algorithm in sliding_window(), acts in acts(), cost in 0..6_u64, late in -300_i64..300,
    ) {
        let mut world = World::new(algorithm);
        acts.iter().for_each(|act| { world.act(act); });
        let Some(cell) = world.cell.clone() else { return Ok(()) };
        let late = if late < -200 { late * 25 } else { late };
        let now = Timestamp::from_millis(world.now.saturating_add_signed(late));
        let (cost, mut bytes) = (Cost::new(cost).unwrap(), cell.to_bytes());
        let on_bytes = charge_bytes(&mut bytes, &world.limit, cost, now);
        let operation = Operation::Charge { cost, id: ChargeId(1) };
        let (reading, next) = decide(Some(cell.clone()), &world.limit, operation, now);
        let numbers = |cell: Option<&Cell>| match cell {
            Some(Cell::SlidingWindow(state)) => state.blocks.iter().map(|one| one.number).collect(),
            _ => Vec::new(),
        };
        let is_of_newest = cost != Cost::PEEK
            && reading.found == StoredState::Present
            && reading.admission == Admission::Now
            && numbers(next.as_ref()) == numbers(Some(&cell));
        let expected = is_of_newest && reading.fits_again == Admission::Now;
        prop_assert_eq!(on_bytes, expected.then_some(reading));
        if expected {
            prop_assert_eq!(Some(bytes), next.as_ref().map(Cell::to_bytes));
        }
    }

    /// If a sliding log counts refusals, the number of its entries stays bounded, and the entries
    /// stay sorted by time.
    #[test]
    fn counted_refusals_stay_bounded(algorithm in sliding_log(), acts in acts()) {
        let Algorithm::SlidingLog(limit) = algorithm else { unreachable!() };
        let mut world = World::new(algorithm).counting_refusals();
        for act in &acts {
            world.act(act);
            if let Some(Cell::SlidingLog(state)) = &world.cell {
                prop_assert!(state.entries.len() as u64 <= limit.quota());
                prop_assert!(state.entries.is_sorted_by(|one, next| one.at < next.at));
            }
        }
    }

    #[test]
    fn nothing_panics_at_the_end_of_time(
        algorithm in any_algorithm(), acts in acts(), before in 0..200_u64
    ) {
        for mut world in [World::new(algorithm), World::new(algorithm).counting_refusals()] {
            world.now = tollgate_core::MAX_EXACT - before;
            for act in &acts {
                world.act(act);
                prop_assert!(world.peek().used <= tollgate_core::MAX_EXACT);
                if let Some(cell) = &world.cell {
                    prop_assert!(expires_at(cell, &world.limit).as_millis() <= tollgate_core::MAX_EXACT);
                }
            }
        }
    }
}
