//! The packages that are published build from their own files, and a crate outside of the
//! workspace builds against the library.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the repository's directory.
fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// Returns the build directory of the workspace. Crates outside of the workspace share its compiled
/// dependencies: `./test` checks `tollgate-cli` alone before, with the same features.
fn target() -> PathBuf {
    repository().join("target")
}

/// Returns the directory of the packages and of the unpacked packages.
fn outside() -> PathBuf {
    target().join("outside")
}

/// Runs `command`, and returns its standard output.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{errors}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// Returns `cargo` with `arguments`, offline, in `folder`. The command runs at the lowest priority
/// and compiles one crate at a time, because some other tests have deadlines.
fn cargo(folder: &Path, arguments: &[&str], target: &Path) -> Command {
    let mut command = Command::new("nice");
    command.args(["-n", "19", "cargo"]).current_dir(folder).args(arguments);
    command.env("CARGO_BUILD_JOBS", "1").args(["--quiet", "--offline", "--target-dir"]);
    command.arg(target);
    command
}

/// Returns the names of the crates that are published, or of the other crates.
fn crates(published: bool) -> Vec<String> {
    let folders = fs::read_dir(repository().join("crates")).unwrap().map(|it| it.unwrap().path());
    let mut names: Vec<_> = folders
        .filter(|folder| {
            let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
            manifest.contains("\npublish = false") != published
        })
        .map(|folder| folder.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

/// Packages all crates that are published, and unpacks them as members of a workspace in which each
/// of them depends on the other packages.
fn unpacked() -> PathBuf {
    let (packages, folder) = (outside().join("package"), outside().join("unpacked"));
    for old in [&packages, &folder] {
        let _ = fs::remove_dir_all(old);
    }
    let mut package = cargo(&repository(), &["package", "--workspace", "--locked"], &outside());
    package.args(["--no-verify", "--allow-dirty"]);
    for name in crates(false) {
        package.args(["--exclude", &name]);
    }
    output(&mut package);

    fs::create_dir_all(&folder).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let mut manifest = String::from("[workspace]\nmembers = [\"tollgate*\"]\n");
    manifest += "resolver = \"3\"\n\n[patch.crates-io]\n";
    for name in crates(true) {
        let archive = packages.join(format!("{name}-{version}.crate"));
        // `m`: all files of a package have the same old time, by which cargo sees no change.
        output(Command::new("tar").arg("xzmf").arg(&archive).arg("-C").arg(&folder));
        manifest += &format!("{name} = {{ path = \"{name}-{version}\" }}\n");
    }
    let workspace = fs::read_to_string(repository().join("Cargo.toml")).unwrap();
    manifest += &workspace[workspace.find("\n[profile.dev]").unwrap()..];
    fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    fs::copy(repository().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    folder
}

#[test]
fn every_published_crate_builds_from_the_files_of_its_package() {
    let folder = unpacked();
    // The module's build needs libclang; its own tests build it. A check reads every file that the
    // code includes, and takes a third of a build.
    let check = ["check", "--workspace", "--exclude", "tollgate-module"];
    output(&mut cargo(&folder, &check, &target()));
}

const MANIFEST: &str = r#"
[package]
name = "fresh"
version = "0.1.0"
edition = "2024"

[dependencies]
tollgate = { path = "REPOSITORY/crates/tollgate" }
"#;

const PROGRAM: &str = r#"
fn main() {
    let limiter = tollgate::RateLimiter::per_key(tollgate::Quota::per_hour(1).fixed_window());
    for _ in 0..2 {
        println!("{:?}", limiter.try_check("alice").into_result().map(|it| it.remaining()).ok());
    }
}
"#;

#[test]
fn a_fresh_crate_outside_of_the_workspace_limits_in_six_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = repository();
    let manifest = MANIFEST.replace("REPOSITORY", path.to_str().unwrap());
    fs::write(folder.path().join("Cargo.toml"), manifest).unwrap();
    fs::create_dir(folder.path().join("src")).unwrap();
    assert_eq!(PROGRAM.trim().lines().count(), 6);
    fs::write(folder.path().join("src/main.rs"), PROGRAM).unwrap();
    // Without a network, the versions must be those of the workspace.
    fs::copy(path.join("Cargo.lock"), folder.path().join("Cargo.lock")).unwrap();
    assert_eq!(output(&mut cargo(folder.path(), &["run"], &outside())), "Some(0)\nNone\n");
}
