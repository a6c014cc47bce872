//! `tollgate import`: generates a policy from the configuration of another rate limiter.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use tollgate_policy::MAX_FILE_BYTES;
use tollgate_policy::import::{self, Conversion, Imported, SourceFile};

use crate::failure::Failure;
use crate::{output, output_file};

/// Generate a policy from the configuration of another rate limiter
#[derive(Debug, Args)]
pub(crate) struct Flags {
    #[command(subcommand)]
    from: From,
}

#[derive(Debug, Subcommand)]
enum From {
    EnvoyRatelimit(EnvoyRatelimit),
}

/// From files of envoyproxy/ratelimit; prints the result for each construct on stderr
#[derive(Debug, Args)]
struct EnvoyRatelimit {
    /// The files, one domain each
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Write the policy to this file instead of stdout
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How the descriptors of one request are counted
    #[arg(long, value_enum, default_value_t = Counting::Each)]
    counting: Counting,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Counting {
    /// Count each descriptor separately, and count refused requests, as that server does
    Each,
    /// Count all descriptors in one charge: a refused request is not counted on any limit
    Atomic,
}

pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    match &flags.from {
        From::EnvoyRatelimit(flags) => envoy_ratelimit(flags),
    }
}

fn envoy_ratelimit(flags: &EnvoyRatelimit) -> Result<(), Failure> {
    let names: Vec<String> = flags.files.iter().map(|path| path.display().to_string()).collect();
    let texts = flags.files.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    let sources: Vec<SourceFile<'_>> =
        names.iter().zip(&texts).map(|(name, text)| SourceFile { name, text }).collect();
    let counting = match flags.counting {
        Counting::Each => import::envoy_ratelimit::Counting::Each,
        Counting::Atomic => import::envoy_ratelimit::Counting::Atomic,
    };
    let imported = import::envoy_ratelimit(&sources, counting)?;
    print_notes(&imported);
    match &flags.output {
        None => output::print(&imported.policy)?,
        Some(output) => {
            output_file::check_is_no_input(output, "--output", &flags.files)?;
            output_file::write(output, &imported.policy)
                .map_err(|error| format!("cannot write {}: {error}", output.display()))?;
        }
    }
    Ok(())
}

/// Prints the result for each construct on standard error.
fn print_notes(imported: &Imported) {
    let lines = imported.notes.iter().map(|note| format!("{note}\n"));
    let warnings = imported.warnings.iter().map(|warning| format!("{warning}\n"));
    let mut text: String = lines.chain(warnings).collect();
    let count = |conversion: Conversion| {
        imported.notes.iter().filter(|note| note.conversion == conversion).count()
    };
    let (kept, near) = (count(Conversion::Kept), count(Conversion::Approximated));
    let not = count(Conversion::NotSupported);
    text += &format!("{kept} kept, {near} approximated, {not} not supported\n");
    output::note(&text);
}

/// Reads a file that may be as large as a policy file.
fn read(path: &Path) -> Result<String, Failure> {
    let failed = |error| format!("cannot read {}: {error}", path.display());
    let mut bytes = Vec::new();
    // One byte more than allowed shows that the file is too large.
    let limit = MAX_FILE_BYTES as u64 + 1;
    File::open(path).map_err(failed)?.take(limit).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() > MAX_FILE_BYTES {
        return Err(format!("{} is larger than {MAX_FILE_BYTES} bytes", path.display()).into());
    }
    let text = String::from_utf8(bytes);
    text.map_err(|_| format!("{} is not UTF-8 text", path.display()).into())
}
