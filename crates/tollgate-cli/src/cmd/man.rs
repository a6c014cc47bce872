//! `tollgate man`: the manual, made of the flags themselves.

use std::fs;
use std::path::PathBuf;

use clap::{Args, Command};

use crate::failure::Failure;

/// Write the manual pages, one a command, into a folder
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// The folder; it is made if it is not there
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub(crate) fn run(flags: &Flags, program: Command) -> Result<(), Failure> {
    let folder = &flags.folder;
    fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(program.disable_help_subcommand(true), folder))
        .map_err(|error| format!("cannot write the manual to {}: {error}", folder.display()))?;
    Ok(())
}
