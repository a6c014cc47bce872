//! What no well-meaning client sends, and exactly what it is told.

mod bombs;
mod buckets;
mod commands;
mod framing;

use crate::resp::kit::{Open, TOKEN};

/// What shows that a connection goes on.
const AFTER: &str = "*1\r\n$4\r\nPING\r\n";

/// Bytes that are answered the same.
struct Row {
    /// The replies, also to the `PING` that follows each; there is none after the end of a
    /// connection. Each line break is a `|`.
    printed: &'static str,
    /// One connection's bytes each.
    described: &'static [&'static [u8]],
}

fn rows() -> impl Iterator<Item = (&'static [u8], &'static str)> {
    let rows = [framing::ROWS, buckets::ROWS, commands::ROWS].into_iter().flatten();
    rows.flat_map(|row| row.described.iter().map(|described| (*described, row.printed)))
}

#[test]
fn every_row_is_reported_exactly_this() {
    assert!(rows().count() >= 100);
    for (described, printed) in rows() {
        // A listener for each: nothing that one row charged is seen by another.
        let open = Open::new();
        assert_eq!(
            open.printed([described, AFTER.as_bytes()].concat()),
            printed,
            "{}",
            described.escape_ascii()
        );
        assert_eq!(open.printed("PING\r\n"), "+PONG|", "{}", described.escape_ascii());
    }
}

#[test]
fn no_row_gets_an_anonymous_client_in() {
    let open = Open::with_token();
    for (described, _) in rows() {
        let printed = open.printed([described, AFTER.as_bytes()].concat());
        let is_refusal = |reply: &str| {
            ["-NOAUTH", "-WRONGPASS", "-ERR", "-NOPROTO", "+RESET"]
                .iter()
                .any(|code| reply.starts_with(code))
        };
        let mut replies = printed.split('|').filter(|reply| !reply.is_empty());
        assert!(replies.all(is_refusal), "{} was told {printed}", described.escape_ascii());
        assert!(!printed.contains(TOKEN));
    }
    assert_eq!(open.printed(format!("AUTH {TOKEN}\r\nPING\r\n")), "+OK|+PONG|");
}
