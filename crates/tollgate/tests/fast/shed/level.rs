//! Tests of the shedding level. The level rises and falls slowly, and sheds the lowest priority
//! first.

use proptest::prelude::*;
use tollgate::model::{Millis, Timestamp};
use tollgate::shed::{
    MAX_FALL, MAX_LEVEL, MAX_RISE, OVERLOAD, PRIORITY_SPAN, Priority, RECOVERED, RECOVERY_TIME,
    ShedLevel, TICK,
};

const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// Observes one `load` for a number of ticks, with one observation per tick.
fn followed(level: &mut ShedLevel, from: Timestamp, ticks: u64, load: u32) -> Timestamp {
    let at = |tick: u64| from.after(Millis::new(tick * TICK.get()));
    (1..=ticks).for_each(|tick| level.follow(at(tick), load));
    at(ticks)
}

fn rising() -> (ShedLevel, Timestamp) {
    let mut level = ShedLevel::default();
    level.follow(START, OVERLOAD);
    (level, START)
}

/// Generates observations: a time some milliseconds after the previous observation, and the load at
/// this time.
fn observations() -> impl Strategy<Value = Vec<(u64, u32)>> {
    let load =
        prop_oneof![0..RECOVERED, RECOVERED..=OVERLOAD, OVERLOAD + 1..5_000_u32, Just(u32::MAX)];
    // Includes series with one load, without which the level hardly moves.
    let stretch = (1..400_u64, load, 1..40_usize);
    prop::collection::vec(stretch, 1..30).prop_map(|stretches| {
        let observations = stretches.into_iter();
        observations
            .flat_map(|(apart, load, times)| std::iter::repeat_n((apart, load), times))
            .collect()
    })
}

proptest! {
    #[test]
    fn it_moves_no_faster_than_it_may(observations in observations()) {
        let (mut level, mut now) = rising();
        let mut course = vec![(now, 0)];
        for (apart, load) in observations {
            now = now.after(Millis::new(apart));
            level.follow(now, load);
            course.push((now, level.get()));
        }
        prop_assert!(course.iter().all(|(_, level)| *level <= MAX_LEVEL));
        for (index, (from, before)) in course.iter().enumerate() {
            for (to, after) in &course[index..] {
                // A tick that began before `from` may end in between.
                let ticks = u32::try_from(to.since(*from).get() / TICK.get()).unwrap() + 1;
                prop_assert!(after.saturating_sub(*before) <= ticks * MAX_RISE);
                prop_assert!(before.saturating_sub(*after) <= ticks * MAX_FALL);
            }
        }
    }

    #[test]
    fn it_rises_only_under_load_and_falls_only_after_calm(observations in observations()) {
        let (mut level, mut now) = rising();
        // The time before the first observation does not count as calm.
        let mut last_uneasy = now;
        for (apart, load) in observations {
            let before = level.get();
            let was_eased = last_uneasy;
            now = now.after(Millis::new(apart));
            level.follow(now, load);
            if load >= RECOVERED {
                last_uneasy = now;
            }
            prop_assert!(level.get() <= before || load > OVERLOAD, "rose at {load}");
            if level.get() < before {
                prop_assert!(load < RECOVERED, "fell at {load}");
                prop_assert!(now.since(was_eased) > RECOVERY_TIME, "fell after {}", now.since(was_eased));
            }
        }
    }

    #[test]
    fn it_turns_at_most_once_in_a_calm(observations in observations()) {
        let (mut level, mut now) = rising();
        let mut rose_at = None;
        for (apart, load) in observations {
            let before = level.get();
            now = now.after(Millis::new(apart));
            level.follow(now, load);
            if level.get() > before {
                rose_at = Some(now);
            } else if let (true, Some(rose_at)) = (level.get() < before, rose_at) {
                prop_assert!(now.since(rose_at) >= RECOVERY_TIME, "turned after {}", now.since(rose_at));
            }
        }
    }

    #[test]
    fn a_priority_is_shed_only_where_all_below_it_are(observations in observations()) {
        let (mut level, mut now) = rising();
        for (apart, load) in observations {
            now = now.after(Millis::new(apart));
            level.follow(now, load);
            for two in Priority::ALL.windows(2) {
                let (lower, higher) = (level.share(two[0]), level.share(two[1]));
                prop_assert!(higher == 0 || lower == PRIORITY_SPAN, "{two:?}: {lower} {higher}");
            }
            let sum: u32 = Priority::ALL.into_iter().map(|it| level.share(it)).sum();
            prop_assert_eq!(sum, level.get());
        }
    }

    #[test]
    fn a_share_is_shed_to_the_request(steps in 0..80_u64, requests in 1..500_u32) {
        let (mut level, now) = rising();
        followed(&mut level, now, steps, OVERLOAD + 1);
        for priority in Priority::ALL {
            let shed = (0..requests).filter(|_| level.sheds(priority)).count();
            let expected = requests * level.share(priority) / PRIORITY_SPAN;
            prop_assert_eq!(u32::try_from(shed).unwrap(), expected, "{:?}", priority);
        }
    }

    #[test]
    fn a_clock_that_is_set_raises_it_by_one_step_at_most(
        before in 0..80_u64,
        jump in 0..100_000_000_u64,
        back in any::<bool>(),
    ) {
        let (mut level, now) = rising();
        let now = followed(&mut level, now, before, OVERLOAD + 1);
        let was = level.get();
        let set = match back {
            true => Timestamp::from_millis(now.as_millis().saturating_sub(jump)),
            false => now.after(Millis::new(jump)),
        };
        level.follow(set, u32::MAX);
        prop_assert!(level.get() <= was + MAX_RISE);
        // It continues by the current clock.
        followed(&mut level, set, 1, u32::MAX);
        prop_assert!(level.get() > was.min(MAX_LEVEL - 1));
    }
}

