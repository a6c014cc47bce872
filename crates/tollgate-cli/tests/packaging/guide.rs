//! The commands of the guide's first pages, run in one shell from top to bottom; after each, what the page shows.

use std::net::TcpListener;
use std::process::Command;

use crate::files::{run, shipped};

/// The fenced blocks of a page: their kinds and texts.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let fenced = page.split("```").skip(1).step_by(2);
    fenced.map(|block| block.split_once('\n').expect("a block has lines")).collect()
}

/// A port that nobody listens on, though another process may begin to.
fn free_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port().to_string()
}

/// Runs the commands of `page` and finds all that it shows in what they print.
fn follow(page: &str) {
    let folder = tempfile::tempdir().unwrap();
    let text = shipped(page).replace(":8181", &format!(":{}", free_port()));
    let text = text.replace(":8182", &format!(":{}", free_port()));
    let of = |kind: &str| -> Vec<&str> {
        blocks(&text)
            .into_iter()
            .filter(|(found, _)| *found == kind)
            .map(|(_, text)| text)
            .collect()
    };
    let script = format!("set -em\n{}", of("sh").join("\n"));
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
fn what_is_said_of_administration_works() {
    follow("docs/admin.md");
}
