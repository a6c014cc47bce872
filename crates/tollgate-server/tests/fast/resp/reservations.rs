//! Reservations by the commands on the policy's limits.

use tollgate::model::Millis;

use crate::resp::kit::Open;

/// Returns the receipt in a reply.
fn receipt(printed: &str) -> &str {
    let mut parts = printed.split('|').skip_while(|part| *part != "receipt");
    parts.nth(2).unwrap()
}

#[test]
fn what_is_reserved_is_settled_once() {
    let open = Open::new();
    let reserved = open.printed("TG.RESERVE core,all 2 30000 token abc\r\n");
    assert!(reserved.starts_with("*10|$8|admitted|:1|"), "{reserved}");
    assert!(reserved.ends_with("|$8|reserved|:2|"), "{reserved}");
    let refused = open.printed("TG.CHARGE core 2 token abc\r\n");
    assert!(refused.starts_with("*10|$8|admitted|:0|$14|retry_after_ms|:30000|"), "{refused}");
    let settle = format!("TG.SETTLE {} core 1\r\n", receipt(&reserved));
    let settled = open.printed(&settle);
    assert!(settled.starts_with("*4|$7|outcome|$7|settled|$6|limits|*2|"), "{settled}");
    let core = "*8|$5|limit|$4|core|$8|refunded|:1|$5|added|:0|$9|remaining|:2|";
    assert!(settled.contains(core), "{settled}");
    let all = "*8|$5|limit|$3|all|$8|refunded|:0|$5|added|:0|$9|remaining|:3|";
    assert!(settled.contains(all), "{settled}");
    let again = open.printed(&settle);
    assert!(again.starts_with("*4|$7|outcome|$9|unchanged|"), "{again}");
}

/// The bug: the metric did not contain reservations.
#[test]
fn the_duration_of_a_reservation_was_not_recorded() {
    let open = Open::new();
    open.printed("TG.RESERVE core 2 30000 token abc\r\n");
    open.printed("TG.RESERVE core 2 soon token abc\r\n");
    assert_eq!(open.latency.read().count(), 1);
}

#[test]
fn a_reservation_is_put_off_and_released() {
    let open = Open::new();
    let reserved = open.printed("tollgate.reserve core 3 10000 token abc\r\n");
    open.clock.advance(Millis::from_secs(9));
    let extended = open.printed(format!("TG.EXTEND {} 20000\r\n", receipt(&reserved)));
    assert!(extended.starts_with("*8|$7|outcome|$8|extended|$13|expires_at_ms|:"), "{extended}");
    open.clock.advance(Millis::from_secs(15));
    assert!(open.printed("TG.CHARGE core 1 token abc\r\n").starts_with("*10|$8|admitted|:0|"));
    let released = open.printed(format!("TG.RELEASE {}\r\n", receipt(&extended)));
    assert!(released.starts_with("*4|$7|outcome|$8|refunded|"), "{released}");
    assert!(open.printed("TG.CHARGE core 3 token abc\r\n").starts_with("*10|$8|admitted|:1|"));
}

#[test]
fn mistakes_change_nothing_and_are_reported() {
    let open = Open::new();
    let reserved = open.printed("TG.RESERVE core 2 30000 token abc\r\n");
    let text = receipt(&reserved).to_owned();
    for (described, printed) in [
        ("TG.RESERVE core 2 soon token abc\r\n".to_owned(), "-ERR the time \"soon\""),
        ("TG.RESERVE core 2\r\n".to_owned(), "-ERR wrong number of arguments"),
        (format!("TG.SETTLE {text}\r\n"), "-ERR wrong number of arguments"),
        (format!("TG.SETTLE {text} core\r\n"), "-ERR the cost \"core\""),
        (format!("TG.SETTLE {text} cor 1\r\n"), "-ERR there is no limit \"cor\""),
        (format!("TG.SETTLE {text} core 1 core 2\r\n"), "-ERR the limit \"core\" is there twice"),
        (format!("TG.SETTLE {text} core 1 all\r\n"), "-ERR a limit has no cost"),
        ("TG.SETTLE AAAA 1\r\n".to_owned(), "-ERR "),
        (format!("TG.EXTEND {text} 1.5\r\n"), "-ERR the time \"1.5\""),
    ] {
        let reply = open.printed(&described);
        assert!(reply.starts_with(printed), "{described:?}: {reply}");
    }
    let settled = open.printed(format!("TG.SETTLE {text} 2\r\n"));
    assert!(settled.starts_with("*4|$7|outcome|$7|settled|"), "{settled}");
}
