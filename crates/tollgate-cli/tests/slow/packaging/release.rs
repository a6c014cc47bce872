//! `deploy/release.py`, run on a file in place of the built binary.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::packaging::files::{root, run};

#[test]
fn the_list_of_components_has_what_is_in_the_binary() {
    let folder = tempfile::tempdir().unwrap();
    let binary = folder.path().join("tollgate");
    fs::write(&binary, "abc").unwrap();
    let mut script = Command::new("python3");
    script.arg(root().join("deploy/release.py")).arg(&binary).env("CARGO_NET_OFFLINE", "true");
    let output = run(script.env_remove("CARGO_BUILD_TARGET"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let sums = fs::read_to_string(folder.path().join("SHA256SUMS")).unwrap();
    let sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(sums, format!("{sum}  tollgate\n"));
    let bill = fs::read_to_string(folder.path().join("tollgate.cdx.json")).unwrap();
    let bill: Value = serde_json::from_str(&bill).unwrap();
    let components = bill["components"].as_array().unwrap();
    let names: BTreeSet<_> = components.iter().map(|it| it["name"].as_str().unwrap()).collect();
    for inside in ["tollgate-cli", "tollgate-core", "tokio", "libc"] {
        assert!(names.contains(inside), "{inside} is not in {names:?}");
    }
    // For another platform, a macro, a dependency of tests, and one of a build script.
    for outside in ["windows-sys", "js-sys", "syn", "serde_derive", "proptest", "cc"] {
        assert!(!names.contains(outside), "{outside} is in {names:?}");
    }
}
