use super::world::*;

#[test]
fn what_is_over_leaves_as_the_store_is_used_and_gives_its_memory_back() {
    let store = store_of(2_000);
    let limit = fixed_window(5, 1_000);
    let log = sliding_log(5, 1_000);
    for number in 0..900 {
        assert!(is_admitted(&store, START, &limit, &number.to_string()));
        assert!(is_admitted(&store, START, &log, &number.to_string()));
    }
    let full = store.stats();
    assert_eq!((full.entries, full.evicted), (1_800, 0));
    let moment = at(1_000 + 5_000);
    for _ in 0..10_000 {
        is_admitted(&store, moment, &limit, "somebody");
    }
    let swept = store.stats();
    assert_eq!((swept.entries, swept.swept), (1, 1_800));
    assert!(swept.bytes < 1_024, "{swept:?}");
}

#[test]
fn what_ended_a_moment_ago_stays_for_callers_whose_clock_is_behind() {
    let store = store_of(2_000);
    let limit = fixed_window(1, 1_000);
    assert!(is_admitted(&store, START, &limit, "client"));
    for _ in 0..5_000 {
        is_admitted(&store, at(1_500), &limit, "somebody");
    }
    assert!(!is_admitted(&store, at(999), &limit, "client"));
}

#[test]
fn a_store_that_grows_does_not_carry_what_is_over_along() {
    let store = store_of(100_000);
    let limit = fixed_window(5, 1_000);
    for number in 0..400_000_u64 {
        assert!(is_admitted(&store, at(number), &limit, &number.to_string()));
    }
    let stats = store.stats();
    assert!(stats.entries < 20_000, "6,000 of them are recent: {stats:?}");
    assert_eq!(stats.evicted, 0);
}
