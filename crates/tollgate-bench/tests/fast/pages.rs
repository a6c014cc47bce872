//! The benchmark commands in `docs/benchmarks.md` and `docs/load-shedding.md`. The benchmarks take
//! minutes, so each program is only started with its arguments followed by `--help`. An invalid
//! argument is reported before the help is printed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PAGES: [&str; 2] = ["docs/benchmarks.md", "docs/load-shedding.md"];

/// The beginnings of commands that install external programs.
const FETCHES: [&str; 2] = ["apt-get install ", "cargo install "];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the commands in the `sh` blocks of a page, without comments.
fn commands(page: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let blocks =
        text.split("```").skip(1).step_by(2).filter_map(|block| block.strip_prefix("sh\n"));
    let lines = blocks.flat_map(str::lines).map(|line| line.split('#').next().unwrap().trim());
    lines.map(str::to_owned).collect()
}

/// Returns the path of a program that this package builds.
fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_listeners")).with_file_name(name)
}

/// Returns the words that directly follow `flag`.
fn after<'w>(words: &[&'w str], flag: &str) -> Vec<&'w str> {
    words.windows(2).filter(|pair| pair[0] == flag).map(|pair| pair[1]).collect()
}

fn understands(name: &str, arguments: &[&str]) {
    let output = Command::new(program(name)).args(arguments).arg("--help").output();
    let output = output.unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(
        output.status.success(),
        "{name} {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Checks one command as far as possible without running it.
fn check(command: &str) {
    let words: Vec<_> = command.split_whitespace().collect();
    match words[..] {
        ["cargo", "run", "--release", "-p", package, "--example", name] => {
            let file = format!("crates/{package}/examples/{name}.rs");
            assert!(root().join(&file).exists(), "no {file} for {command}");
        }
        ["cargo", "run", ..] => {
            let [name] = after(&words, "--bin")[..] else { panic!("which program? {command}") };
            let at = words.iter().position(|word| *word == name).unwrap() + 1;
            let arguments = &words[at..];
            understands(name, arguments.strip_prefix(&["--"]).unwrap_or(arguments));
        }
        ["cargo", "build", ..] => {
            for name in after(&words, "--bin") {
                let is_own = program(name).exists();
                assert!(is_own || name == "tollgate", "no {name} for {command}");
            }
        }
        ["cargo", "bench", ..] => {
            let [name] = after(&words, "--bench")[..] else { panic!("which? {command}") };
            assert!(
                root().join(format!("crates/tollgate-bench/benches/{name}.rs")).exists(),
                "{command}"
            );
        }
        // These commands set the options with which the packages are built.
        ["export", ref settings @ ..] => {
            let image = fs::read_to_string(root().join("deploy/docker/Dockerfile")).unwrap();
            for setting in settings {
                assert!(image.contains(setting), "the container is not built with {setting}");
            }
        }
        [path, ref arguments @ ..] => {
            let name = path.strip_prefix("target/release/");
            understands(name.unwrap_or_else(|| panic!("what is {command}?")), arguments);
        }
        [] => panic!("an empty line among the commands"),
    }
}

#[test]
fn every_benchmark_understands_what_its_page_says() {
    let mut seen = 0;
    for command in PAGES.into_iter().flat_map(commands) {
        if !FETCHES.iter().any(|begin| command.starts_with(begin)) {
            check(&command);
            seen += 1;
        }
    }
    assert!(seen > 12, "{seen} commands are hardly those of the pages");
}
