//! The recording of a terminal in the README: what `demo` and `simulate` print, as an animated
//! picture.
//!
//! With `UPDATE=1`, the test creates the picture again. The picture shows one command after the
//! other. A viewer without animations sees the second command with its whole output.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One command and the lines that it prints.
struct Scene {
    command: &'static str,
    lines: Vec<String>,
    /// The seconds until the next line appears.
    pace: f64,
}

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const SIMULATE: &str =
    "tollgate simulate --policy policies/github.yaml examples/access-2015-05.log";

/// The seconds for which a command is shown before its output, and the seconds for which its whole
/// output is shown.
const TYPED: f64 = 0.8;
const READ: f64 = 6.0;

const COLUMNS: usize = 100;
const CHAR_WIDTH: f64 = 7.8;
const LINE_HEIGHT: f64 = 18.0;
const MARGIN: f64 = 18.0;

/// Runs `command` in the root of the repository. The first word of `command` is `tollgate`.
fn printed(command: &str, and: &[&str]) -> Vec<String> {
    let words = command.split(' ').skip(1).chain(and.iter().copied());
    let ran = Command::new(env!("CARGO_BIN_EXE_tollgate")).current_dir(ROOT).args(words).output();
    let ran = ran.expect("the binary runs");
    assert!(ran.status.success(), "{command}: {}", String::from_utf8_lossy(&ran.stderr));
    let printed = String::from_utf8(ran.stdout).expect("text");
    printed.lines().flat_map(wrapped).collect()
}

/// Breaks `line` as a terminal of [`COLUMNS`] does.
fn wrapped(line: &str) -> Vec<String> {
    let chars: Vec<char> = line.chars().collect();
    let row = |row: &[char]| row.iter().collect();
    if chars.is_empty() { vec![String::new()] } else { chars.chunks(COLUMNS).map(row).collect() }
}

/// Returns `line` with the default port, because `demo` uses another port while the default port is
/// in use.
fn with_default_port(line: &str) -> String {
    const HOST: &str = "127.0.0.1:";
    let Some((before, after)) = line.split_once(HOST) else { return line.to_owned() };
    format!("{before}{HOST}8080{}", after.trim_start_matches(|c: char| c.is_ascii_digit()))
}

fn scenes() -> [Scene; 2] {
    // In a terminal `demo` runs until Ctrl-C, and takes 30 seconds.
    let demo = printed("tollgate demo", &["--once", "--seconds", "4"]);
    let of_a_terminal =
        |line: String| with_default_port(&line).replace("in about 4 s", "in about 30 s");
    let demo = demo.into_iter().map(of_a_terminal).collect();
    [
        Scene { command: "tollgate demo", lines: demo, pace: 0.25 },
        Scene { command: SIMULATE, lines: printed(SIMULATE, &[]), pace: 0.05 },
    ]
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Draws `scenes` one after the other, for ever.
fn drawn(scenes: &[Scene]) -> String {
    let length = |scene: &Scene| TYPED + scene.pace * scene.lines.len() as f64 + READ;
    let all: f64 = scenes.iter().map(length).sum();
    let rows = scenes.iter().map(|scene| scene.lines.len() + 1).max().unwrap_or(0);
    let (width, height) =
        (COLUMNS as f64 * CHAR_WIDTH + 2.0 * MARGIN, rows as f64 * LINE_HEIGHT + 2.0 * MARGIN);
    let (mut styles, mut texts) = (String::new(), String::new());
    let (mut begins, mut number) = (0.0, 0);
    for (index, scene) in scenes.iter().enumerate() {
        let ends = begins + length(scene);
        let is_last = index + 1 == scenes.len();
        let lines = std::iter::once(format!("$ {}", scene.command)).chain(scene.lines.clone());
        for (row, line) in lines.enumerate() {
            let appears = if row == 0 { 0.0 } else { TYPED + scene.pace * row as f64 };
            let percent = |seconds: f64| seconds / all * 100.0;
            let (from, to) = (percent(begins + appears), percent(ends));
            let _ = writeln!(
                styles,
                "@keyframes k{number}{{0%,{from:.3}%{{opacity:0}}{:.3}%,{:.3}%{{opacity:1}}{to:.3}%,\
                 100%{{opacity:{}}}}}",
                from + 0.001,
                to - 0.001,
                u8::from(is_last && to > 99.9),
            );
            let y = MARGIN + LINE_HEIGHT * (row as f64 + 0.75);
            let class = if row == 0 { "c" } else { "o" };
            let still = if is_last { "l" } else { "f" };
            let _ = writeln!(
                texts,
                "<text class=\"{class} {still}\" style=\"animation-name:k{number}\" x=\"{MARGIN}\" \
                 y=\"{y:.1}\">{}</text>",
                escaped(&line)
            );
            number += 1;
        }
        begins = ends;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         role=\"img\" aria-label=\"A terminal: tollgate demo, then tollgate simulate\">\n<style>\n\
         rect{{fill:#16181d}}\n\
         text{{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;\
         white-space:pre;animation:{all:.2}s linear infinite}}\n\
         .c{{fill:#7ee787;font-weight:bold}}\n.o{{fill:#d5d9e0}}\n.f{{opacity:0}}\n\
         @media (prefers-reduced-motion){{text{{animation:none}}}}\n{styles}</style>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\"/>\n{texts}</svg>\n"
    )
}

fn path() -> PathBuf {
    Path::new(ROOT).join("docs/images/terminal.svg")
}

/// The picture shows what the commands print today, line by line, except how far a replay was after
/// each thousand requests, which depends on the machine.
#[test]
fn the_recording_shows_what_the_commands_print() {
    let scenes = scenes();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path(), drawn(&scenes)).expect("the picture is written");
    }
    let picture = std::fs::read_to_string(path()).expect("docs/images/terminal.svg");
    let fixed = |line: &&String| !line.contains("/10000");
    for line in scenes.iter().flat_map(|scene| &scene.lines).filter(fixed) {
        let shown = format!(">{}</text>", escaped(line));
        assert!(picture.contains(&shown), "make the recording again by UPDATE=1: {line}");
    }
}
