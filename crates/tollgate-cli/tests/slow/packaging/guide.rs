//! Runs the commands of the guide's first pages in one shell from top to bottom, and compares the
//! output with the page.

use std::process::Command;

use crate::packaging::files::{run, shipped};
use crate::packaging::ports::Ports;

/// The ports that the commands of the pages use.
const PORTS: [&str; 9] = ["6400", "6401", "6402", "6403", "6404", "8181", "8182", "8183", "8184"];

/// Replacements with long deadlines, because other tests on the machine can slow down the servers.
const PATIENT: [(&str, &str); 2] = [
    ("{ memcached: { servers", "{ memcached: { deadline: 5s, servers"),
    ("nodes: 2\n", "nodes: 2\n        deadline: 5s\n"),
];

macro_rules! pages {
    ($($test:ident: $page:literal;)*) => {
        $(
            #[test]
            fn $test() {
                follow($page);
            }
        )*
        /// The pages whose `sh` blocks are all run.
        pub(crate) const PAGES: &[&str] = &[$($page),*];
    };
}

pages! {
    the_quick_start_does_what_it_shows: "docs/quick-start.md";
    what_is_said_of_installing_works: "docs/install.md";
    a_day_goes_as_it_is_told: "docs/operating.md";
    what_is_said_of_administration_works: "docs/admin.md";
    tenants_are_set_and_imported: "docs/tenants.md";
}

/// Returns the fenced blocks of a page: their kinds and texts.
pub(crate) fn blocks(page: &str) -> Vec<(&str, &str)> {
    let fenced = page.split("```").skip(1).step_by(2);
    fenced.map(|block| block.split_once('\n').expect("a block has lines")).collect()
}

/// Runs the commands of `page` and compares all output that it shows.
fn follow(page: &str) {
    let text = Ports::free(&PORTS).put_into(&shipped(page));
    let text = PATIENT.iter().fold(text, |text, (from, to)| text.replace(from, to));
    let folder = tempfile::tempdir().unwrap();
    let of = |kind: &str| -> Vec<&str> {
        blocks(&text)
            .into_iter()
            .filter(|(found, _)| *found == kind)
            .map(|(_, text)| text)
            .collect()
    };
    // Processes that a page started and did not stop would keep the pipes open forever.
    let end = "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT";
    let script = format!("set -em\n{end}\n{}", of("sh").join("\n"));
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_tollgate")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("timeout");
    shell.args(["--kill-after=1", "120", "bash", "-c", &script]).current_dir(folder.path());
    let output = run(shell.env("PATH", path));
    let response = String::from_utf8(output.stdout).unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{page}: {complaints}\n{response}");
    let mut rest = response.as_str();
    for shown in of("text").iter().flat_map(|text| text.lines()) {
        // Values that differ between builds are left out.
        let after = rest.split_once(shown.trim_end_matches('…')).map(|(_, after)| after);
        rest = after.unwrap_or_else(|| {
            panic!("{page}: no {shown:?} in\n{rest}\nof\n{response}\n{}", logs(folder.path()))
        });
    }
}

/// Returns the log files in `folder` that the processes of a page wrote.
fn logs(folder: &std::path::Path) -> String {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let logs = files.filter(|file| file.extension().is_some_and(|end| end == "log"));
    logs.map(|log| format!("{}:\n{}", log.display(), std::fs::read_to_string(&log).unwrap()))
        .collect()
}
