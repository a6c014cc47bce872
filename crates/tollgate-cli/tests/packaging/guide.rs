//! The commands of the guide's first pages, run in one shell from top to bottom; after each, what the page shows.

use std::net::TcpListener;
use std::process::Command;

use crate::files::{run, shipped};

/// The fenced blocks of a page: their kinds and texts.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let fenced = page.split("```").skip(1).step_by(2);
    fenced.map(|block| block.split_once('\n').expect("a block has lines")).collect()
}

/// Runs the commands of `page` and finds all that it shows in what they print.
fn follow(page: &str) {
    follow_as(&elsewhere(&shipped(page), &["8181", "8182"]), page);
}

/// The page with a free port in the place of each of `ports`.
fn elsewhere(text: &str, ports: &[&str]) -> String {
    // All are found before one is put in, which may be one of the page's own.
    let held: Vec<_> = ports.iter().map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let free = held.iter().map(|listener| listener.local_addr().unwrap().port().to_string());
    let marked = ports.iter().fold(text.to_owned(), |text, port| text.replace(port, &mark(port)));
    let pairs: Vec<_> = ports.iter().zip(free).collect();
    pairs.iter().fold(marked, |text, (port, free)| text.replace(&mark(port), free))
}

fn mark(port: &str) -> String {
    port.chars().map(|digit| char::from(digit as u8 - b'0' + b'a')).collect::<String>() + "\u{0}"
}

/// Runs the commands of `text`, which is `page`, and finds all that it shows in what they print.
fn follow_as(text: &str, page: &str) {
    let folder = tempfile::tempdir().unwrap();
    let of = |kind: &str| -> Vec<&str> {
        blocks(text).into_iter().filter(|(found, _)| *found == kind).map(|(_, text)| text).collect()
    };
    // What a page began and did not come to end would hold its pipes for ever.
    let end = "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT";
    let script = format!("set -em\n{end}\n{}", of("sh").join("\n"));
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_tollgate")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("timeout");
    shell.args(["--kill-after=1", "120", "bash", "-c", &script]).current_dir(folder.path());
    let output = run(shell.env("PATH", path));
    let told = String::from_utf8(output.stdout).unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{page}: {complaints}\n{told}");
    let mut rest = told.as_str();
    for shown in of("text").iter().flat_map(|text| text.lines()) {
        let after = rest.split_once(shown).map(|(_, after)| after);
        rest = after.unwrap_or_else(|| panic!("{page}: no {shown:?} in\n{rest}\nof\n{told}"));
    }
}

#[test]
fn the_quick_start_does_what_it_shows() {
    follow("docs/quick-start.md");
}

#[test]
fn what_is_said_of_installing_works() {
    follow("docs/install.md");
}

#[test]
fn a_day_goes_as_it_is_told() {
    let page = "docs/operating.md";
    let ports = ["6400", "6401", "6402", "6403", "6404", "8181", "8182", "8183", "8184"];
    let text = elsewhere(&shipped(page), &ports);
    // What keeps a machine busy with other tests from looking like an outage.
    let text = text.replace("{ memcached: { servers", "{ memcached: { deadline: 5s, servers");
    let text = text.replace("nodes: 2\n", "nodes: 2\n        deadline: 5s\n");
    follow_as(&text, page);
}

#[test]
fn what_is_said_of_administration_works() {
    follow("docs/admin.md");
}
