//! `tollgate --version`, and the commit in it.

use std::path::Path;
use std::process::Command;

use crate::packaging::files::run;
use crate::support::world::tollgate;

#[test]
fn it_reports_the_version_and_the_target_in_one_line() {
    let response = String::from_utf8(tollgate(&["--version"]).stdout).unwrap();
    let start = concat!("tollgate ", env!("CARGO_PKG_VERSION"), " (");
    let built_from = response.strip_prefix(start).and_then(|rest| rest.strip_suffix(")\n"));
    let target = built_from.unwrap().rsplit(", ").next().unwrap();
    assert_eq!(target.split('-').next(), Some(std::env::consts::ARCH), "{response}");
    assert_eq!(response.lines().count(), 1);
}

/// Returns the build script's instructions to cargo for `folder`, a copy of the crate's directory.
fn built(script: &Path, folder: &Path, profile: &str, given: Option<&str>) -> String {
    let mut command = Command::new(script);
    command.current_dir(folder).env("TARGET", "t-t").env("PROFILE", profile);
    command.env_remove("TOLLGATE_COMMIT").envs(given.map(|commit| ("TOLLGATE_COMMIT", commit)));
    // A repository above the temporary directory does not belong to this test.
    command.env("GIT_CEILING_DIRECTORIES", folder.ancestors().nth(3).unwrap());
    let response = String::from_utf8(run(&mut command).stdout).unwrap();
    let line =
        response.lines().find_map(|line| line.strip_prefix("cargo:rustc-env=TOLLGATE_BUILT_FROM="));
    line.unwrap_or_else(|| panic!("{response}")).to_owned()
}

#[test]
fn the_commit_is_the_given_one_or_that_of_the_checkout_or_none() {
    let outside = tempfile::tempdir().unwrap();
    let script = outside.path().join("script");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/build.rs");
    let compiled = run(Command::new("rustc").args(["--edition=2024", source, "-o"]).arg(&script));
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));

    let folder = outside.path().join("checkout/crates/cli");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("build.rs"), "").unwrap();
    let built = |profile: &str, given: Option<&str>| built(&script, &folder, profile, given);
    assert_eq!(built("release", None), "t-t", "no repository");
    assert_eq!(built("release", Some("abc123")), "abc123, t-t");
    assert_eq!(built("debug", Some("abc123")), "abc123, t-t");
    for nonsense in ["", "two words", "a\ncargo:rustc-cfg=x"] {
        assert_eq!(built("release", Some(nonsense)), "t-t", "{nonsense:?}");
    }

    let git = |arguments: &[&str]| {
        let name = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
        let output = run(Command::new("git").current_dir(&folder).args(name).args(arguments));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    git(&["init", "-q", "../.."]);
    git(&["commit", "-q", "--allow-empty", "-m", "somebody else's"]);
    assert_eq!(built("release", None), "t-t", "a repository that does not hold this file");
    git(&["add", "build.rs"]);
    git(&["commit", "-q", "-m", "ours"]);
    let commit = git(&["rev-parse", "--short=12", "HEAD"]);
    assert_eq!(built("release", None), format!("{commit}, t-t"));
    assert_eq!(built("debug", None), "t-t");
    std::fs::write(folder.join("build.rs"), "// changed").unwrap();
    assert_eq!(built("release", None), format!("{commit}-dirty, t-t"));
    assert_eq!(built("release", Some("abc123")), "abc123, t-t");
}
