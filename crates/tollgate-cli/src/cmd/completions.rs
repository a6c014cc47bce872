//! `tollgate completions`: prints a completion script for a shell.

use clap::{Args, Command};
use clap_complete::Shell;

use crate::failure::Failure;
use crate::output;

/// Print the completion script of a shell
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

pub(crate) fn run(flags: &Flags, mut program: Command) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(flags.shell, &mut program, "tollgate", &mut script);
    output::print(&String::from_utf8(script)?)
}
