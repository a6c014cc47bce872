//! The policy's own limits, charged by name.

use tollgate::model::Millis;

use crate::resp::kit::{Open, START};

fn limit_status(limit: &str, quota: u64, used: u64, resets_in: u64) -> String {
    let resets_at = START.as_millis() + resets_in;
    let (length, left) = (limit.len(), quota - used);
    let admits = u64::from(used < quota);
    format!(
        "*12|$5|limit|${length}|{limit}|$5|quota|:{quota}|$4|used|:{used}|$9|remaining|:{left}|\
         $12|resets_at_ms|:{resets_at}|$6|admits|:{admits}|"
    )
}

/// Returns the receipt in a reply.
fn receipt(printed: &str) -> &str {
    let mut parts = printed.split('|').skip_while(|part| *part != "receipt");
    parts.nth(2).unwrap()
}

#[test]
fn limits_are_charged_by_name() {
    let open = Open::new();
    let printed = open.printed("TG.CHARGE core 2 token abc\r\n");
    let begin = "*10|$8|admitted|:1|$14|retry_after_ms|$-1|$6|source|$5|store|$7|receipt|$";
    assert!(printed.starts_with(begin), "{printed}");
    let end = format!("|$8|statuses|*1|{}", limit_status("core", 3, 2, 60_000));
    assert!(printed.ends_with(&end), "{printed}");

    open.clock.advance(Millis::new(1_500));
    let refused = open.printed("tollgate.check core 2 token \"Bearer abc\"\r\n");
    let begin = "*10|$8|admitted|:0|$14|retry_after_ms|:58500|$6|source|$5|store|$7|receipt|$-1|";
    assert!(refused.starts_with(begin), "{refused}");
}

#[test]
fn several_limits_are_charged_together_or_not_at_all() {
    let open = Open::new();
    let charge = "TG.CHARGE core,all 1 token abc\r\n";
    for _ in 0..3 {
        assert!(open.printed(charge).starts_with("*10|$8|admitted|:1|"));
    }
    assert!(open.printed(charge).starts_with("*10|$8|admitted|:0|"));
    let all = open.printed("TG.STANDING\r\n");
    assert_eq!(all, format!("*1|{}", limit_status("all", 5, 3, 60_000)));
}

#[test]
fn a_peek_charges_nothing_and_statuses_are_of_one_subject() {
    let open = Open::new();
    let peek = open.printed("TG.PEEK core 4 token abc\r\n");
    assert!(peek.starts_with("*10|$8|admitted|:0|$14|retry_after_ms|$-1|"), "{peek}");
    let peek = open.printed("TG.PEEK core,area 1 token abc address 192.0.2.7\r\n");
    assert!(peek.starts_with("*10|$8|admitted|:1|"), "{peek}");
    open.printed("TG.CHARGE area 1 address 192.0.2.9\r\n");
    let printed = open.printed("TG.STANDING address 192.0.2.200\r\n");
    let expected = [limit_status("all", 5, 0, 60_000), limit_status("area", 2, 1, 60_000)];
    assert_eq!(printed, format!("*2|{}", expected.concat()));
}

#[test]
fn a_receipt_gives_back_once() {
    let open = Open::new();
    let charged = open.printed("TG.CHARGE core 2 token abc\r\n");
    let refund = format!("TG.REFUND {}\r\n", receipt(&charged));
    let limits = |units, left| {
        format!("$6|limits|*1|*6|$5|limit|$4|core|$8|refunded|:{units}|$9|remaining|:{left}|")
    };
    assert_eq!(open.printed(&refund), format!("*4|$7|outcome|$8|refunded|{}", limits(2, 3)));
    assert_eq!(open.printed(&refund), format!("*4|$7|outcome|$9|unchanged|{}", limits(0, 3)));
    open.clock.advance(Millis::from_secs(61));
    assert_eq!(open.printed(&refund), "*4|$7|outcome|$7|expired|$6|limits|*0|");
    let forged = open.printed("TG.REFUND AAAA\r\n");
    assert!(forged.starts_with("-ERR "), "{forged}");
}

#[test]
fn a_receipt_ends_what_is_in_flight_and_keeps_what_was_counted() {
    let open = Open::new();
    let charge = "TG.CHARGE core,running 1 token abc\r\n";
    let charged = open.printed(charge);
    assert!(open.printed(charge).starts_with("*10|$8|admitted|:0|"));
    let released = open.printed(format!("TG.RELEASE {}\r\n", receipt(&charged)));
    assert!(released.starts_with("*4|$7|outcome|$8|refunded|$6|limits|*1|"), "{released}");
    assert!(open.printed(charge).starts_with("*10|$8|admitted|:1|"));
    assert!(open.printed("TG.PEEK core 1 token abc\r\n").contains("|$9|remaining|:1|"));
}

#[test]
fn replies_are_maps_for_who_knows_them() {
    let open = Open::new();
    let printed = open.printed("HELLO 3\r\nTG.CHARGE all 6\r\n");
    let end = "|%5|$8|admitted|:0|$14|retry_after_ms|_|$6|source|$5|store|$7|receipt|_|\
               $8|statuses|*1|%6|$5|limit|$3|all|";
    assert!(printed.contains(end), "{printed}");
}

#[test]
fn what_the_policy_does_not_know_is_named() {
    let open = Open::new();
    for (words, error) in [
        ("cor 1 token a", "there is no limit \"cor\""),
        (
            "core 1",
            "the limit counts by \"token\": send its value, or an empty one for clients without a \
             value",
        ),
        ("core 1 token", "a dimension has no value: write dimension and value in turn"),
        ("core 1 token a token b", "the dimension \"token\" is there twice"),
        ("core 1 token a host b", "none of the named limits counts by \"host\""),
        (
            "area 1 address x",
            "the value of \"address\" is not an IP address: use one such as 192.0.2.1 or 2001:db8::1",
        ),
        ("core -1 token a", "the cost \"-1\" is not a whole number from 0 to 9007199254740991"),
        ("core 1e3 token a", "the cost \"1e3\" is not a whole number from 0 to 9007199254740991"),
        (
            "core 9007199254740992 token a",
            "the cost \"9007199254740992\" is not a whole number from 0 to 9007199254740991",
        ),
        ("core,,all 1 token a", "there is no limit \"\""),
    ] {
        for command in ["TG.CHARGE", "TG.PEEK"] {
            assert_eq!(open.printed(format!("{command} {words}\r\n")), format!("-ERR {error}|"));
        }
    }
    let many = vec!["all"; 17].join(",");
    assert_eq!(
        open.printed(format!("TG.CHARGE {many} 1\r\n")),
        "-ERR at most 16 limits can be charged at once|"
    );
    assert_eq!(
        open.printed("TG.CHARGE core 1 token \"\\xff\"\r\n"),
        "-ERR the value is not UTF-8|"
    );
}
