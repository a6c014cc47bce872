//! Invalid and hostile commands, with their exact replies.

mod bombs;
mod buckets;
mod commands;
mod framing;

use crate::resp::kit::{Open, TOKEN};

/// A `PING`. The reply shows that the connection is still open.
const AFTER: &str = "*1\r\n$4\r\nPING\r\n";

/// Inputs with the same reply.
struct Row {
    /// The replies, including the reply to the `PING` that follows each input. That reply is
    /// missing if the connection was closed. Each line break is printed as `|`.
    printed: &'static str,
    /// The inputs, each for a connection of its own.
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
        // A listener per row, so the charges of one row do not affect another.
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
