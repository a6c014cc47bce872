//! Every scenario of `tollgate chaos`, in its short form, by the binary.

mod ended;
mod example;
mod page;
mod reports;
mod scenarios;

use std::process::{Command, Output};

/// The binary with `arguments` of `chaos`.
fn chaos(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command.arg("chaos").args(arguments);
    command
}

/// What it says on standard output and standard error.
fn described(output: &Output) -> String {
    let texts = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    texts.concat()
}
