//! The two commands that create buckets from their parameters.

use tollgate::model::policy::OnFailure;
use tollgate::model::{Charge, Millis, Readings, Store, StoreError, Timestamp};

use crate::resp::kit::{Open, command};

/// Returns the reply to `CL.THROTTLE` with these arguments.
fn cell(open: &Open, words: &str) -> String {
    open.printed(format!("CL.THROTTLE {words}\r\n"))
}

#[test]
fn the_answers_are_those_of_redis_cell() {
    let open = Open::new();
    assert_eq!(cell(&open, "key 2 5 60 1"), "*5|:0|:3|:2|:-1|:12|");
    assert_eq!(cell(&open, "key 2 5 60 3"), "*5|:1|:3|:2|:12|:12|");
    assert_eq!(cell(&open, "key 2 5 60 0"), "*5|:0|:3|:2|:-1|:12|");
    let usage = "-Cell error: Store error: Usage: cl.throttle <key> <max_burst> \
                 <count per period> <period> [<quantity>]|";
    for words in ["", "key", "key 2", "key 2 5", "key 2 5 60 1 1"] {
        assert_eq!(cell(&open, words), usage, "{words}");
    }
}

#[test]
fn a_bucket_runs_dry_and_fills_up() {
    let open = Open::new();
    let one = "key 2 5 60";
    assert_eq!(cell(&open, one), "*5|:0|:3|:2|:-1|:12|");
    assert_eq!(cell(&open, one), "*5|:0|:3|:1|:-1|:24|");
    assert_eq!(cell(&open, one), "*5|:0|:3|:0|:-1|:36|");
    assert_eq!(cell(&open, one), "*5|:1|:3|:0|:12|:36|");
    // A peek takes no tokens, so it is never refused.
    assert_eq!(cell(&open, "key 2 5 60 0"), "*5|:0|:3|:0|:-1|:36|");
    // A cost above the bucket's capacity is always refused.
    assert_eq!(cell(&open, "key 2 5 60 4"), "*5|:1|:3|:0|:-1|:36|");
    open.clock.advance(Millis::new(11_001));
    // Whole seconds, rounded up: a client that waits this long is admitted.
    assert_eq!(cell(&open, one), "*5|:1|:3|:0|:1|:25|");
    open.clock.advance(Millis::new(999));
    assert_eq!(cell(&open, one), "*5|:0|:3|:0|:-1|:36|");
    open.clock.advance(Millis::from_secs(36));
    assert_eq!(cell(&open, "key 2 5 60 3"), "*5|:0|:3|:0|:-1|:36|");
}

#[test]
fn other_numbers_or_keys_are_other_buckets() {
    let open = Open::new();
    assert_eq!(cell(&open, "key 0 1 60"), "*5|:0|:1|:0|:-1|:60|");
    assert_eq!(cell(&open, "key 0 1 60"), "*5|:1|:1|:0|:60|:60|");
    assert_eq!(cell(&open, "key 0 2 120"), "*5|:1|:1|:0|:60|:60|");
    assert_eq!(cell(&open, "key 0 1 61"), "*5|:0|:1|:0|:-1|:61|");
    assert_eq!(cell(&open, "key 1 1 60"), "*5|:0|:2|:1|:-1|:60|");
    assert_eq!(cell(&open, "Key 0 1 60"), "*5|:0|:1|:0|:-1|:60|");
    let long = "k".repeat(5_000);
    let charge = command(&["CL.THROTTLE", &long, "0", "1", "60"]);
    assert_eq!(open.printed(&charge), "*5|:0|:1|:0|:-1|:60|");
    assert_eq!(open.printed(&charge), "*5|:1|:1|:0|:60|:60|");
}

#[test]
fn keys_are_bytes_of_any_kind() {
    let open = Open::new();
    for key in [&b""[..], b"\0", b"\xff\xfe", b"a\r\nb", b"{a}", b"*"] {
        let mut charge = format!("*5\r\n$11\r\nCL.THROTTLE\r\n${}\r\n", key.len()).into_bytes();
        charge.extend_from_slice(key);
        charge.extend_from_slice(b"\r\n$1\r\n0\r\n$1\r\n1\r\n$2\r\n60\r\n");
        assert_eq!(open.printed(&charge), "*5|:0|:1|:0|:-1|:60|", "{}", key.escape_ascii());
        assert_eq!(open.printed(&charge), "*5|:1|:1|:0|:60|:60|", "{}", key.escape_ascii());
    }
}

#[test]
fn a_bucket_without_room_refuses_all_but_a_peek() {
    let open = Open::new();
    assert_eq!(cell(&open, "key -1 5 60"), "*5|:1|:0|:0|:-1|:0|");
    assert_eq!(cell(&open, "key -1 5 60 0"), "*5|:0|:0|:0|:-1|:0|");
    assert_eq!(cell(&open, "key -5 5 60 0"), "*5|:1|:-4|:0|:-1|:0|");
}

#[test]
fn throttle_answers_in_the_order_of_throttlecrab() {
    let open = Open::new();
    let throttle = |words: &str| open.printed(format!("THROTTLE {words}\r\n"));
    assert_eq!(throttle("key 2 5 60"), "*5|:1|:2|:1|:12|:0|");
    assert_eq!(throttle("key 2 5 60 1"), "*5|:1|:2|:0|:24|:0|");
    assert_eq!(throttle("key 2 5 60"), "*5|:0|:2|:0|:24|:12|");
    assert_eq!(throttle("key 2 5 60 0"), "*5|:1|:2|:0|:24|:0|");
    assert_eq!(throttle("key 2 5 60 3"), "*5|:0|:2|:0|:24|:-1|");
    // Both commands use the same bucket for a capacity of two.
    assert_eq!(cell(&open, "key 1 5 60"), "*5|:1|:2|:0|:12|:24|");
}

/// A store that cannot be reached.
struct Unreachable;

impl Store for Unreachable {
    async fn apply(&self, _: Timestamp, _: &[Charge<'_>]) -> Result<Readings, StoreError> {
        Err(StoreError::Unavailable)
    }
}

#[test]
fn without_the_store_the_word_for_that_decides() {
    let denied = Open::failing(Unreachable, OnFailure::Deny);
    assert_eq!(cell(&denied, "key 2 5 60"), "-ERR the store cannot be reached|");
    for on_failure in [OnFailure::Allow, OnFailure::Local] {
        let open = Open::failing(Unreachable, on_failure);
        // The state of the bucket is unknown, so the reply contains no remaining tokens.
        assert_eq!(cell(&open, "key 2 5 60"), "*5|:0|:3|:0|:-1|:0|");
        assert_eq!(open.printed("THROTTLE key 3 5 60\r\n"), "*5|:1|:3|:0|:0|:0|");
        // A command that is not a charge is an error, not a failure of the store.
        assert!(cell(&open, "key 2 5 x").starts_with("-Cell error"));
    }
}
