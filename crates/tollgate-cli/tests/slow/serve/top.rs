//! `tollgate top`: one frame, and a terminal that is restored at the end.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;

use crate::support::client::fetch;
use crate::support::node::{Folder, Node, PATIENCE};

/// Runs the arguments on a terminal of their own, with standard input as its keyboard.
const ON_A_TERMINAL: &str =
    "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";

fn node() -> (Folder, Node) {
    let folder = Folder::new("");
    let node = Node::open(&folder.policy());
    for _ in 0..3 {
        assert_eq!(fetch(node.listener("http"), "POST", "/v1/check", None).status, 200);
    }
    (folder, node)
}

#[test]
fn one_frame_reports_counts_and_top_subjects() {
    let (_folder, node) = node();
    let at = format!("http://{}", node.listener("admin"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    let output = command.args(["top", "--once", "--admin", &at]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let frame = String::from_utf8(output.stdout).unwrap();
    assert!(frame.starts_with(&at) && frame.contains("store memory"), "{frame}");
    for row in
        [&["limit", "admitted", "refused"][..], &["all", "3", "0"], &["everybody", "all", "3", "0"]]
    {
        let is_row = |line: &str| line.split_whitespace().eq(row.iter().copied());
        assert!(frame.lines().any(is_row), "{row:?} in\n{frame}");
    }
    // Output to a pipe ends after one frame.
    let output = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .args(["top", "--admin", &at])
        .output()
        .unwrap();
    let response = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && response.contains("--once"), "{response}");
}

#[test]
fn a_terminal_is_drawn_on_until_it_is_interrupted_and_then_as_it_was() {
    let (_folder, node) = node();
    let at = format!("http://{}", node.listener("admin"));
    let mut top = Command::new("python3")
        .args(["-c", ON_A_TERMINAL, env!("CARGO_BIN_EXE_tollgate"), "top", "--admin", &at])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 runs");
    let (teller, pieces) = channel();
    let mut out = top.stdout.take().unwrap();
    thread::spawn(move || {
        let mut piece = [0; 4096];
        while let Ok(length @ 1..) = out.read(&mut piece) {
            // The reader closed the pipe.
            let _ = teller.send(piece[..length].to_vec());
        }
    });
    let mut drawn = String::new();
    while !drawn.contains("admitted/s") {
        let piece = pieces.recv_timeout(PATIENCE);
        let piece = piece.unwrap_or_else(|error| panic!("{error} after {drawn:?}"));
        drawn += &String::from_utf8_lossy(&piece);
    }
    top.stdin.as_mut().unwrap().write_all(b"\x03").unwrap();
    while let Ok(piece) = pieces.recv_timeout(PATIENCE) {
        drawn += &String::from_utf8_lossy(&piece);
    }
    assert!(top.wait().unwrap().success(), "{drawn:?}");
    assert!(drawn.contains("\x1b[?1049h\x1b[?25l"), "{drawn:?}");
    assert!(drawn.trim_end().ends_with("\x1b[?25h\x1b[?1049l"), "{drawn:?}");
}
