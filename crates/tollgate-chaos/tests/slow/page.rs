//! A test that the documentation page about faults names only scenarios and tests that exist.

use std::path::Path;

use crate::{chaos, printed};

const PAGE: &str = "docs/chaos.md";
/// The start of the page's links to files of the repository.
const REPOSITORY: &str = "https://github.com/tollgate-rs/tollgate/blob/main/";

fn shipped(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the rows of the table below a heading. Each row is split into its first cell and the
/// rest.
fn rows<'p>(page: &'p str, heading: &str) -> Vec<(&'p str, &'p str)> {
    let (_, below) = page.split_once(heading).unwrap_or_else(|| panic!("no {heading:?}"));
    let lines = below.lines().skip_while(|line| !line.starts_with('|')).skip(2);
    let lines = lines.take_while(|line| line.starts_with('|'));
    lines.filter_map(|line| line.trim_matches('|').split_once('|')).collect()
}

#[test]
fn every_scenario_is_reported_and_no_other() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = shipped(&root.join(PAGE));
    let response: Vec<_> =
        rows(&page, "## Scenarios").into_iter().map(|row| row.0.trim()).collect();
    let help = printed(&chaos(&["--help"]).output().unwrap());
    let listed = help.lines().filter_map(|line| line.trim_start().strip_prefix("- "));
    let listed: Vec<_> = listed.filter_map(|line| line.split(':').next()).collect();
    assert_eq!(response, listed.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>());
    for (_, shown) in rows(&page, "## Every fault") {
        for name in shown.split('`').skip(1).step_by(2) {
            assert!(listed.contains(&name), "{name} is no scenario");
        }
    }
}

#[test]
fn every_command_of_it_is_understood() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = shipped(&root.join(PAGE));
    let (_, block) = page.split_once("```sh\n").unwrap();
    let lines = block.lines().take_while(|line| !line.starts_with("```"));
    let mut observed = 0;
    for line in lines {
        let command = line.split('#').next().unwrap().trim();
        let words: Vec<_> =
            command.strip_prefix("tollgate-chaos").unwrap().split_whitespace().collect();
        // With `--help`, the binary still rejects unknown arguments, and runs no scenario.
        let output = chaos(&[&words, &["--help"][..]].concat()).output().unwrap();
        assert!(output.status.success(), "{command}: {}", printed(&output));
        observed += 1;
    }
    assert!(observed > 2, "{observed} commands are hardly the page's");
}

#[test]
fn every_test_that_is_named_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = shipped(&root.join(PAGE));
    let mut found = 0;
    for (fault, shown) in rows(&page, "## Every fault") {
        assert!(
            shown.contains('`') || shown.contains("](") || shown.contains("no test"),
            "{fault}"
        );
        for link in shown.split("](").skip(1) {
            let target = link.split(')').next().unwrap();
            let (file, test) = target.split_once('#').unwrap_or_else(|| panic!("{target}"));
            let file = file.strip_prefix(REPOSITORY).unwrap_or_else(|| panic!("{file}"));
            let source = shipped(&root.join(file));
            assert!(source.contains(&format!("fn {test}(")), "no {test} in {file}");
            found += 1;
        }
    }
    assert!(found > 10, "only {found} tests are named");
}
