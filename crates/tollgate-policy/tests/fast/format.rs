//! Formatting of policy files in the standard form.

use std::fs;
use std::path::{Path, PathBuf};

use tollgate_policy::{explain, format, parse};

#[test]
fn what_is_formatted_and_what_stays() {
    let text = "\
# The limits of the shop

subjects: {address: {client_address: {}}}
limits:
    core:   { quota: 5_000,window: '1h' , per: address }   #anonymous
    # Later:
    search:
            quota: 30
            window: 1m


            per: address
rules: [{limits: [core,search]}]   \n";
    let expected = "\
# The limits of the shop

subjects: { address: { client_address: {} } }
limits:
  core: { quota: 5_000, window: \"1h\", per: address } # anonymous
  # Later:
  search:
    quota: 30
    window: 1m

    per: address
rules: [{ limits: [core, search] }]
";
    let formatted = format("shop.yaml", text).unwrap();
    assert_eq!(formatted, expected);
    assert_eq!(format("shop.yaml", &formatted).unwrap(), expected);
    let meaning = |text: &str| explain(&parse("shop.yaml", text).unwrap()).to_string();
    assert_eq!(meaning(text), meaning(expected));
}

#[test]
fn a_file_that_is_not_yaml_is_an_error_with_its_place() {
    let mistakes = format("shop.yaml", "limits:\n  core: { quota: 1\n").unwrap_err();
    let finding = &mistakes.findings()[0];
    assert_eq!(finding.file(), "shop.yaml");
    assert!(finding.line() >= 2, "{finding}");
    assert!(format("shop.yaml", "").is_err());
    assert!(format("shop.yaml", "a: 1\n---\nb: 2\n").is_err());
    let large = format!("# {}\na: 1\n", "x".repeat(tollgate_policy::MAX_FILE_BYTES));
    assert!(format("shop.yaml", &large).is_err());
}

#[test]
fn every_policy_of_the_project_has_the_standard_form() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut seen = 0;
    for folder in ["policies", "examples", "deploy"] {
        for path in files(&root.join(folder)) {
            let text = fs::read_to_string(&path).unwrap();
            if !text.contains("\nlimits:") || path.extension().is_none_or(|it| it != "yaml") {
                continue;
            }
            let formatted = format(&path.display().to_string(), &text).unwrap();
            assert!(text == formatted, "run: tollgate fmt {}", path.display());
            seen += 1;
        }
    }
    assert!(seen >= 5, "{seen}");
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found
}

/// Formatting does not change the meaning of a file. Formatting the result again changes nothing.
#[test]
fn formatting_again_changes_nothing() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut formatted = 0;
    let folders = ["fuzz/corpus/policy", "crates/tollgate-policy/tests/fast/mistakes", "policies"];
    for path in folders.iter().flat_map(|folder| files(&root.join(folder))) {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let Ok(once) = format("policy.yaml", &text) else { continue };
        let again = format("policy.yaml", &once).unwrap();
        assert_eq!(once, again, "{}", path.display());
        formatted += 1;
    }
    assert!(formatted >= 15, "{formatted}");
}

#[test]
fn a_last_comment_without_a_line_break_is_in_its_final_place_at_once() {
    let once = format("policy.yaml", "a:\n  b:\n    c: d # e\n    # f").unwrap();
    assert_eq!(format("policy.yaml", &once).unwrap(), once);
}
