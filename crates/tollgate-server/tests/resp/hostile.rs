//! What no well-meaning client sends, and exactly what it is told.

mod bombs;
mod buckets;
mod commands;
mod framing;

use crate::kit::{Open, TOKEN};

/// What shows that a connection goes on.
const AFTER: &str = "*1\r\n$4\r\nPING\r\n";

/// Bytes that are answered the same.
struct Row {
    /// The replies, also to the `PING` that follows each; there is none after the end of a
    /// connection. Each line break is a `|`.
    told: &'static str,
    /// One connection's bytes each.
    said: &'static [&'static [u8]],
}

fn rows() -> impl Iterator<Item = (&'static [u8], &'static str)> {
    let rows = [framing::ROWS, buckets::ROWS, commands::ROWS].into_iter().flatten();
    rows.flat_map(|row| row.said.iter().map(|said| (*said, row.told)))
}

#[test]
fn every_row_is_told_exactly_this() {
    assert!(rows().count() >= 100);
    for (said, told) in rows() {
        // A door for each: nothing that one row charged is seen by another.
        let open = Open::new();
        assert_eq!(open.told([said, AFTER.as_bytes()].concat()), told, "{}", said.escape_ascii());
        assert_eq!(open.told("PING\r\n"), "+PONG|", "{}", said.escape_ascii());
    }
}

#[test]
fn no_row_gets_a_stranger_in() {
    let open = Open::with_token();
    for (said, _) in rows() {
        let told = open.told([said, AFTER.as_bytes()].concat());
        let is_refusal = |reply: &str| {
            ["-NOAUTH", "-WRONGPASS", "-ERR", "-NOPROTO", "+RESET"]
                .iter()
                .any(|code| reply.starts_with(code))
        };
        let mut replies = told.split('|').filter(|reply| !reply.is_empty());
        assert!(replies.all(is_refusal), "{} was told {told}", said.escape_ascii());
        assert!(!told.contains(TOKEN));
    }
    assert_eq!(open.told(format!("AUTH {TOKEN}\r\nPING\r\n")), "+OK|+PONG|");
}
