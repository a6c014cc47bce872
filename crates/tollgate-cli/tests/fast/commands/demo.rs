//! Tests of `tollgate demo`.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use crate::support::world::tollgate;

#[test]
fn the_demonstration_limits_the_real_log_exactly() {
    let output = tollgate(&["demo", "--listen", "127.0.0.1:0", "--seconds", "0", "--once"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    // The result of `tollgate simulate` for the same log and policy.
    let last = "Replayed 10000: 9985 admitted, 15 refused, 445 refunded (304).";
    assert!(text.contains(last), "{text}");
    for response in [
        "  max_tokens is 400: 400 reserved, 89600 remaining",
        "  prompt and response had 21: settled at the end of the stream, 89979 remaining",
    ] {
        assert!(text.contains(response), "{response}: {text}");
    }
    assert!(text.contains("  curl -i http://127.0.0.1:"), "{text}");
}

#[test]
fn ctrl_c_during_the_replay_ends_the_demonstration() {
    let mut demo = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .args(["demo", "--listen", "127.0.0.1:0", "--seconds", "20"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.starts_with("  1000/10000  ")));
    let pid = demo.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let rest: Vec<String> = lines.collect();
    assert_eq!(rest.last().map(String::as_str), Some("The replay was interrupted."), "{rest:?}");
    assert!(!rest.iter().any(|line| line.contains("failed")), "{rest:?}");
    assert!(demo.wait().unwrap().success());
}
