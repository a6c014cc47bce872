//! `tollgate man DIR`: pages that `man` renders without warnings.

use std::collections::BTreeSet;
use std::process::Command;

use crate::packaging::files::run;
use crate::support::world::tollgate;

/// Returns the commands that `--help` lists.
fn commands() -> BTreeSet<String> {
    let help = String::from_utf8(tollgate(&["--help"]).stdout).unwrap();
    let (_, list) = help.split_once("Commands:\n").unwrap();
    let names = list.lines().take_while(|line| !line.is_empty());
    let names = names.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
}

#[test]
fn every_command_has_a_page_with_its_flags_that_man_shows() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("a/new/one");
    let written = tollgate(&["man", pages.to_str().unwrap()]);
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let mut commands = commands();
    assert!(commands.len() > 8 && commands.remove("help"), "{commands:?}");
    for command in &commands {
        let page = pages.join(format!("tollgate-{command}.1"));
        let shown = run(Command::new("man")
            .args(["--warnings", "--local-file"])
            .arg(&page)
            .env("MANWIDTH", "200")
            .env("LC_ALL", "C.UTF-8"));
        let complaints = String::from_utf8_lossy(&shown.stderr);
        assert!(shown.status.success() && complaints.is_empty(), "{command}: {complaints}");
        let text = String::from_utf8_lossy(&shown.stdout).into_owned();
        let help = String::from_utf8(tollgate(&[command, "--help"]).stdout).unwrap();
        let flags = help.lines().filter_map(|line| line.trim_start().strip_prefix("--"));
        for flag in flags.filter_map(|flag| flag.split([' ', ',', '=']).next()) {
            assert!(text.contains(&format!("--{flag}")), "{command}: no --{flag} in\n{text}");
        }
    }
    let main = std::fs::read_to_string(pages.join("tollgate.1")).unwrap();
    assert!(
        commands.iter().all(|command| main.contains(&format!("tollgate\\-{command}(1)"))),
        "{main}"
    );
}

#[test]
fn whoever_goes_by_a_policy_is_given_it_by_the_same_flag() {
    let mut given = Vec::new();
    for command in commands().into_iter().filter(|command| command != "help") {
        let help = String::from_utf8(tollgate(&[&command, "--help"]).stdout).unwrap();
        let usage = help.lines().find(|line| line.starts_with("Usage:")).unwrap();
        // Positional arguments are the input of a command: files to import or to format, logs, a
        // directory. The input of `check` is the policy itself, which it takes in both ways.
        let is_import = usage.ends_with("<FORMAT> <FILE>...");
        let takes_flag = help.contains("--policy <FILE>");
        let is_input = is_import || command == "fmt";
        assert!(is_input || !usage.contains("<FILE>") || takes_flag, "{usage}");
        if takes_flag {
            given.push(command);
        }
    }
    assert_eq!(given, ["check", "doctor", "proxy", "serve", "shards", "simulate"]);
}

#[test]
fn the_same_binary_writes_the_same_pages() {
    let folder = tempfile::tempdir().unwrap();
    let page = |name: &str| {
        let pages = folder.path().join(name);
        assert!(tollgate(&["man", pages.to_str().unwrap()]).status.success());
        std::fs::read(pages.join("tollgate-serve.1")).unwrap()
    };
    assert_eq!(page("once"), page("twice"));
}

#[test]
fn where_it_cannot_write_it_says_so() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let output = tollgate(&["man", file.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let response = String::from_utf8(output.stderr).unwrap();
    assert!(response.starts_with("cannot write the manual to "), "{response}");
}
