//! `tollgate completions SHELL`: scripts that shells run.

use std::process::Command;

use crate::packaging::files::run;
use crate::support::world::tollgate;

/// Returns bash's completions of `words`; the last word is incomplete.
fn completed(words: &[&str]) -> Vec<String> {
    let script = String::from_utf8(tollgate(&["completions", "bash"]).stdout).unwrap();
    let (last, before) = (words.len() - 1, words[words.len().saturating_sub(2)]);
    let line = format!(
        "{script}\nCOMP_WORDS=({}); COMP_CWORD={last}\n_tollgate tollgate {:?} {before:?}\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"",
        words.join(" "),
        words[last],
    );
    let output = run(Command::new("bash").args(["--norc", "-c", &line]));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_and_flags() {
    assert_eq!(completed(&["tollgate", "simu"]), ["simulate"]);
    assert_eq!(completed(&["tollgate", "serve", "--dr"]), ["--drain-timeout"]);
    assert_eq!(completed(&["tollgate", "completions", "fi"]), ["fish"]);
}

#[test]
fn every_shell_has_a_script_that_knows_every_listener() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = tollgate(&["completions", shell]);
        let script = String::from_utf8(output.stdout).unwrap();
        for flag in ["http", "grpc", "resp", "admin"] {
            assert!(script.contains(flag), "{shell} knows no {flag}");
        }
    }
    let unknown = tollgate(&["completions", "csh"]);
    assert!(!unknown.status.success() && unknown.stdout.is_empty());
}
