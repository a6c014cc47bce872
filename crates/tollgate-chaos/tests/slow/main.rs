//! Tests of every scenario of `tollgate-chaos` in its quick version, run through the binary.
//!
//! Plain `cargo test` leaves this binary out; `./test` runs it, and so does `cargo test -p
//! tollgate-chaos --test slow` after `cargo build -p tollgate-cli`.

mod ended;
mod example;
mod page;
mod reports;
mod scenarios;

use std::path::PathBuf;
use std::process::{Command, Output};

const CHAOS: &str = env!("CARGO_BIN_EXE_tollgate-chaos");

/// Returns a command for the binary with `arguments`.
fn chaos(arguments: &[&str]) -> Command {
    let mut command = Command::new(CHAOS);
    command.args(arguments);
    command
}

/// Returns the path of the `tollgate` binary that was built together with this test.
fn tollgate() -> PathBuf {
    let program = PathBuf::from(CHAOS).with_file_name("tollgate");
    assert!(
        program.is_file(),
        "missing program: {}; cargo build -p tollgate-cli",
        program.display()
    );
    program
}

/// Returns the path of the server module that was built together with this test.
fn module() -> String {
    let test = std::env::current_exe().expect("the path of this test");
    let module = test.with_file_name("libtollgate_module.so");
    assert!(module.is_file(), "missing: {}; cargo build -p tollgate-module", module.display());
    module.to_str().expect("a path in UTF-8").to_owned()
}

/// Returns the standard output and the standard error of a process.
fn printed(output: &Output) -> String {
    let texts = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    texts.concat()
}
