//! Sets the build information of the binary: the commit, if it is known, and the target.

use std::env;
use std::path::Path;
use std::process::Command;

/// The environment variable that sets the commit where there is no repository, as in packages,
/// containers and archives.
const VARIABLE: &str = "TOLLGATE_COMMIT";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed={VARIABLE}");
    let target = env::var("TARGET").unwrap_or_else(|_| "unknown target".to_owned());
    let built_from = match commit() {
        Some(commit) => format!("{commit}, {target}"),
        None => target,
    };
    println!("cargo:rustc-env=TOLLGATE_BUILT_FROM={built_from}");
}

/// Returns the commit: the value of the variable, or else, in a release build, the commit that git
/// reports. Git is not run in other builds, because they would be rebuilt after every commit and
/// are rarely distributed.
fn commit() -> Option<String> {
    let given = env::var(VARIABLE).ok().filter(|commit| is_a_word(commit));
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    given.or_else(|| if is_release { checked_out(Path::new(".")) } else { None })
}

/// Returns whether `text` consists of 1 to 64 visible ASCII characters, so the program can print it
/// on one line.
fn is_a_word(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Returns the commit of the checkout that contains this file, marked if the checkout has
/// uncommitted changes. A repository that does not track this file is ignored, for example because
/// the source was unpacked into another project.
fn checked_out(folder: &Path) -> Option<String> {
    git(folder, &["ls-files", "--error-unmatch", "build.rs"])?;
    let log = git(folder, &["rev-parse", "--git-path", "logs/HEAD"])?;
    for path in [&log, "..", "../../Cargo.lock"] {
        println!("cargo:rerun-if-changed={path}");
    }
    git(folder, &["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"])
}

/// Returns the output of git, or `None` if git is missing or fails.
fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").current_dir(folder).args(arguments).output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| said.trim().to_owned())
}
