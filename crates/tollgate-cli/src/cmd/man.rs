//! `tollgate man`: writes manual pages that are generated from the flags.

use std::fs;
use std::path::PathBuf;

use clap::{Args, Command};

use crate::failure::Failure;

/// Write the manual pages, one per command, to a directory
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// The directory; it is created if it does not exist
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
