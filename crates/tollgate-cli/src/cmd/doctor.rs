//! `tollgate doctor`: finds problems of a deployment and suggests how to solve them.

use std::path::PathBuf;

use clap::Args;

use crate::doctor;
use crate::failure::Failure;
use crate::limiter;
use crate::output::Form;

/// Check a deployment: the servers of a policy's store and their configuration
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// The policy file
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,
    /// Also fail on warnings
    #[arg(long)]
    strict: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    let loaded = limiter::load(&flags.policy)?;
    let form = if flags.json { Form::Json } else { Form::Text };
    let fails_from = if flags.strict { doctor::Level::Warning } else { doctor::Level::Problem };
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(doctor::run(&loaded, form, fails_from))
}
