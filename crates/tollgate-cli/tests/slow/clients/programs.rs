//! Runs the client programs of these tests to their end.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// Returns the output of a program under `node/`, with the packages of `package-lock.json`.
pub(crate) fn node(program: &str, arguments: &[&str]) -> Value {
    let packages = packages("node", "node_modules");
    // Node looks for modules in the program's directory. A program that is read from a pipe is in
    // the current one.
    let program = File::open(here().join("node").join(program)).unwrap();
    let mut command = Command::new("node");
    command.args(["--input-type=module", "-"]).current_dir(packages).stdin(program);
    printed(command.args(arguments))
}

/// Returns the output of a program under `python/`, with the packages of `requirements.txt`.
pub(crate) fn python(program: &str, arguments: &[&str]) -> Value {
    let packages = packages("python", "github");
    let mut command = Command::new("python3");
    command.arg("-B").arg(here().join("python").join(program)).env("PYTHONPATH", packages);
    printed(command.args(arguments).stdin(Stdio::null()))
}

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slow/clients")
}

fn packages(language: &str, witness: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/clients").join(language);
    assert!(
        folder.join(witness).exists(),
        "missing packages: {} has no {witness}; crates/tollgate-cli/tests/slow/clients/packages.sh \
         installs them, and so does ./test",
        folder.display()
    );
    folder
}

fn printed(command: &mut Command) -> Value {
    let program = command.get_program().to_owned();
    let output = command.stderr(Stdio::piped()).output().unwrap_or_else(|error| {
        let program = OsStr::display(&program);
        panic!("missing program: {program} ({error}); ./test installs it")
    });
    let (response, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{response}{errors}", output.status);
    serde_json::from_str(&response)
        .unwrap_or_else(|error| panic!("{error} in {response:?}\n{errors}"))
}
