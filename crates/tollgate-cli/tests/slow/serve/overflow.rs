//! A memory store that is full of invented users: no client exceeds a limit because of it.

use std::fs;
use std::io;

use crate::support::client::{Client, fetch};
use crate::support::node::{Folder, Node};

const KEYS: usize = 3_300;

/// Returns the lines of the reply to `command`. An `ECHO` after the command marks the end of the
/// reply.
fn reply(client: &mut Client, command: &str) -> io::Result<Vec<String>> {
    client.send(format!("{command}\r\nECHO end-of-it\r\n"))?;
    let mut lines = Vec::new();
    loop {
        let line = client.line()?;
        if line == "end-of-it" {
            return Ok(lines);
        }
        lines.push(line);
    }
}

/// Returns whether a charge was admitted, and the source of the decision.
fn charge(client: &mut Client, limit: &str, cost: u64, key: &str) -> (bool, String) {
    let lines = reply(client, &format!("TG.CHARGE {limit} {cost} key {key}")).unwrap();
    let after = |word: &str, lines_on: usize| {
        let at = lines.iter().position(|line| line == word);
        lines[at.unwrap_or_else(|| panic!("{lines:?}")) + lines_on].clone()
    };
    (after("admitted", 1) == ":1", after("source", 2))
}

#[test]
fn invented_keys_that_fill_the_store_let_no_newcomer_past_a_limit() {
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../policies/llm-tokens.yaml");
    let shipped = fs::read_to_string(shipped).unwrap();
    let folder =
        Folder::with(&format!("{shipped}\nstore: {{ memory: {{ max_entries: 3_000 }} }}\n"));
    let node = Node::open(&folder.policy());
    let mut client = Client::connect(node.listener("resp")).unwrap();
    for number in 0..KEYS {
        charge(&mut client, "requests", 60, &format!("invented-{number}"));
    }
    // New subjects of the attacked limit share its counters.
    for number in 0..3 {
        let attempts =
            (0..200).map(|_| charge(&mut client, "requests", 1, &format!("late-{number}")));
        let (admitted, sources): (Vec<bool>, Vec<String>) = attempts.unzip();
        assert!(admitted.iter().filter(|admitted| **admitted).count() <= 60, "late-{number}");
        assert!(sources.iter().all(|source| source == "overflow"), "{sources:?}");
    }
    // Subjects of another limit are counted exactly.
    for number in 0..3 {
        for attempt in 0..20 {
            let (admitted, source) =
                charge(&mut client, "tokens", 30_000, &format!("late-{number}"));
            assert_eq!((admitted, &*source), (attempt < 3, "store"), "late-{number}, {attempt}");
        }
    }
    let page = fetch(node.listener("admin"), "GET", "/metrics", None).body;
    let value = |family: &str| {
        let line = page.lines().find(|line| line.starts_with(family)).unwrap();
        line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()
    };
    assert!(value("tollgate_memory_overflow_total") >= 600, "{page}");
    assert_eq!(value("tollgate_memory_full_total"), 0);
    assert_eq!(value("tollgate_memory_limit_entries{limit=\"tokens\"}"), 3);
}
