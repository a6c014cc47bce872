//! A test that a run which is ended early ends all processes that it started.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::{chaos, tollgate};

/// The limit of each wait. On a busy machine, no action takes longer.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(10);

/// The number of processes of `changing-world`: a memcached server, two pairs of servers, three
/// sentinels, and a node.
const WITH_A_NODE: usize = 9;

#[test]
fn ctrl_c_leaves_no_server_behind() {
    leaves_nothing("primary-frozen", 1);
}

#[test]
fn ctrl_c_leaves_no_node_behind() {
    leaves_nothing("changing-world", WITH_A_NODE);
}

/// Ends a scenario while `processes` processes run.
fn leaves_nothing(scenario: &str, processes: usize) {
    let directory = tempfile::tempdir().unwrap();
    let mut run = chaos(&[scenario])
        .arg("--tollgate")
        .arg(tollgate())
        .env("TMPDIR", directory.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let process = run.id();
    until(|| working_in(directory.path()) >= processes);
    let interrupt = Command::new("kill").args(["-INT", &process.to_string()]).status().unwrap();
    assert!(interrupt.success());
    until(|| run.try_wait().unwrap().is_some());
    assert!(!run.wait().unwrap().success(), "scenarios that did not run have not held");
    assert_eq!(working_in(directory.path()), 0, "a server is left");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "its directory is left");
}

/// Returns the number of processes with a working directory in `directory`, even if `directory` was
/// removed.
fn working_in(directory: &Path) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let works = processes.filter_map(|process| fs::read_link(process.path().join("cwd")).ok());
    works.filter(|path| path.starts_with(directory)).count()
}

fn until(mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < PATIENCE, "it did not happen");
        std::thread::sleep(PAUSE);
    }
}