#[test]
fn what_lasts_is_shed_whole_in_seconds_and_back_in_ten_times_as_many() {
    let (mut level, now) = rising();
    let now = followed(&mut level, now, 20, OVERLOAD + 1);
    assert_eq!(level.share(Priority::Test), PRIORITY_SPAN, "after 2 s");
    assert_eq!(level.share(Priority::Read), 0);
    let now = followed(&mut level, now, 1_000, OVERLOAD);
    assert_eq!(level.get(), PRIORITY_SPAN, "between the bounds it stays");
    let now = followed(&mut level, now, 60, OVERLOAD + 1);
    assert_eq!(level.get(), MAX_LEVEL, "after 6 s more");
    let now = followed(&mut level, now, 12, RECOVERED - 1);
    assert_eq!(
        level.get(),
        MAX_LEVEL - MAX_FALL,
        "a second of calm since it was seen, then a step"
    );
    followed(&mut level, now, 399, RECOVERED - 1);
    assert_eq!(level.get(), 0);
}

#[test]
fn a_node_that_nobody_asked_for_long_sheds_nothing_any_more() {
    let (mut level, now) = rising();
    let now = followed(&mut level, now, 80, OVERLOAD + 1);
    level.follow(now.after(Millis::new(1)), 0);
    level.follow(now.after(Millis::from_secs(60)), 0);
    assert_eq!(level.get(), 0);
}

#[test]
fn who_is_asked_to_wait_is_not_asked_to_come_too_early() {
    let (mut level, now) = rising();
    let now = followed(&mut level, now, 30, OVERLOAD + 1);
    assert_eq!(level.get(), 1_500);
    assert_eq!(level.passes_after(Priority::Read), Millis::ZERO, "half of them pass");
    let wait = level.passes_after(Priority::Test);
    assert_eq!(wait, Millis::new(RECOVERY_TIME.get() + 52 * TICK.get()));
    let ticks = wait.get() / TICK.get() - 1;
    let before = followed(&mut level, now, ticks, 0);
    assert_eq!(level.share(Priority::Test), PRIORITY_SPAN);
    followed(&mut level, before, 1, 0);
    assert!(level.share(Priority::Test) < PRIORITY_SPAN);
}
